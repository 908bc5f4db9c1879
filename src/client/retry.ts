import { abortKind, deadlineOf } from './deadline.ts'
import type { Effects } from './effects.ts'
import { RequestFailure } from './failure.ts'
import { isCertificateProblem, isPlainHttp } from './network-problem.ts'
import { isNotSent } from './pacing.ts'

export type RetryPolicy = {
  /** How often one request is sent at most. */
  attempts: number
  /** The same for answers that cannot be the service's: a proxy's hiccup passes soon, a wrong address never. */
  protocolAttempts: number
  baseMs: number
  capMs: number
  /** The longest `Retry-After` that is waited for when no deadline says otherwise. */
  maxRetryAfterMs: number
}

export const DEFAULT_RETRY_POLICY: RetryPolicy = {
  attempts: 5,
  protocolAttempts: 3,
  baseMs: 500,
  capMs: 10_000,
  maxRetryAfterMs: 3_600_000,
}

/** A wait that is about to begin. `attempt` is the one that failed, `reason` a clause like "answered 503". */
export type RetryEvent = { attempt: number; waitMs: number; reason: string; method: string; path: string; status: number | null }
export type OnRetry = (event: RetryEvent) => void

/** `Retry-After` in milliseconds from `now`: seconds, or an HTTP date (past ones give 0). Null when absent or unreadable. */
export function parseRetryAfter(value: string | undefined, now: number): number | null {
  const text = value?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(text)) {
    const ms = Math.ceil(Number(text) * 1000)
    return Number.isSafeInteger(ms) ? ms : null
  }
  // Date.parse reads far more than HTTP dates ("-1", "2030"): all three forms of an HTTP date begin with the day's name.
  if (!/^(mon|tue|wed|thu|fri|sat|sun)/i.test(text)) return null
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

/** Full jitter: anything between nothing and the doubling, capped bound. `attempt` counts from 1. */
export function backoffMs({ attempt, policy, random }: { attempt: number; policy: RetryPolicy; random: () => number }): number {
  return Math.round(random() * Math.min(policy.capMs, policy.baseMs * 2 ** (attempt - 1)))
}

/** `code` of a refusal that is a rate limit whatever its status: GitHub answers 403 to some. */
export const RATE_LIMITED = 'rate-limited'

/** True when sending the request again may help and can do no harm. */
export function mayRepeat(failure: RequestFailure, idempotent: boolean): boolean {
  switch (failure.kind) {
    case 'http':
      if (failure.status === 429 || failure.code === RATE_LIMITED) return true
      return idempotent && (failure.status === 408 || isPassingServerError(failure.status))
    case 'network':
      if (isCertificateProblem(failure.code) || isPlainHttp(failure.detail)) return false
      return idempotent || !failure.ambiguous
    case 'protocol':
      return idempotent && failure.code !== 'oversized' && failure.code !== 'endless-list'
    case 'cancelled':
    case 'deadline':
    case 'unsupported':
      return false
  }
}

/** A 5xx that is about this moment; 501 and 505 are about the service. */
export function isPassingServerError(status: number | null): boolean {
  return status !== null && status >= 500 && status !== 501 && status !== 505
}

/**
 * Sends a request until it gives something, until nothing is left to hope for, or until the signal ends it.
 * `send` throws a `RequestFailure`; the one that is thrown on carries the number of attempts.
 */
export async function withRetries<T>({ send, idempotent, hopeless, signal, policy, effects, onRetry, onWaited }: {
  send: (attempt: number) => Promise<T>
  idempotent: boolean
  /** True for a failure that no repetition helps, whatever its status says. */
  hopeless?: ((failure: RequestFailure) => boolean) | undefined
  signal: AbortSignal
  policy: RetryPolicy
  effects: Effects
  onRetry: OnRetry
  /** Called after each wait, also one that the signal cut short, with its real length. */
  onWaited: (failure: RequestFailure, waitedMs: number) => void
}): Promise<T> {
  let protocolFaults = 0
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(attempt)
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      const failure = error.with({ attempts: isNotSent(error) ? attempt - 1 : attempt })
      if (failure.kind === 'protocol') protocolFaults++
      if (!mayRepeat(failure, idempotent) || hopeless?.(failure) === true || attempt >= policy.attempts) throw failure
      if (protocolFaults >= policy.protocolAttempts) throw failure
      const waitMs = Math.max(failure.retryAfterMs ?? 0, backoffMs({ attempt, policy, random: effects.random }))
      refuseEndlessWait({ failure, waitMs, signal, policy, effects })
      const { method, path, status, summary } = failure
      onRetry({ attempt, waitMs, reason: summary, method, path, status })
      const since = effects.now()
      try {
        await effects.sleep(waitMs, signal)
      } catch {
        throw whileWaiting(failure, signal)
      } finally {
        onWaited(failure, effects.now() - since)
      }
    }
  }
}

/** A wait that ends after the deadline is not begun: the failure in hand says more than a timeout would. */
function refuseEndlessWait({ failure, waitMs, signal, policy, effects }: {
  failure: RequestFailure
  waitMs: number
  signal: AbortSignal
  policy: RetryPolicy
  effects: Effects
}): void {
  const deadline = deadlineOf(signal)
  const leftMs = deadline === null ? policy.maxRetryAfterMs : deadline - effects.now()
  if (waitMs < leftMs) return
  if (failure.retryAfterMs === null || failure.retryAfterMs < leftMs) throw failure
  const left = deadline === null ? 'the longest wait is' : 'what is left of the time is'
  throw failure.with({
    summary: `${failure.summary} and asked to wait ${seconds(failure.retryAfterMs)}, but ${left} ${seconds(leftMs)}`,
  })
}

function seconds(ms: number): string {
  return `${Math.max(0, Math.floor(ms / 1000))} s`
}

function whileWaiting(failure: RequestFailure, signal: AbortSignal): RequestFailure {
  const kind = abortKind(signal)
  const ended = kind === 'deadline' ? 'ran out of time' : 'was cancelled'
  const summary = `${ended} while waiting to repeat it, after it ${failure.summary}`
  return failure.with({ kind, summary, code: null })
}
