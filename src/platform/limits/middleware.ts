import type { IncomingMessage } from 'node:http'
import type { Context, MiddlewareHandler } from 'hono'
import { API_KEY_HEADER } from '../../contract/headers.ts'
import { isRateLimited } from '../../contract/rate-limits.ts'
import type { Log } from '../log.ts'
import { bearerToken } from '../workspaces/authenticate.ts'
import type { ClientAddress } from './client-address.ts'
import type { RateLimitMetrics } from './metrics.ts'
import { type RateLimiter, refusalBody } from './rate-limits.ts'

export interface RateLimitOptions {
  readonly limiter: RateLimiter
  readonly clientAddress: ClientAddress
  readonly metrics: RateLimitMetrics
  readonly log: Log
}

/** How often a counter that is away is told. Milliseconds. */
const TELL_MS = 10_000

/**
 * Refuses what is over the limit with 429, before the body is read; says in every counted answer what is left. A counter that is away lets
 * requests through: a limit must not become an outage.
 */
export function rateLimits({ limiter, clientAddress, metrics, log }: RateLimitOptions): MiddlewareHandler {
  let toldAt = -Infinity
  const tell = (error: unknown) => {
    metrics.uncounted()
    if (performance.now() - toldAt < TELL_MS) return
    toldAt = performance.now()
    log.warn({ error: error instanceof Error ? error.message : String(error) }, 'requests cannot be counted; they are let in')
  }
  return async (c, next) => {
    // The path that the application routes by: decoded, without dot segments and without a slash at its end.
    if (!isRateLimited(c.req.path)) return next()
    const request = {
      method: c.req.method,
      path: c.req.path,
      // As they are authenticated: an empty one is none, and a key is the same one as a bearer token.
      apiKey: c.req.header(API_KEY_HEADER) || bearerToken(c.req.header('Authorization')) || null,
      userId: c.req.header('x-user-id') || null,
      address: clientAddress(socketAddress(c), c.req.header('x-forwarded-for')),
    }
    const verdict = await limiter(request).catch((error: unknown) => {
      tell(error)
      return null
    })
    if (verdict === null) return next()
    if (!verdict.admitted) {
      metrics.refused(verdict.rule.id)
      return c.json(refusalBody(verdict), 429, verdict.headers)
    }
    await next()
    for (const [name, value] of Object.entries(verdict.headers)) c.res.headers.set(name, value)
    return undefined
  }
}

/** The address at the other end of the connection. */
function socketAddress(c: Context): string | undefined {
  return (c.env as { incoming?: IncomingMessage } | undefined)?.incoming?.socket.remoteAddress
}
