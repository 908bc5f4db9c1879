import type { BulkExports } from '../../client/bulk-export.ts'
import type { ExportAnswer, ExportRunAnswer } from '../../client/bulk-export-answers.ts'
import { abortKind } from '../../client/deadline.ts'
import type { Effects } from '../../client/effects.ts'
import { RequestFailure } from '../../client/failure.ts'
import { EXPORT_STATUSES, isFinalExportStatus } from '../../contract/export-status.ts'
import { HEARTBEAT_MS, isDefinite, REFUSALS } from '../follow.ts'
import { formatDuration } from '../parse/duration.ts'
import { nextPollDelay } from '../poll-delay.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { requestFailure } from '../report/request-failure.ts'
import { formatCount, totalsOf } from './report.ts'

/** The part of the timeout that may pass without an answer at its end. */
const HICCUP = 0.1

export type Seen = { answer: ExportAnswer; runs: readonly ExportRunAnswer[] }
export type FollowedExport = { end: 'final'; seen: Seen } | { end: 'timeout'; seen: Seen | undefined }

export type FollowExportOptions = {
  exportId: string
  /** Asks once, without retries. */
  once: Pick<BulkExports, 'getExport' | 'listRuns'>
  timeoutMs: number
  /** Ends the wait: cancelled, or its reason is a `TimeoutError`. */
  signal: AbortSignal
  effects: Effects
  info: (line: string) => void
  onSeen: (seen: Seen) => void
  /** Called with the length of each wait that a 429 asked for. */
  onRateLimit: (waitedMs: number) => void
}

type Lost = { since: number; error: RequestFailure; refusals: number }

/**
 * Follows an export until it has ended or the time is over. Lost connections are waited out. Throws an `ActionFailure` when it was
 * cancelled or refused, and when the time is over and no answer comes any more.
 */
export async function followExport(options: FollowExportOptions): Promise<FollowedExport> {
  const { exportId, once, timeoutMs, signal, effects, info } = options
  const start = effects.now()
  let printedAt = start
  let printed = ''
  let seen: Seen | undefined
  let lost: Lost | undefined
  const say = (line: string): void => {
    info(line)
    printedAt = effects.now()
  }
  for (;;) {
    const before = lost
    try {
      const answer = await once.getExport(exportId, signal)
      seen = { answer, runs: await once.listRuns(exportId, signal) }
      if (before !== undefined) say(`The service answers again, after ${formatDuration(effects.now() - before.since)}.`)
      lost = undefined
      options.onSeen(seen)
      const { done, runs } = totalsOf(seen.runs)
      const key = `${answer.status} ${done} ${runs}`
      if (key !== printed) say(progressLine(seen, effects.now() - start))
      if (!(EXPORT_STATUSES as readonly string[]).includes(answer.status) && !printed.startsWith(`${answer.status} `))
        say(`The status ${answer.status} is not known to this version: waiting on.`)
      printed = key
      if (isFinalExportStatus(answer.status)) return { end: 'final', seen }
    } catch (error) {
      if (signal.aborted && abortKind(signal) === 'deadline') return atTimeout({ lost, seen, timeoutMs, now: effects.now() })
      if (signal.aborted) throw cancelled(error)
      if (!(error instanceof RequestFailure)) throw error
      const refusals = isDefinite(error) ? (before?.refusals ?? 0) + 1 : 0
      lost = { since: before?.since ?? effects.now(), error, refusals }
      if (refusals >= REFUSALS) throw requestFailure(error, 'Reading the status of the export')
      if (before === undefined)
        say(`The status could not be read: ${error.message}. Asking again until ${formatDuration(timeoutMs)} are over.`)
    }
    const now = effects.now()
    const left = start + timeoutMs - now
    if (left <= 0) return atTimeout({ lost, seen, timeoutMs, now })
    const wanted = Math.max(nextPollDelay({ elapsed: now - start, expected: undefined }), lost?.error.retryAfterMs ?? 0)
    try {
      await sleepWithHeartbeat(Math.min(left, wanted))
    } catch (error) {
      if (abortKind(signal) === 'deadline') return atTimeout({ lost, seen, timeoutMs, now: effects.now() })
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
      if (now - printedAt < HEARTBEAT_MS) continue
      if (lost !== undefined) say(`No answer for ${formatDuration(now - lost.since)}; ${formatDuration(now - start)} in all.`)
      else if (seen !== undefined) say(progressLine(seen, now - start))
    }
  }
}

/** `RUNNING after 12 s: 2 of 5 runs, 12,345 rows (1,028 rows/s), about 18 s left`. */
export function progressLine({ answer, runs }: Seen, elapsedMs: number): string {
  const totals = totalsOf(runs)
  const parts = [`${totals.done} of ${totals.runs} runs`, `${formatCount(totals.rows)} rows`]
  if (totals.rows > 0 && elapsedMs >= 1000) parts[1] += ` (${formatCount((totals.rows * 1000) / elapsedMs)} rows/s)`
  const leftMs = isFinalExportStatus(answer.status) ? undefined : timeLeft({ answer, totals, elapsedMs })
  if (leftMs !== undefined) parts.push(`about ${formatDuration(leftMs)} left`)
  const message = answer.status_message === null ? '' : ` (${answer.status_message})`
  return `${answer.status} after ${formatDuration(elapsedMs)}: ${parts.join(', ')}${message}`
}

/** The service's own estimate, or one from the runs that are done. */
function timeLeft({
  answer,
  totals,
  elapsedMs,
}: {
  answer: ExportAnswer
  totals: { runs: number; done: number }
  elapsedMs: number
}): number | undefined {
  const told = answer.progress?.estimated_seconds_left
  if (told !== null && told !== undefined) return told * 1000
  return totals.done === 0 ? undefined : (elapsedMs * (totals.runs - totals.done)) / totals.done
}

function cancelled(cause: unknown): ActionFailure {
  return new ActionFailure({ code: 'E_CANCELLED', happened: 'The step was cancelled while it waited for the export.', cause })
}

function atTimeout({
  lost,
  seen,
  timeoutMs,
  now,
}: {
  lost: Lost | undefined
  seen: Seen | undefined
  timeoutMs: number
  now: number
}): FollowedExport {
  const silence = lost === undefined ? 0 : now - lost.since
  // A hiccup at the very end is not why the time was not enough.
  if (lost === undefined || (seen !== undefined && silence < timeoutMs * HICCUP)) return { end: 'timeout', seen }
  const failure = requestFailure(lost.error, 'Reading the status of the export')
  throw new ActionFailure({
    code: failure.code,
    happened:
      `The connection to the service was lost: for the last ${formatDuration(silence)} of the ${formatDuration(timeoutMs)} ` +
      `no usable answer came. The last status that was seen is ${seen?.answer.status ?? 'none'}.\n${failure.message}`,
    tried: 'The status was asked for again and again until the timeout.',
    next: failure.next,
    cause: lost.error,
  })
}
