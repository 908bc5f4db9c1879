import type { IncomingMessage } from 'node:http'
import type { Context, MiddlewareHandler } from 'hono'
import { API_KEY_HEADER } from '../../contract/headers.ts'
import type { Log } from '../log.ts'
import type { ClientAddress } from './client-address.ts'
import { type RateLimiter, refusalBody } from './rate-limits.ts'

export interface RateLimitOptions {
  readonly limiter: RateLimiter
  readonly clientAddress: ClientAddress
  /** Paths that the table does not speak of: the control plane, health. */
  readonly exempt: (path: string) => boolean
  readonly log: Log
}

/**
 * Refuses what is over the limit with 429, before the body is read; says in every counted answer what is left. A counter that is away lets
 * requests through: a limit must not become an outage.
 */
export function rateLimits({ limiter, clientAddress, exempt, log }: RateLimitOptions): MiddlewareHandler {
  return async (c, next) => {
    if (exempt(c.req.path)) return next()
    const request = {
      method: c.req.method,
      path: c.req.path,
      apiKey: c.req.header(API_KEY_HEADER) ?? null,
      userId: c.req.header('x-user-id') ?? null,
      address: clientAddress(socketAddress(c), c.req.header('x-forwarded-for')),
    }
    const verdict = await limiter(request).catch((error: Error) => {
      log.warn({ error: error.message }, 'a request could not be counted; it is let in')
      return null
    })
    if (verdict === null) return next()
    if (!verdict.admitted) return c.json(refusalBody(verdict), 429, verdict.headers)
    await next()
    for (const [name, value] of Object.entries(verdict.headers)) c.res.headers.set(name, value)
    return undefined
  }
}

/** The address at the other end of the connection. */
function socketAddress(c: Context): string | undefined {
  return (c.env as { incoming?: IncomingMessage } | undefined)?.incoming?.socket.remoteAddress
}
