import type { BulkExports } from '../../client/bulk-export.ts'
import type { ExportAnswer } from '../../client/bulk-export-answers.ts'
import { startDeadline } from '../../client/deadline.ts'
import { formatDuration } from '../parse/duration.ts'
import { ActionFailure, toFailure } from '../report/error-codes.ts'
import { isLostAtTimeout } from '../watch.ts'
import { cancelOrLeave } from './cancel.ts'
import type { ExportDeps, ExportPolicy, Tell } from './deps.ts'
import { followExport, type Seen } from './follow.ts'
import { judgeExport } from './judge.ts'
import { failuresOf } from './remedy.ts'
import { daysOf, formatWritten, totalsOf } from './report.ts'
import type { ExportWish } from './wish.ts'

/** Follows an export to its end, records what it writes, and throws an `ActionFailure` unless it ends well. */
export async function seeThrough({
  wish,
  made,
  policy,
  once,
  tell,
  deps,
}: {
  wish: ExportWish
  made: ExportAnswer
  policy: ExportPolicy
  once: BulkExports
  tell: Tell
  deps: ExportDeps
}): Promise<void> {
  const { effects, journal, log, redact, signal } = deps
  const record = ({ answer, runs }: Seen): void => {
    const { rows, files } = totalsOf(runs)
    journal.set('export-status', answer.status)
    journal.set('export-rows', String(rows))
    journal.set('export-files', String(files))
    const { failures, more } = failuresOf(runs, redact)
    tell({ status: answer.status, rows, files, days: daysOf(runs), failures, moreFailures: more })
  }
  log.info(`Waiting for the export ${made.id}, ${formatDuration(wish.timeoutMs)} at most.`)
  const startedAt = effects.now()
  const deadline = startDeadline({ timeoutMs: wish.timeoutMs, parent: signal, effects })
  try {
    const { timeoutMs } = wish
    const options = { exportId: made.id, once, timeoutMs, signal: deadline.signal, effects, info: log.info }
    const following = followExport({ ...options, onSeen: record, onRateLimit: journal.addRateLimitWait })
    const followed = await following.catch(async (error: unknown) => {
      const failure = toFailure(error)
      if (isLostAtTimeout(failure, deadline.remainingMs()))
        await cancelOrLeave({ exportId: made.id, occasion: 'timeout', policy, once, deps })
      throw failure
    })
    if (followed.end === 'timeout') {
      const status = followed.seen?.answer.status ?? 'without a status'
      const tried = await cancelOrLeave({ exportId: made.id, occasion: 'timeout', policy, once, deps })
      const happened = `The export ${made.id} was still ${status} after ${formatDuration(timeoutMs)}.`
      throw new ActionFailure({ code: 'E_EXPORT_TIMEOUT', happened, tried })
    }
    journal.save('exportEnded', 'true')
    const { failures } = failuresOf(followed.seen.runs, redact)
    const told = failures.map(({ day, status, error, remedy }) => `${day}: ${status}: ${error} → ${remedy}`)
    if (told.length > 0) log.group('Failing export runs', told)
    const failure = judgeExport(followed.seen, failures)
    if (failure !== undefined) throw failure
    const took = formatDuration(effects.now() - startedAt)
    log.info(`The export ${made.id} is complete: ${formatWritten(totalsOf(followed.seen.runs))}, after ${took}.`)
  } finally {
    deadline.stop()
  }
}
