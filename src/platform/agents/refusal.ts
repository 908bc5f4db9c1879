import type { IncomingMessage, ServerResponse } from 'node:http'

export interface Refusal {
  readonly status: number
  readonly detail: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Seconds after which a client may ask again when nothing serves. */
export const RETRY_AFTER_SECONDS = 2

/** Answers `{"detail": …}` in the agent's stead. */
export function refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const body = JSON.stringify({ detail: refusal.detail })
  response.writeHead(refusal.status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    ...(refusal.status >= 500 ? { 'Retry-After': String(RETRY_AFTER_SECONDS) } : {}),
    ...refusal.headers,
    ...(refusal.status === 401 ? { 'WWW-Authenticate': 'ApiKey' } : {}),
  })
  response.end(body)
  request.resume()
}
