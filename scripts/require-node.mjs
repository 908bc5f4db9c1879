// Runs on Node 20 too: it only says what is needed, before Node stops at the first type annotation.
const NEEDED = 24
const version = process.versions.node
if (Number(version.split('.')[0]) < NEEDED) {
  process.stderr.write(
    `Node >= ${NEEDED} is needed to run this project's scripts; this is Node ${version} (${process.execPath}).\n` +
      `npm ci installs Node ${NEEDED} into node_modules/.bin on Linux (x64, arm64) and Windows (x64), and npm run finds it there.\n` +
      `On another platform, or with --omit=optional, install Node ${NEEDED} or newer yourself and run the command again.\n`,
  )
  process.exit(1)
}
