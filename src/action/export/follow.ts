import type { BulkExports } from '../../client/bulk-export.ts'
import type { ExportAnswer, ExportRunAnswer } from '../../client/bulk-export-answers.ts'
import type { Effects } from '../../client/effects.ts'
import { EXPORT_STATUSES, isFinalExportStatus } from '../../contract/export-status.ts'
import { formatDuration } from '../parse/duration.ts'
import { watch, type Watched } from '../watch.ts'
import { formatCount, totalsOf } from './report.ts'

export type Seen = { answer: ExportAnswer; runs: readonly ExportRunAnswer[] }
export type FollowedExport = Watched<Seen>

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

/** Follows an export until it has ended or the time is over, as `watch` does. */
export function followExport({ exportId, once, onSeen, ...options }: FollowExportOptions): Promise<FollowedExport> {
  let printed = ''
  return watch<Seen>({
    ...options,
    what: 'export',
    who: 'service',
    expected: undefined,
    ask: async (signal) => ({
      answer: await once.getExport(exportId, signal),
      runs: await once.listRuns(exportId, signal),
    }),
    onSeen: (seen, elapsedMs, say) => {
      onSeen(seen)
      const { status } = seen.answer
      const { done, runs } = totalsOf(seen.runs)
      const key = `${status} ${done} ${runs}`
      if (key !== printed) say(progressLine(seen, elapsedMs))
      if (!(EXPORT_STATUSES as readonly string[]).includes(status) && !printed.startsWith(`${status} `))
        say(`The status ${status} is not known to this version: waiting on.`)
      printed = key
    },
    statusOf: ({ answer }) => answer.status,
    isFinal: ({ answer }) => isFinalExportStatus(answer.status),
    still: (seen, elapsedMs) =>
      seen === undefined ? `Still no status after ${formatDuration(elapsedMs)}.` : progressLine(seen, elapsedMs),
  })
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
