import { validateHeaderValue, type IncomingHttpHeaders } from 'node:http'
import type { z } from 'zod'
import { readAnswer } from './answer.ts'
import type { Effects } from './effects.ts'
import { streamEvents, type ServerSentEvent } from './event-stream.ts'
import { exchange } from './exchange.ts'
import type { RequestFailure } from './failure.ts'
import { isNotSent, type Pacer } from './pacing.ts'
import { createRedactor, secretHeaderValues, secretValuesIn, type Redact } from './redaction.ts'
import { DEFAULT_RETRY_POLICY, withRetries, type OnRetry, type RetryPolicy } from './retry.ts'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export type RequestOptions<T> = {
  method: Method
  /** Begins with `/`; joined to the base address, whose path prefix stays. What comes from outside is encoded (`pathOf`). */
  path: string
  query?: Readonly<Record<string, string | number | boolean | null | undefined>>
  /** Sent as JSON. */
  body?: unknown
  /** Cancellation and the total deadline (`startDeadline`). */
  signal: AbortSignal
  /** From the connection's start to the body's end; 30 s when absent. */
  timeoutMs?: number
  /** 8 MiB when absent. */
  maxBytes?: number
  /** The request can be repeated freely. By default GET and DELETE. */
  idempotent?: boolean
  /** True for a failure that no repetition helps, such as a 429 that is no rate limit. */
  hopeless?: (failure: RequestFailure) => boolean
  /** The answer's shape: one of another shape is a `protocol` failure. Absent: any JSON. */
  schema?: z.ZodType<T>
  /** A 2xx with an empty body is fine, and gives null. A 204 always is, without a schema. */
  emptyAllowed?: boolean
}

/** One request whose answer is a stream of events. It is never repeated: whoever reads it knows what a repetition would mean. */
export type StreamOptions = Pick<RequestOptions<unknown>, 'method' | 'path' | 'body' | 'signal'> & {
  /** All of the stream, in bytes: 64 MiB when absent. */
  maxBytes?: number
  /** One event, in UTF-16 units: 8 Mi when absent. */
  maxEventLength?: number
}

export type Answer<T> = { status: number; headers: IncomingHttpHeaders; body: T; attempts: number; requestId: string | null }

export type Transport = {
  readonly baseUrl: string
  /** Throws a `RequestFailure`. Without a schema the body is unknown JSON, null for a 204. */
  request<T = unknown>(options: RequestOptions<T>): Promise<Answer<T>>
  /** Throws a `RequestFailure`, before the first event or after any. */
  stream(options: StreamOptions): AsyncGenerator<ServerSentEvent, void, undefined>
  /** How long requests have waited because of a rate limit, in all: before they were sent, and after a 429. */
  waitedForRateLimitMs(): number
}

export type TransportOptions = {
  /** `http(s)://host[:port][/prefix]`. */
  baseUrl: string
  /** Sent with every request; values of headers that look like keys are kept out of every text. */
  headers: Readonly<Record<string, string>>
  /** Replaces the secrets that the caller knows of. */
  redact: Redact
  userAgent: string
  effects: Effects
  policy?: Partial<RetryPolicy>
  onRetry?: OnRetry
  /** The budget that its requests share with others; streams do not count. Absent: nothing is held back. */
  pacer?: Pacer
}

const DEFAULT_TIMEOUT_MS = 30_000
const DEFAULT_MAX_BYTES = 8 * 1024 * 1024
const STREAM_MAX_BYTES = 64 * 1024 * 1024
const EVENT_MAX_LENGTH = 8 * 1024 * 1024

