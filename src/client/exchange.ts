import { HttpClient } from '@actions/http-client'
import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http'
import { happenedBeforeSending, problemOf } from './network-problem.ts'

/**
 * One request and one answer over @actions/http-client, which brings the runner's proxy rules, and nothing else of it: its own
 * body reader never settles when a connection dies, its redirects carry the key along, and it cannot be cancelled.
 */
export type ExchangeOptions = {
  url: URL
  method: string
  headers: Readonly<Record<string, string>>
  body: string | null
  userAgent: string
  timeoutMs: number
  maxBytes: number
  signal: AbortSignal
}

/** What it takes to open an exchange. `timeoutMs` null: the signal alone ends it. */
export type OpenOptions = Pick<ExchangeOptions, 'url' | 'method' | 'headers' | 'body' | 'userAgent'> & { timeoutMs: number | null }

export type Fault = 'aborted' | 'timeout' | 'network' | 'truncated' | 'malformed' | 'oversized'

/** `fault` null: the answer is complete. `status` null: none arrived. `sent` false: surely nothing reached the service. */
export type ExchangeResult = {
  fault: Fault | null
  status: number | null
  headers: IncomingHttpHeaders
  text: string
  bytes: number
  sent: boolean
  code: string | null
  reason: string | null
}

/** Bodies of refusals are read this far: enough for the service's words. */
export const REFUSAL_MAX_BYTES = 65_536
/** The client of @actions/http-client has a limit of its own, which must never be the first to strike. */
const SOCKET_TIMEOUT_MAX_MS = 2_147_483_647

/** Never throws: whatever goes wrong is a `fault`. The connection is closed when it settles. */
export async function exchange(options: ExchangeOptions): Promise<ExchangeResult> {
  const { signal, timeoutMs, maxBytes } = options
  const controller = new AbortController()
  const abort = () => controller.abort()
  const chunks: Buffer[] = []
  let message: IncomingMessage | null = null
  let bytes = 0
  let timedOut = false
  const result = (fault: Fault | null, rest: Partial<ExchangeResult> = {}): ExchangeResult => ({
    fault,
    status: message?.statusCode ?? null,
    headers: message?.headers ?? {},
    text: new TextDecoder().decode(Buffer.concat(chunks)),
    bytes,
    sent: true,
    code: null,
    reason: null,
    ...rest,
  })
  if (signal.aborted) return result('aborted', { sent: false })
  signal.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(() => {
    timedOut = true
    abort()
  }, timeoutMs)
  try {
    const opened = await open(options, controller.signal)
    message = opened
    controller.signal.addEventListener('abort', () => opened.destroy(new Error('aborted')), { once: true })
    if (controller.signal.aborted) opened.destroy(new Error('aborted'))
    const max = (opened.statusCode ?? 0) < 300 ? maxBytes : Math.min(maxBytes, REFUSAL_MAX_BYTES)
    for await (const chunk of opened as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > max) return result('oversized')
      chunks.push(chunk)
    }
    return result(null)
  } catch (error) {
    if (signal.aborted) return result('aborted')
    if (timedOut) return result('timeout', { code: 'timeout' })
    const { code, reason } = problemOf(error)
    if (code?.startsWith('HPE_')) return result('malformed', { code, reason })
    if (message !== null) return result('truncated', { code, reason })
    return result('network', { code, reason, sent: !happenedBeforeSending(error) })
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
    message?.socket?.destroy()
  }
}

/** Sends the request and gives the answer as soon as its headers are there. Rejects at once when the signal aborts. */
export async function open(options: OpenOptions, signal: AbortSignal): Promise<IncomingMessage> {
  const { url, method, headers, body, userAgent, timeoutMs } = options
  const handler = {
    prepareRequest: (request: RequestOptions) => prepare(request, signal),
    canHandleAuthentication: () => false,
    handleAuthentication: () => Promise.reject(new Error('no authentication handler')),
  }
  // A client of its own for each request: without keep-alive nothing outlives it, and no request meets a dying connection.
  const client = new HttpClient(userAgent, [handler], {
    allowRedirects: false,
    allowRetries: false,
    keepAlive: false,
    socketTimeout: timeoutMs === null ? SOCKET_TIMEOUT_MAX_MS : timeoutMs + 60_000,
  })
  // Its types want a body; null is what it passes itself when there is none.
  const pending = client.request(method, url.href, body as string, { ...headers })
  const aborted = Promise.withResolvers<never>()
  signal.addEventListener('abort', () => aborted.reject(new Error('aborted')), { once: true })
  try {
    return (await Promise.race([pending, aborted.promise])).message
  } catch (error) {
    pending.then(
      (late) => late.message.destroy(),
      () => undefined,
    )
    throw error
  }
}

/** The signal reaches the request and, behind a proxy, the CONNECT request that comes before it. */
function prepare(request: RequestOptions, signal: AbortSignal): void {
  request.signal = signal
  const agent = request.agent as unknown as { proxyOptions?: { signal?: AbortSignal } }
  if (agent.proxyOptions !== undefined) agent.proxyOptions.signal = signal
  // node:http wants an IPv6 address without the brackets that an URL puts around it.
  else if (request.host?.startsWith('[')) request.host = request.host.slice(1, -1)
}
