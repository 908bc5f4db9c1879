import { STATUS_CODES, type IncomingHttpHeaders } from 'node:http'
import type { z } from 'zod'
import { abortKind } from './deadline.ts'
import type { ExchangeResult } from './exchange.ts'
import { detailOf, excerptOf, safeText } from './excerpt.ts'
import { RequestFailure, type FailureFields, type ProtocolFault } from './failure.ts'
import type { Redact } from './redaction.ts'
import { isPassingServerError, parseRetryAfter } from './retry.ts'

export type RequestFacts = {
  method: string
  path: string
  /** What the path is joined to. */
  address: string
  host: string
  timeoutMs: number
  maxBytes: number
  signal: AbortSignal
}

type ReadOptions<T> = {
  result: ExchangeResult
  request: RequestFacts
  schema: z.ZodType<T> | null
  emptyAllowed: boolean
  redact: Redact
  now: number
}

type Read<T> = { status: number; headers: IncomingHttpHeaders; body: T; requestId: string | null }

/** Makes an answer of what came back, or throws the `RequestFailure` that says what is wrong with it. */
export function readAnswer<T>(options: ReadOptions<T>): Read<T> {
  const { headers } = options.result
  const { status, requestId, broken } = checkResult(options)
  return { status, headers, body: bodyOf(options, broken), requestId }
}

/** Makes a `protocol` failure of an answer that came whole and is not what it should be; `what` reads on after "answered 200 ". */
export type Broken = (code: ProtocolFault, what: string, detail?: string | null) => RequestFailure

/** Passes an exchange that gave a whole answer of 2xx, and throws the `RequestFailure` of any other. */
export function checkResult(
  { result, request, redact, now }: Pick<ReadOptions<unknown>, 'result' | 'request' | 'redact' | 'now'>,
): { status: number; requestId: string | null; broken: Broken } {
  const { status, headers, text } = result
  const requestId = headerOf(headers, 'x-request-id')
  const fail = (fields: Pick<FailureFields, 'kind' | 'summary'> & Partial<FailureFields>): RequestFailure =>
    new RequestFailure({
      method: request.method,
      path: safeText(request.path, redact),
      address: safeText(request.address, redact),
      status,
      code: null,
      detail: null,
      excerpt: excerptOf(text, redact),
      requestId: requestId === null ? null : safeText(requestId, redact),
      retryAfterMs: null,
      attempts: 1,
      ambiguous: false,
      ...fields,
      summary: safeText(fields.summary, redact),
    })
  if (result.fault === 'aborted') {
    const kind = abortKind(request.signal)
    throw fail({ kind, summary: kind === 'deadline' ? 'ran out of time' : 'was cancelled', ambiguous: result.sent })
  }
  // A refusal is definite as soon as its status is there, however its body ends.
  if (status !== null && (status < 200 || status >= 300)) {
    throw fail({
      kind: 'http',
      summary: refusalSummary(status, headers, request.host),
      detail: detailOf(text, redact),
      retryAfterMs: parseRetryAfter(headers['retry-after'], now),
      ambiguous: status === 408 || isPassingServerError(status),
    })
  }
  if (result.fault === 'timeout' || result.fault === 'network') {
    throw fail({ kind: 'network', code: result.code, ambiguous: result.sent, ...networkWords(result, request, redact) })
  }
  const broken: Broken = (code, what, detail = null) =>
    fail({ kind: 'protocol', code, detail, ambiguous: true, summary: `answered ${status === null ? '' : `${status} `}${what}` })
  if (result.fault !== null || status === null) throw broken(result.fault ?? 'malformed', faultWords(result, request))
  return { status, requestId, broken }
}

function bodyOf<T>(
  { result, schema, emptyAllowed, redact }: ReadOptions<T>,
  broken: Broken,
): T {
  const text = result.text.trim()
  if (result.status === 204 || text === '') {
    const fine = emptyAllowed || (result.status === 204 && schema === null)
    if (!fine) throw broken('empty', 'with an empty body')
    // Only callers without a schema, or who said so, get here: their T has null in it.
    return null as T
  }
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    // The parser's own message quotes the body, secrets and all.
    if (text.startsWith('<')) throw broken('html', 'with HTML instead of JSON, as a sign-in page or a proxy does')
    throw broken('not-json', 'with something that is not JSON')
  }
  if (schema === null) return body as T
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const issues = parsed.error.issues.slice(0, 5).map((issue) => `${issue.path.map(String).join('.') || 'body'}: ${issue.message}`)
  throw broken('wrong-shape', 'with JSON of an unexpected shape', safeText(issues.join('; '), redact))
}

function refusalSummary(status: number, headers: IncomingHttpHeaders, host: string): string {
  const name = STATUS_CODES[status]
  const answered = `answered ${status}${name === undefined ? '' : ` ${name}`}`
  if (status < 300 || status >= 400) return answered
  const target = headers.location === undefined ? null : URL.parse(headers.location, `http://${host}`)
  const where = target === null ? '' : ` and points to ${target.host}${target.host === host ? ` (${headers.location})` : ''}`
  return `${answered}${where}; redirects are not followed, because the key must not go elsewhere: fix the address ${host}`
}

function networkWords({ fault, code, reason, status, bytes, sent }: ExchangeResult, request: RequestFacts, redact: Redact) {
  if (fault === 'timeout') {
    const came = status === null ? 'nothing came' : `the status ${status} and ${bytes} bytes came`
    return { summary: `got no complete answer from ${request.host} within ${request.timeoutMs / 1000} s (${came})` }
  }
  const words = safeText(reason ?? '', redact) || code
  const summary = sent ? `lost the connection to ${request.host} before an answer` : `could not reach ${request.host}`
  return { summary, detail: words }
}

function faultWords({ fault, bytes }: ExchangeResult, { maxBytes }: RequestFacts): string {
  switch (fault) {
    case 'truncated':
      return `and then the connection broke after ${bytes} bytes of the body`
    case 'oversized':
      return `with more than ${maxBytes} bytes`
    default:
      return 'with something that is not HTTP'
  }
}

function headerOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name]
  return (Array.isArray(value) ? value[0] : value) ?? null
}
