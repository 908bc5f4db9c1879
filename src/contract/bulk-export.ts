import { z } from 'zod'
import { EXPORTABLE_FIELDS } from './exportable-fields.ts'
import { exportRunStatusSchema, exportStatusSchema, readExportStatus } from './export-status.ts'
import { FilterError } from './filter/filter-error.ts'
import { parseFilter } from './filter/parse.ts'
import { toInstant } from './instant.ts'

export const INTERVAL_HOURS_MIN = 1
export const INTERVAL_HOURS_MAX = 168

/** Longest range of one export, in days: one export run each. */
export const EXPORT_DAYS_MAX = 3660

export const FORMAT_VERSIONS = ['v1', 'v2_beta'] as const
export type FormatVersion = (typeof FORMAT_VERSIONS)[number]

export const COMPRESSIONS = ['none', 'gzip', 'snappy', 'zstandard'] as const
export type Compression = (typeof COMPRESSIONS)[number]

export const FILTER_MAX = 100_000

/** A time of a request, brought to UTC with microseconds. Years beyond 1900 to 2200 are slips of the pen. */
const instant = z
  .string()
  .max(64)
  .transform((text, context) => {
    const time = toInstant(text)
    if (time !== null && time >= '1900' && time < '2201') return time
    context.addIssue({ code: 'custom', message: 'Input should be a valid datetime in ISO 8601', params: { type: 'datetime_parsing' } })
    return z.NEVER
  })
  .meta({ type: 'string', format: 'date-time' })

const filter = z
  .string()
  .max(FILTER_MAX)
  .superRefine((text, context) => {
    if (text === '') return
    try {
      parseFilter(text)
    } catch (error) {
      if (!(error instanceof FilterError)) throw error
      context.addIssue({ code: 'custom', message: `the filter cannot be used: ${error.message}` })
    }
  })

const exportFields = z.array(z.enum(EXPORTABLE_FIELDS)).min(1).max(EXPORTABLE_FIELDS.length)

/** The body of `POST /api/v1/bulk-exports` (specification 2.7). */
export const bulkExportCreateSchema = z
  .object({
    bulk_export_destination_id: z.uuid().transform((id) => id.toLowerCase()),
    session_id: z.uuid().transform((id) => id.toLowerCase()),
    start_time: instant,
    end_time: instant.nullish(),
    filter: filter.nullish(),
    format: z.literal('Parquet').default('Parquet'),
    format_version: z.enum(FORMAT_VERSIONS).default('v1'),
    compression: z.enum(COMPRESSIONS).default('zstandard'),
    interval_hours: z.int().min(INTERVAL_HOURS_MIN).max(INTERVAL_HOURS_MAX).nullish(),
    export_fields: exportFields.nullish(),
  })
  .superRefine(({ start_time, end_time, interval_hours, export_fields }, context) => {
    const fault = (field: string, message: string) => context.addIssue({ code: 'custom', path: [field], message })
    const scheduled = interval_hours !== null && interval_hours !== undefined
    const ended = end_time !== null && end_time !== undefined
    if (scheduled && ended) fault('end_time', 'end_time must be omitted for a scheduled export (one with interval_hours)')
    if (!scheduled && !ended) fault('end_time', 'end_time is required for a one-off export; a scheduled one has interval_hours instead')
    if (ended && end_time <= start_time) fault('end_time', 'end_time must be later than start_time: it is exclusive')
    if (ended && Date.parse(end_time) - Date.parse(start_time) > EXPORT_DAYS_MAX * 86_400_000) {
      fault('end_time', `the range must not be longer than ${EXPORT_DAYS_MAX} days: split the export`)
    }
    if (export_fields && new Set(export_fields).size !== export_fields.length) fault('export_fields', 'export_fields must not name a field twice')
  })
export type BulkExportCreate = z.output<typeof bulkExportCreateSchema>

/** The body of `PATCH /api/v1/bulk-exports/{export_id}`: the only change there is, in any letter case. */
export const bulkExportPatchSchema = z.object({
  status: z
    .string()
    .default('Cancelled')
    .refine((status) => readExportStatus(status) === 'CANCELLED', "status should be 'Cancelled': nothing else of an export can change"),
})

const uuid = z.uuid()
const time = z.iso.datetime()
const count = z.int().min(0)

/** Where an export stands. The estimate is null until there is something to estimate from. */
export const exportProgressSchema = z.looseObject({
  runs_total: count,
  runs_done: count,
  rows_exported: count,
  bytes_exported: count,
  files_exported: count,
  late_rows: count,
  estimated_seconds_left: count.nullable(),
})
export type ExportProgress = z.infer<typeof exportProgressSchema>

/** An export, as answered (specification 2.7, hosted service). */
export const bulkExportSchema = z.looseObject({
  id: uuid,
  tenant_id: uuid,
  bulk_export_destination_id: uuid,
  session_id: uuid,
  all_experiments: z.boolean(),
  start_time: time,
  end_time: time.nullable(),
  filter: z.string().nullable(),
  format: z.literal('Parquet'),
  format_version: z.enum(FORMAT_VERSIONS),
  compression: z.enum(COMPRESSIONS),
  interval_hours: z.int().nullable(),
  export_fields: z.array(z.string()).nullable(),
  source_bulk_export_id: uuid.nullable(),
  status: exportStatusSchema,
  status_message: z.string().nullable(),
  created_at: time,
  updated_at: time,
  finished_at: time.nullable(),
  progress: exportProgressSchema,
})
export type BulkExport = z.infer<typeof bulkExportSchema>

export const pendingUploadSchema = z.looseObject({ target_cursor: z.string().nullable(), file_path: z.string(), rows_count: count })

/** An export run, as answered (specification 2.8, hosted service). */
export const bulkExportRunSchema = z.looseObject({
  id: uuid,
  bulk_export_id: uuid,
  session_id: uuid,
  status: exportRunStatusSchema,
  retry_number: count,
  errors: z.record(z.string(), z.string()).nullable(),
  rows_exported: count,
  bytes_exported: count,
  late_rows: count,
  created_at: time,
  updated_at: time,
  start_time: time.nullable(),
  end_time: time.nullable(),
  finished_at: time.nullable(),
  metadata: z.looseObject({
    prefix: z.string(),
    start_time: time,
    end_time: time,
    execution_backend: z.string().nullable(),
    result: z
      .looseObject({
        rows_written: count,
        exported_files: z.array(z.string()),
        export_path: z.string(),
        latest_cursor: z.string().nullable(),
        pending_upload: pendingUploadSchema.nullable(),
      })
      .nullable(),
  }),
})
export type BulkExportRun = z.infer<typeof bulkExportRunSchema>

export function exportNotFound(exportId: string): string {
  return `Bulk export ${exportId} not found.`
}

export function exportRunNotFound(runId: string): string {
  return `Bulk export run ${runId} not found.`
}