/** Throws a plain `Error` for an address or a header that no request could be made with. */
export function createTransport({ baseUrl, headers, redact, userAgent, effects, policy, onRetry, pacer }: TransportOptions): Transport {
  const base = parseBaseUrl(baseUrl)
  const address = base.href.replace(/\/$/, '')
  checkHeaders(headers)
  const fullPolicy = { ...DEFAULT_RETRY_POLICY, ...policy }
  let waitedForRateLimitMs = 0

  const prepare = ({ url, body, accept }: { url: URL; body: unknown; accept: string }) => {
    const hide = createRedactor({ redact, values: [...secretHeaderValues(headers), ...secretValuesIn(body)] })
    const text = body === undefined ? null : JSON.stringify(body)
    // The host is named here because a tunnel would add the port, which some gateways do not know themselves by.
    const type = text === null ? {} : { 'content-type': 'application/json' }
    return { hide, text, sent: { host: url.host, accept, ...type, ...headers } }
  }
  /** Waits for the budget; milliseconds. When the signal ends the wait, the exchange tells it. */
  const pace = async (asked: Pick<RequestOptions<unknown>, 'method' | 'path' | 'signal'>): Promise<number> => {
    try {
      return (await pacer?.ready(asked)) ?? 0
    } catch (error) {
      if (asked.signal.aborted) return 0
      throw error
    }
  }
  const request = async <T>(options: RequestOptions<T>): Promise<Answer<T>> => {
    const { method, path, body, signal, schema = null, emptyAllowed = false } = options
    const { timeoutMs = DEFAULT_TIMEOUT_MS, maxBytes = DEFAULT_MAX_BYTES } = options
    const idempotent = options.idempotent ?? (method === 'GET' || method === 'DELETE')
    const url = join(base, path, options.query ?? {})
    const { sent, text, hide } = prepare({ url, body, accept: 'application/json' })
    return await withRetries({
      idempotent,
      hopeless: (failure) => isNotSent(failure) || options.hopeless?.(failure) === true,
      signal,
      policy: fullPolicy,
      effects,
      onRetry: (event) => {
        if (event.status === 429) pacer?.hold({ method, path, waitMs: event.waitMs })
        onRetry?.(event)
      },
      onWaited: (failure, waitedMs) => {
        if (failure.status === 429) waitedForRateLimitMs += waitedMs
      },
      send: async (attempts) => {
        waitedForRateLimitMs += await pace({ method, path, signal })
        const result = await exchange({ url, method, headers: sent, body: text, userAgent, timeoutMs, maxBytes, signal })
        pacer?.learn({ method, path, headers: result.headers })
        const answer = readAnswer({
          result,
          request: { method, path, address, host: url.host, timeoutMs, maxBytes, signal },
          schema,
          emptyAllowed,
          redact: hide,
          now: effects.now(),
        })
        return { ...answer, attempts }
      },
    })
  }
  const stream = ({ method, path, body, signal, ...limits }: StreamOptions) => {
    const url = join(base, path, {})
    const { sent, text, hide } = prepare({ url, body, accept: 'text/event-stream' })
    const { maxBytes = STREAM_MAX_BYTES, maxEventLength = EVENT_MAX_LENGTH } = limits
    const bounds = { signal, maxBytes, maxEventLength }
    return streamEvents({ url, path, address, method, headers: sent, body: text, userAgent, ...bounds, redact: hide, now: effects.now })
  }
  return { baseUrl: base.href, request, stream, waitedForRateLimitMs: () => waitedForRateLimitMs }
}

function parseBaseUrl(text: string): URL {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) throw new Error('the address should begin with https:// or http://')
  if (url.username !== '' || url.password !== '') throw new Error(`the address of ${url.host} should not carry a password`)
  if (url.search !== '' || url.hash !== '') throw new Error(`the address of ${url.host} should end before '?' and '#'`)
  url.pathname = url.pathname.replace(/\/+$/, '')
  return url
}

function join(base: URL, path: string, query: NonNullable<RequestOptions<unknown>['query']>): URL {
  const url = new URL(base)
  url.pathname = `${base.pathname.replace(/\/+$/, '')}${path}`
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined) url.searchParams.append(name, String(value))
  }
  return url
}

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderValue(name, value)
    } catch {
      throw new Error(`the value of the header ${name} has a character that no header can carry, such as a line break`)
    }
  }
}
