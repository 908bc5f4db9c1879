import { abortKind } from '../client/deadline.ts'
import type { Effects } from '../client/effects.ts'
import { RequestFailure } from '../client/failure.ts'
import type { RevisionAnswer } from '../contract/answers.ts'
import { isFinalRevisionStatus, isKnownRevisionStatus } from '../contract/status.ts'
import { formatDuration } from './parse/duration.ts'
import { nextPollDelay } from './poll-delay.ts'
import { ActionFailure } from './report/error-codes.ts'
import { requestFailure } from './report/request-failure.ts'

export const HEARTBEAT_MS = 60_000
/** A definite refusal counts when it comes twice in a row: one may be a control plane that restarts. */
export const REFUSALS = 2
/** The part of the timeout that may pass without an answer at its end. */
const HICCUP = 0.1

export type FollowOptions = {
  /** Asks once, without retries. */
  getRevision: (signal: AbortSignal) => Promise<RevisionAnswer>
  /** How long earlier revisions took, in milliseconds. */
  expected: number | undefined
  timeoutMs: number
  /** Ends the wait: cancelled, or its reason is a `TimeoutError`. */
  signal: AbortSignal
  effects: Effects
  info: (line: string) => void
  onStatus: (revision: RevisionAnswer, at: number) => void
  /** Called with the length of each wait that a 429 asked for. */
  onRateLimit: (waitedMs: number) => void
}

export type Followed = { end: 'final'; revision: RevisionAnswer } | { end: 'timeout'; lastStatus: string | undefined }

/**
 * Follows one revision until it has ended or the time is over. Lost connections are waited out. Throws an `ActionFailure` when it
 * was cancelled, refused, deleted, or when the time is over and no answer comes any more.
 */
export async function follow(options: FollowOptions): Promise<Followed> {
  const { expected, timeoutMs, signal, effects, info } = options
  const start = effects.now()
  const unknown = new Set<string>()
  let lastStatus: string | undefined
  let printedAt = start
  let lost: Lost | undefined
  const say = (line: string): void => {
    info(line)
    printedAt = effects.now()
  }
  for (;;) {
    let retryAfter = 0
    try {
      const revision = await options.getRevision(signal)
      if (lost !== undefined) say(`The control plane answers again, after ${formatDuration(effects.now() - lost.since)}.`)
      lost = undefined
      if (revision.status !== lastStatus) {
        lastStatus = revision.status
        options.onStatus(revision, effects.now())
        const message = revision.status_message === null ? '' : ` (${revision.status_message})`
        say(`${revision.status} after ${formatDuration(effects.now() - start)}${message}`)
        reportUnknown(revision.status, unknown, say)
      }
      if (isFinalRevisionStatus(revision.status)) return { end: 'final', revision }
    } catch (error) {
      if (signal.aborted && abortKind(signal) === 'deadline')
        return atTimeout({ lost, lastStatus, timeoutMs, now: effects.now() })
      if (signal.aborted) throw cancelled(error)
      if (!(error instanceof RequestFailure)) throw error
      const before = lost
      lost = nextLost(lost, error, effects.now())
      if (isDefinite(error) && lost.refusals >= REFUSALS) throw refused(error)
      if (before === undefined)
        say(`The status could not be read: ${error.message}. Asking again until ${formatDuration(timeoutMs)} are over.`)
      retryAfter = error.retryAfterMs ?? 0
    }
    const now = effects.now()
    const left = start + timeoutMs - now
    if (left <= 0) return atTimeout({ lost, lastStatus, timeoutMs, now })
    if (now - printedAt >= HEARTBEAT_MS) say(heartbeat({ elapsed: now - start, expected, lost, lastStatus, now }))
    const delay = Math.min(left, Math.max(nextPollDelay({ elapsed: now - start, expected }), retryAfter))
    try {
      await sleepWithHeartbeat(delay)
    } catch (error) {
      if (abortKind(signal) === 'deadline') return atTimeout({ lost, lastStatus, timeoutMs, now: effects.now() })
      throw cancelled(error)
    }
    if (lost?.error.status === 429) options.onRateLimit(effects.now() - now)
  }

  // A `Retry-After` may be long: the log must not fall silent meanwhile.
  async function sleepWithHeartbeat(delay: number): Promise<void> {
    const end = effects.now() + delay
    for (let left = delay; left > 0; left = end - effects.now()) {
      await effects.sleep(Math.min(left, HEARTBEAT_MS), signal)
      const now = effects.now()
      if (end > now && now - printedAt >= HEARTBEAT_MS) say(heartbeat({ elapsed: now - start, expected, lost, lastStatus, now }))
    }
  }
}

