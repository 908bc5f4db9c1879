import type { ExportBody } from '../../client/bulk-export.ts'
import type { ExportAnswer } from '../../client/bulk-export-answers.ts'
import { EXPORTABLE_FIELDS } from '../../contract/exportable-fields.ts'
import { toInstant } from '../../contract/instant.ts'
import type { Change } from '../journal.ts'
import { ActionFailure } from '../report/error-codes.ts'

/** A schedule that is there already, and in what it differs from the one that is wanted. */
export type LiveSchedule = { schedule: ExportAnswer; changes: Change[] }

/**
 * The active schedule of the same tracing project and destination that differs least from the one that is wanted; undefined when there
 * is none. A beginning that is relative (`fixedStart` false) is another one in every step: it is not compared.
 */
export function liveSchedule({
  exports,
  body,
  fixedStart,
}: {
  exports: readonly ExportAnswer[]
  body: ExportBody
  fixedStart: boolean
}): LiveSchedule | undefined {
  return exports
    .filter(
      (one) =>
        one.interval_hours !== null &&
        one.status === 'INTERVAL_SCHEDULED' &&
        one.session_id?.toLowerCase() === body.session_id &&
        one.bulk_export_destination_id?.toLowerCase() === body.bulk_export_destination_id.toLowerCase(),
    )
    .map((schedule) => ({ schedule, changes: changesOf({ schedule, body, fixedStart }) }))
    .toSorted((a, b) => a.changes.length - b.changes.length)[0]
}

function changesOf({ schedule, body, fixedStart }: { schedule: ExportAnswer; body: ExportBody; fixedStart: boolean }): Change[] {
  const changes: Change[] = []
  const compare = (field: string, live: string, wanted: string): void => {
    if (live !== wanted) changes.push({ field, live, wanted })
  }
  if (fixedStart) compare('start_time', toInstant(schedule.start_time) ?? 'none', toInstant(body.start_time) ?? 'none')
  compare('interval_hours', String(schedule.interval_hours), String(body.interval_hours))
  compare('filter', schedule.filter || 'none', body.filter ?? 'none')
  compare('export_fields', fieldList(schedule.export_fields), fieldList(body.export_fields))
  if (body.format_version !== undefined) compare('format_version', schedule.format_version ?? 'none', body.format_version)
  return changes
}

/** The order of fields is not a difference, and all of them are the same as none. */
function fieldList(fields: readonly string[] | null | undefined): string {
  const sorted = [...new Set(fields ?? [])].toSorted()
  return sorted.length === 0 || EXPORTABLE_FIELDS.every((field) => sorted.includes(field)) ? 'all' : sorted.join(', ')
}

export function scheduleConflict({ schedule, changes }: LiveSchedule): ActionFailure {
  const differences = changes.map(({ field, live, wanted }) => `${field} is ${live}, wanted is ${wanted}`).join('; ')
  return new ActionFailure({
    code: 'E_CONFLICT',
    happened:
      `There is a schedule of this tracing project and destination already (${schedule.id}), with other settings: ` +
      `${differences}.`,
    tried: 'Nothing was changed: the settings of a schedule are fixed at its creation.',
    next: `Take over the settings that are live, or cancel the schedule (PATCH /api/v1/bulk-exports/${schedule.id}) and run the step again.`,
  })
}
