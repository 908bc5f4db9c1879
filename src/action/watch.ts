import { abortKind } from '../client/deadline.ts'
import type { Effects } from '../client/effects.ts'
import { RequestFailure } from '../client/failure.ts'
import { formatDuration } from './parse/duration.ts'
import { nextPollDelay } from './poll-delay.ts'
import { ActionFailure } from './report/error-codes.ts'
import { requestFailure, sentence } from './report/request-failure.ts'

const HEARTBEAT_MS = 60_000
/** A definite refusal counts when it comes twice in a row: one may be a service that restarts. */
const REFUSALS = 2
/** The part of the timeout that may pass without an answer at its end. */
const HICCUP = 0.1

export type WatchOptions<Seen> = {
  /** What is watched, and who tells of it: `revision` and `control plane`. */
  what: string
  who: string
  /** Asks once, without retries. */
  ask: (signal: AbortSignal) => Promise<Seen>
  /** Called after each answer; `say` prints what is new in it. */
  onSeen: (seen: Seen, elapsedMs: number, say: (line: string) => void) => void
  statusOf: (seen: Seen) => string
  isFinal: (seen: Seen) => boolean
  /** The line for a minute without news. */
  still: (seen: Seen | undefined, elapsedMs: number) => string
  /** The failure for a refusal that came twice. Default: that of the request. */
  refused?: (error: RequestFailure) => ActionFailure
  /** How long it usually takes, in milliseconds. */
  expected: number | undefined
  timeoutMs: number
  /** Ends the wait: cancelled, or its reason is a `TimeoutError`. */
  signal: AbortSignal
  effects: Effects
  info: (line: string) => void
  /** Called with the length of each wait that a 429 asked for. */
  onRateLimit: (waitedMs: number) => void
}

export type Watched<Seen> = { end: 'final'; seen: Seen } | { end: 'timeout'; seen: Seen | undefined }

type Lost = { since: number; error: RequestFailure; refusals: number }

/**
 * Watches something remote until it has ended or the time is over. Lost connections are waited out. Throws an `ActionFailure` when
 * the step was cancelled, when the request is refused twice in a row, and when the time is over and no answer comes any more.
 */
export async function watch<Seen>(options: WatchOptions<Seen>): Promise<Watched<Seen>> {
  const { what, who, expected, timeoutMs, signal, effects, info } = options
  const start = effects.now()
  let printedAt = start
  let seen: Seen | undefined
  let lost: Lost | undefined
  const say = (line: string): void => {
    info(line)
    printedAt = effects.now()
  }
  const cancelled = (cause: unknown): ActionFailure =>
    new ActionFailure({ code: 'E_CANCELLED', happened: `The step was cancelled while it waited for the ${what}.`, cause })
  const atTimeout = (): Watched<Seen> => {
    const silence = lost === undefined ? 0 : effects.now() - lost.since
    // A hiccup at the very end is not why the time was not enough.
    if (lost === undefined || (seen !== undefined && silence < timeoutMs * HICCUP)) return { end: 'timeout', seen }
    throw lostForGood({ options, error: lost.error, silence, status: seen === undefined ? 'none' : options.statusOf(seen) })
  }
  for (;;) {
    try {
      seen = await options.ask(signal)
      if (lost !== undefined) say(`The ${who} answers again, after ${formatDuration(effects.now() - lost.since)}.`)
      lost = undefined
      options.onSeen(seen, effects.now() - start, say)
      if (options.isFinal(seen)) return { end: 'final', seen }
    } catch (error) {
      if (signal.aborted && abortKind(signal) === 'deadline') return atTimeout()
      if (signal.aborted) throw cancelled(error)
      if (!(error instanceof RequestFailure)) throw error
      const before = lost
      lost = nextLost(before, error, effects.now())
      if (lost.refusals >= REFUSALS) throw options.refused?.(error) ?? requestFailure(error, `Reading the status of the ${what}`)
      if (before === undefined)
        say(`The status could not be read: ${sentence(error.message)} Asking again until ${formatDuration(timeoutMs)} are over.`)
    }
    const now = effects.now()
    const left = start + timeoutMs - now
    if (left <= 0) return atTimeout()
    sayStill(now)
    const wanted = Math.max(nextPollDelay({ elapsed: now - start, expected }), lost?.error.retryAfterMs ?? 0)
    try {
      await sleepWithHeartbeat(Math.min(left, wanted))
    } catch (error) {
      if (abortKind(signal) === 'deadline') return atTimeout()
      throw cancelled(error)
    }
    if (lost?.error.status === 429) options.onRateLimit(effects.now() - now)
  }

  function sayStill(now: number): void {
    if (now - printedAt < HEARTBEAT_MS) return
    const elapsed = now - start
    if (lost === undefined) say(options.still(seen, elapsed))
    else say(`No answer for ${formatDuration(now - lost.since)}; ${formatDuration(elapsed)} in all.`)
  }

  // A `Retry-After` may be long: the log must not fall silent meanwhile.
  async function sleepWithHeartbeat(delay: number): Promise<void> {
    const end = effects.now() + delay
    for (let left = delay; left > 0; left = end - effects.now()) {
      await effects.sleep(Math.min(left, HEARTBEAT_MS), signal)
      if (end > effects.now()) sayStill(effects.now())
    }
  }
}

/** True for a failure that was seen when the time was over, and so is a timeout as well: what was watched may go on unseen. */
export function isLostAtTimeout({ code }: ActionFailure, remainingMs: number): boolean {
  return remainingMs === 0 && code !== 'E_CANCELLED' && code !== 'E_NOT_FOUND'
}

function nextLost(lost: Lost | undefined, error: RequestFailure, now: number): Lost {
  const refusals = isDefinite(error) ? (lost?.refusals ?? 0) + 1 : 0
  return { since: lost?.since ?? now, error, refusals }
}

/** An answer that says no, as against one that did not come: 4xx, but for "too slow" and "too many". */
function isDefinite({ kind, status }: RequestFailure): boolean {
  return kind === 'http' && status !== null && status >= 400 && status < 500 && status !== 408 && status !== 429
}

function lostForGood<Seen>({
  options: { what, who, timeoutMs },
  error,
  silence,
  status,
}: {
  options: WatchOptions<Seen>
  error: RequestFailure
  silence: number
  status: string
}): ActionFailure {
  const failure = requestFailure(error, `Reading the status of the ${what}`)
  return new ActionFailure({
    code: failure.code,
    happened:
      `The connection to the ${who} was lost: for the last ${formatDuration(silence)} of the ${formatDuration(timeoutMs)} ` +
      `no usable answer came. The last status that was seen is ${status}.\n${failure.message}`,
    tried: 'The status was asked for again and again until the timeout.',
    next: failure.next,
    cause: error,
  })
}
