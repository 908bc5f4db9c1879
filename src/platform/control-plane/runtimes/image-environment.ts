import type { ImageStart } from './runtime.ts'

/** Where agent server images listen, unless `PORT` is among the deployment's secrets. */
const AGENT_PORT = 8000

/** The port that the agent listens on in its container. */
export function portOf({ env }: Pick<ImageStart, 'env'>): number {
  const wanted = Number(env['PORT'])
  return Number.isInteger(wanted) && wanted > 0 && wanted < 65_536 ? wanted : AGENT_PORT
}

/** All that an image finds in its environment: the deployment's secrets, what the platform sets, and what images of the service expect. */
export function environmentOf(request: ImageStart): Record<string, string> {
  const { env } = request
  const postgres = env['POSTGRES_URI_CUSTOM']
  const redis = env['REDIS_URI_CUSTOM']
  return {
    LOG_LEVEL: 'info',
    ...env,
    // Images of the hosted service read their stores from these; their users give them under the names that are theirs to set.
    ...(postgres === undefined ? {} : { DATABASE_URI: postgres, POSTGRES_URI: postgres }),
    ...(redis === undefined ? {} : { REDIS_URI: redis }),
    LOG_JSON: 'true',
    PORT: String(portOf(request)),
  }
}