type Lost = { since: number; error: RequestFailure; refusals: number }

function nextLost(lost: Lost | undefined, error: RequestFailure, now: number): Lost {
  const refusals = isDefinite(error) ? (lost?.refusals ?? 0) + 1 : 0
  return { since: lost?.since ?? now, error, refusals }
}

/** An answer that says no, as against one that did not come: 4xx, but for "too slow" and "too many". */
export function isDefinite({ kind, status }: RequestFailure): boolean {
  return kind === 'http' && status !== null && status >= 400 && status < 500 && status !== 408 && status !== 429
}

function refused(error: RequestFailure): ActionFailure {
  if (error.status !== 404) return requestFailure(error, 'Reading the status of the revision')
  return new ActionFailure({
    code: 'E_NOT_FOUND',
    happened: `The deployment or its revision was deleted meanwhile: ${error.message}.`,
    tried: `${error.method} ${error.path} was answered with 404 twice in a row.`,
    next: 'Find out who deleted it, then run the step again.',
    cause: error,
  })
}

function cancelled(cause: unknown): ActionFailure {
  return new ActionFailure({ code: 'E_CANCELLED', happened: 'The step was cancelled while it waited for the revision.', cause })
}

function atTimeout({
  lost,
  lastStatus,
  timeoutMs,
  now,
}: {
  lost: Lost | undefined
  lastStatus: string | undefined
  timeoutMs: number
  now: number
}): Followed {
  const silence = lost === undefined ? 0 : now - lost.since
  // A hiccup at the very end is not why the time was not enough.
  if (lost === undefined || (lastStatus !== undefined && silence < timeoutMs * HICCUP)) return { end: 'timeout', lastStatus }
  const failure = requestFailure(lost.error, 'Reading the status of the revision')
  throw new ActionFailure({
    code: failure.code,
    happened:
      `The connection to the control plane was lost: for the last ${formatDuration(silence)} of the ` +
      `${formatDuration(timeoutMs)} no usable answer came. ` +
      `The last status that was seen is ${lastStatus ?? 'none'}.\n${failure.message}`,
    tried: 'The status was asked for again and again until the timeout.',
    next: failure.next,
    cause: lost.error,
  })
}

function reportUnknown(status: string, unknown: Set<string>, say: (line: string) => void): void {
  if (unknown.has(status)) return
  if (status === 'UNKNOWN') say('The control plane does not know the status of the revision: waiting on.')
  else if (!isKnownRevisionStatus(status) && !isFinalRevisionStatus(status))
    say(`The status ${status} is not known to this version: waiting on.`)
  else return
  unknown.add(status)
}

function heartbeat({
  elapsed,
  expected,
  lost,
  lastStatus,
  now,
}: {
  elapsed: number
  expected: number | undefined
  lost: Lost | undefined
  lastStatus: string | undefined
  now: number
}): string {
  const usual = expected === undefined ? '' : ` (earlier revisions took ${formatDuration(expected)})`
  if (lost !== undefined) return `No answer for ${formatDuration(now - lost.since)}; ${formatDuration(elapsed)} in all.`
  return `Still ${lastStatus ?? 'no status'} after ${formatDuration(elapsed)}${usual}.`
}
