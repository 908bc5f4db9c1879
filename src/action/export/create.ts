import type { BulkExports, ExportBody } from '../../client/bulk-export.ts'
import type { ExportAnswer } from '../../client/bulk-export-answers.ts'
import { capOf } from '../../client/bulk-export-caps.ts'
import { RequestFailure } from '../../client/failure.ts'
import { withGrace } from '../cancellation.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { requestFailure } from '../report/request-failure.ts'
import type { ExportDeps } from './deps.ts'

/** How long the answer to the creation is still waited for after a cancellation. */
const ANSWER_GRACE_MS = 1500

/** Creates the export. What is asked for is left for post until the answer is there. */
export async function createExport({
  body,
  api,
  known,
  signal,
  deps: { effects, journal, log, ...deps },
}: {
  body: ExportBody
  api: BulkExports
  known: readonly ExportAnswer[]
  signal: AbortSignal
  deps: ExportDeps
}): Promise<ExportAnswer> {
  const pending = body.interval_hours === undefined ? 'create the export' : 'create the scheduled export'
  if (deps.signal.aborted)
    throw new ActionFailure({ code: 'E_CANCELLED', happened: 'The step was cancelled before anything was exported.' })
  const grace = withGrace({ signal, ms: ANSWER_GRACE_MS, effects })
  journal.save('pending', pending)
  try {
    const made = await api.createExport({ body, known: known.map(({ id }) => id), signal: grace.signal })
    journal.save('exportId', made.id)
    journal.save('pending', '')
    log.info(`Created the ${body.interval_hours === undefined ? 'export' : 'scheduled export'} ${made.id}.`)
    return made
  } catch (error) {
    const failure = creationFailure(error)
    if (failure.code === 'E_CANCELLED' || failure.code === 'E_EXPORT_TIMEOUT') {
      const sentence = `The step asked to ${pending} and saw no answer: it may have happened.`
      log.info(sentence)
      journal.note(sentence)
    } else journal.save('pending', '')
    throw failure
  } finally {
    grace.stop()
  }
}

function creationFailure(error: unknown): ActionFailure {
  const failure = inTime(requestFailure(error, 'Creating the export'))
  if (!(error instanceof RequestFailure)) return failure
  const { code, message: happened, tried } = failure
  const other = (next: string): ActionFailure =>
    new ActionFailure({ code, happened, ...(tried === undefined ? {} : { tried }), next, cause: error })
  const cap = capOf(error)
  if (cap === 'hourly')
    return other(
      'This is no rate limit but the cap on exports that a workspace may create in an hour: run the step later, or export less often.',
    )
  if (cap === 'schedules')
    return other(
      'This is no rate limit but the cap on active schedules: cancel one that is not needed any more. Waiting does not help.',
    )
  if (code === 'E_NOT_FOUND')
    return other('Check export-project-id, the destination and workspace-id: one of them does not exist in this workspace.')
  if (code === 'E_AUTH') return other('Check api-key and workspace-id; bulk export is part of the Plus and Enterprise plans only.')
  return failure
}

/** The time that is over is that of the export. */
export function inTime(failure: ActionFailure): ActionFailure {
  if (failure.code !== 'E_TIMEOUT') return failure
  const { message: happened, tried, cause } = failure
  return new ActionFailure({ code: 'E_EXPORT_TIMEOUT', happened, ...(tried === undefined ? {} : { tried }), cause })
}
