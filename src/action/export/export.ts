import type { ExportBody } from '../../client/bulk-export.ts'
import type { DestinationAnswer, ExportAnswer } from '../../client/bulk-export-answers.ts'
import { startDeadline } from '../../client/deadline.ts'
import { RequestFailure } from '../../client/failure.ts'
import { isFinalExportStatus } from '../../contract/export-status.ts'
import type { Status } from '../registry.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { requestFailure } from '../report/request-failure.ts'
import { cancelOrLeave } from './cancel.ts'
import { createExport, inTime } from './create.ts'
import type { ExportDeps, ExportPolicy, Tell } from './deps.ts'
import { pathOfExport, provideDestination } from './destination.ts'
import { resolveMoment } from './moment.ts'
import type { ExportReport } from './report.ts'
import { liveSchedule, scheduleConflict } from './schedule.ts'
import { seeThrough } from './see-through.ts'
import { type ExportWish, rangeProblem } from './wish.ts'

/**
 * Exports the traces of a tracing project: finds or creates the destination, creates the export or the schedule, and
 * follows an export to its end. Returns `exported`, `unchanged` (the schedule is there) or `planned`; throws an `ActionFailure`.
 */
export async function exportTraces({ wish, policy, deps }: { wish: ExportWish; policy: ExportPolicy; deps: ExportDeps }): Promise<Status> {
  const { effects, journal, log, signal } = deps
  const { api, once } = deps.bulkExports(wish.apiUrl)
  const deadline = startDeadline({ timeoutMs: wish.timeoutMs, parent: signal, effects })
  let report = firstReport(wish, effects.now())
  const tell: Tell = (changes) => {
    report = { ...report, ...changes }
    journal.setExport(report)
  }
  let made: ExportAnswer | undefined
  try {
    checkRange(report, deps)
    tell({})
    log.info(`Exporting the traces of the tracing project ${wish.projectId} through ${wish.apiUrl}.`)
    const destination = await provideDestination({ wish, dryRun: policy.dryRun, api, signal: deadline.signal, deps })
    const known = await api.listExports(deadline.signal).catch((error: unknown) => {
      throw requestFailure(error, 'Listing the exports')
    })
    if (destination !== null)
      tell({ destination: `${destination.display_name} (${destination.id})`, path: pathOfExport(destination, undefined) })
    const body = bodyOf({ wish, report, destination })
    const live =
      wish.intervalHours === undefined ? undefined : liveSchedule({ exports: known, body, fixedStart: 'at' in wish.start })
    if (live !== undefined && live.changes.length > 0) throw scheduleConflict(live)
    if (live !== undefined) {
      recordExport({ answer: live.schedule, destination, tell, deps })
      log.info(`The schedule ${live.schedule.id} is there already, with the same settings: nothing to do.`)
      return 'unchanged'
    }
    if (policy.dryRun) return planned(report, destination, deps)
    made = await createExport({ body, api, known, signal: deadline.signal, deps })
    recordExport({ answer: made, destination, tell, deps })
    if (wish.intervalHours !== undefined || !wish.wait) {
      journal.save('exportEnded', 'true')
      const not = wish.intervalHours === undefined ? 'export-wait: false: the' : 'A schedule has no end to wait for: the'
      log.info(`${not} export ${made.id} was accepted and is not followed.`)
      return 'exported'
    }
    await seeThrough({ wish, made, policy, once, tell, deps })
    return 'exported'
  } catch (error) {
    const failure = failureOf(error, signal)
    if (failure.code === 'E_CANCELLED' && made !== undefined && !isFinalExportStatus(journal.output('export-status') ?? ''))
      await cancelOrLeave({ exportId: made.id, occasion: 'cancel', policy, once, deps })
    throw failure
  } finally {
    deadline.stop()
  }
}

function firstReport(wish: ExportWish, now: number): ExportReport {
  return {
    id: undefined,
    status: undefined,
    kind: wish.intervalHours === undefined ? 'one-off' : 'scheduled',
    projectId: wish.projectId,
    start: resolveMoment(wish.start, now),
    end: wish.end === undefined ? undefined : resolveMoment(wish.end, now),
    intervalHours: wish.intervalHours,
    filter: wish.filter,
    fields: wish.fields,
    destination: undefined,
    path: undefined,
    rows: 0,
    files: 0,
    days: [],
    failures: [],
    moreFailures: 0,
  }
}

/** Once more: a deploy may have taken the time from `now` to a fixed end. */
function checkRange({ start, end }: ExportReport, { effects, journal, log }: ExportDeps): void {
  if (end === undefined) return
  const problem = rangeProblem({ start, end })
  if (problem !== undefined)
    throw new ActionFailure({ code: 'E_INPUT', happened: `export-end ${problem}.`, tried: 'Nothing was exported.' })
  if (Date.parse(end) <= effects.now()) return
  const sentence = `The range ends in the future (${end}): traces that arrive after the export has read their day are missed.`
  log.warning(sentence)
  journal.note(sentence)
}

function bodyOf({
  wish,
  report,
  destination,
}: {
  wish: ExportWish
  report: ExportReport
  destination: DestinationAnswer | null
}): ExportBody {
  return {
    bulk_export_destination_id: destination?.id ?? '',
    session_id: wish.projectId,
    start_time: report.start,
    ...(report.end === undefined ? {} : { end_time: report.end }),
    ...(wish.intervalHours === undefined ? {} : { interval_hours: wish.intervalHours }),
    ...(wish.filter === undefined ? {} : { filter: wish.filter }),
    ...(wish.fields === undefined ? {} : { export_fields: wish.fields }),
    ...(wish.formatVersion === undefined ? {} : { format_version: wish.formatVersion }),
  }
}

function planned(report: ExportReport, destination: DestinationAnswer | null, { log }: ExportDeps): Status {
  const { start, end, intervalHours, filter, fields } = report
  log.group('Plan: create the export', [
    `destination: ${destination === null ? 'would be created' : destination.id}`,
    `range: ${start} to ${end ?? `every ${intervalHours ?? '?'} h`}`,
    `filter: ${filter ?? 'none'}`,
    `fields: ${fields?.join(', ') ?? 'all'}`,
  ])
  log.info('dry-run: nothing was exported.')
  return 'planned'
}

function recordExport({
  answer,
  destination,
  tell,
  deps: { journal },
}: {
  answer: ExportAnswer
  destination: DestinationAnswer | null
  tell: Tell
  deps: ExportDeps
}): void {
  journal.set('export-id', answer.id)
  journal.set('export-status', answer.status)
  const path = destination === null ? undefined : pathOfExport(destination, answer.interval_hours === null ? answer.id : undefined)
  tell({ id: answer.id, status: answer.status, path })
}

function failureOf(error: unknown, signal: AbortSignal): ActionFailure {
  const foreign = !(error instanceof ActionFailure) && !(error instanceof RequestFailure)
  if (foreign && signal.aborted)
    return new ActionFailure({ code: 'E_CANCELLED', happened: 'The step was cancelled during the export.', cause: error })
  return inTime(requestFailure(error, 'The export'))
}
