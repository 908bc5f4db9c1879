import type { z } from 'zod'
import { abortKind } from '../../client/deadline.ts'
import { excerptOf, safeText } from '../../client/excerpt.ts'
import { type FailureFields, RequestFailure } from '../../client/failure.ts'
import { happenedBeforeSending, problemOf } from '../../client/network-problem.ts'
import type { Redact } from '../../client/redaction.ts'
import { isPassingServerError, parseRetryAfter, RATE_LIMITED } from '../../client/retry.ts'

export type Headers = Readonly<Record<string, string | number | undefined>>

/** `code` of a request to a port that fetch refuses to use: no repetition helps. */
export const BLOCKED = 'blocked-port'
/** GitHub's advice for a secondary rate limit that does not say how long. */
const SECONDARY_LIMIT_MS = 60_000

/** What is known of a request before it is answered. */
export type Facts = { method: string; path: string; hide: Redact; timeoutMs: number; signal: AbortSignal; now: number }

function failure(facts: Facts, fields: Pick<FailureFields, 'kind' | 'summary'> & Partial<FailureFields>): RequestFailure {
  const { method, path, hide } = facts
  return new RequestFailure({
    method,
    path: safeText(path, hide),
    status: null,
    code: null,
    excerpt: null,
    requestId: null,
    retryAfterMs: null,
    attempts: 1,
    ambiguous: false,
    ...fields,
    summary: safeText(fields.summary, hide),
    detail: fields.detail === undefined || fields.detail === null ? null : safeText(fields.detail, hide),
  })
}

/** What an attempt threw, as a failure of the request. */
export function failureOf({ error, facts, timedOut }: { error: unknown; facts: Facts; timedOut: boolean }): RequestFailure {
  if (error instanceof RequestFailure) return error
  if (facts.signal.aborted) {
    const kind = abortKind(facts.signal)
    return failure(facts, { kind, summary: kind === 'deadline' ? 'ran out of time' : 'was cancelled', ambiguous: true })
  }
  if (timedOut) {
    const summary = `got no complete answer from GitHub within ${facts.timeoutMs / 1000} s`
    return failure(facts, { kind: 'network', code: 'timeout', summary, ambiguous: true })
  }
  const { status, headers, data } = responseOf(error)
  if (status === null) {
    const cause = innermost(error)
    const { code, reason } = problemOf(cause)
    // Ports that no web client may use; fetch does not even try.
    const blocked = reason === 'bad port'
    const sent = !blocked && !happenedBeforeSending(cause) && code !== 'UND_ERR_CONNECT_TIMEOUT'
    const summary = sent ? 'lost the connection to GitHub before an answer' : 'could not reach GitHub'
    return failure(facts, { kind: 'network', code: blocked ? BLOCKED : code, summary, detail: reason, ambiguous: sent })
  }
  const detail = detailOf(data)
  const waitMs = rateLimitWaitMs({ status, headers, detail, now: facts.now })
  return failure(facts, {
    kind: 'http',
    status,
    summary: `answered ${status}${waitMs === null ? '' : ', a rate limit'}`,
    code: waitMs === null ? null : RATE_LIMITED,
    detail,
    excerpt: typeof data === 'string' ? excerptOf(data, facts.hide) : null,
    requestId: textOf(headers['x-github-request-id']) ?? null,
    retryAfterMs: waitMs ?? parseRetryAfter(textOf(headers['retry-after']), facts.now),
    ambiguous: status === 408 || isPassingServerError(status),
  })
}

/**
 * How long a rate limit asks to wait; null when the answer is none. The primary limit says when it begins anew, a secondary one how
 * long to wait, or only that there is one, by its words.
 */
function rateLimitWaitMs({
  status,
  headers,
  detail,
  now,
}: {
  status: number
  headers: Headers
  detail: string | null
  now: number
}): number | null {
  if (status !== 403 && status !== 429) return null
  const retryAfter = parseRetryAfter(textOf(headers['retry-after']), now)
  if (retryAfter !== null) return retryAfter
  const reset = Number(textOf(headers['x-ratelimit-reset']) ?? Number.NaN)
  if (textOf(headers['x-ratelimit-remaining']) === '0' && Number.isSafeInteger(reset))
    return Math.max(0, reset * 1000 - now) + 1000
  return status === 429 || /rate limit|abuse detection/i.test(detail ?? '') ? SECONDARY_LIMIT_MS : null
}

/** The body of a 2xx, or the failure that says what is wrong with it. */
export function read<T>({
  answer,
  schema,
  facts,
}: {
  answer: { status: number; headers: Headers; data: unknown }
  schema: z.ZodType<T>
  facts: Facts
}): T {
  const { status, data } = answer
  const parsed = schema.safeParse(data)
  if (parsed.success) return parsed.data
  const text = typeof data === 'string' ? data.trim() : null
  const what =
    text === null
      ? 'with JSON of an unexpected shape'
      : text === ''
        ? 'with an empty or broken body'
        : text.startsWith('<')
          ? 'with HTML instead of JSON, as a sign-in page or a proxy does'
          : 'with something that is not JSON'
  const issues = parsed.error.issues.slice(0, 3).map((issue) => `${issue.path.map(String).join('.') || 'body'}: ${issue.message}`)
  throw failure(facts, {
    kind: 'protocol',
    status,
    code: text === null ? 'wrong-shape' : text === '' ? 'empty' : text.startsWith('<') ? 'html' : 'not-json',
    summary: `answered ${status} ${what}`,
    detail: text === null ? issues.join('; ') : null,
    excerpt: text === null ? null : excerptOf(text, facts.hide),
    ambiguous: true,
  })
}

type Response = { status: number | null; headers: Headers; data: unknown }

/** The response in an octokit error. Without one its status of 500 is made up: nothing came back. */
export function responseOf(error: unknown): Response {
  const response = error instanceof Error && 'response' in error ? (error.response as Response | undefined) : undefined
  return response ?? { status: null, headers: {}, data: undefined }
}

function innermost(error: unknown): unknown {
  let inner = error
  for (let depth = 0; depth < 5 && inner instanceof Error && inner.cause instanceof Error; depth++) inner = inner.cause
  return inner
}

/** `message`, and what `errors` add to it. */
function detailOf(data: unknown): string | null {
  if (typeof data !== 'object' || data === null) return null
  const message = 'message' in data && typeof data.message === 'string' ? data.message : ''
  const errors = 'errors' in data && Array.isArray(data.errors) ? data.errors.slice(0, 5).flatMap(wordsOf) : []
  const words = [message, ...errors].filter((part) => part !== '').join('; ')
  return words === '' ? null : words.slice(0, 1000)
}

function wordsOf(error: unknown): string[] {
  if (typeof error === 'string') return [error]
  if (typeof error !== 'object' || error === null) return []
  const { message, field, code } = error as Record<string, unknown>
  if (typeof message === 'string') return [message]
  return [[field, code].filter((part) => typeof part === 'string').join(' ')]
}

export function textOf(value: string | number | undefined): string | undefined {
  return value === undefined ? undefined : String(value)
}

/** The path with its values, as it is sent. */
export function pathOf(path: string, parameters: Readonly<Record<string, unknown>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parameters[name] ?? '').toWellFormed()))
}
