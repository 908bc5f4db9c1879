import { z } from 'zod'
import { readExportStatus } from '../contract/export-status.ts'

/**
 * What bulk export answers, as a client reads it (specification 2.6 to 2.8, hosted service): statuses in either letter case,
 * unknown fields kept. Only what a client cannot do without is required; the rest becomes null.
 */

const id = z.string().min(1)
const text = z.string().nullish().transform((value) => value ?? null).catch(null)
const count = z.number().min(0).nullish().transform((value) => value ?? null).catch(null)
const status = z.string().min(1).transform(readExportStatus)

export const destinationAnswerSchema = z.looseObject({
  id,
  display_name: z.string(),
  created_at: text,
  config: z.looseObject({
    bucket_name: z.string(),
    prefix: z.string().nullish().transform((value) => value ?? ''),
    region: text,
    endpoint_url: text,
    include_bucket_in_prefix: z.boolean().nullish().transform((value) => value ?? null).catch(null),
  }),
})
export type DestinationAnswer = z.output<typeof destinationAnswerSchema>

export const exportAnswerSchema = z.looseObject({
  id,
  status,
  status_message: text,
  bulk_export_destination_id: text,
  session_id: text,
  start_time: text,
  end_time: text,
  filter: text,
  format_version: text,
  interval_hours: count,
  export_fields: z.array(z.string()).nullish().transform((value) => value ?? null).catch(null),
  source_bulk_export_id: text,
  progress: z
    .looseObject({ estimated_seconds_left: count })
    .nullish()
    .transform((value) => value ?? null)
    .catch(null),
})
export type ExportAnswer = z.output<typeof exportAnswerSchema>

const resultSchema = z
  .looseObject({ rows_written: count, exported_files: z.array(z.string()).catch([]) })
  .nullish()
  .transform((value) => value ?? null)
  .catch(null)

/** One export run: `rows` and `files` are those written so far, `day` its UTC date, null when the answer does not tell. */
export const exportRunAnswerSchema = z
  .looseObject({
    id,
    status,
    errors: z
      .record(z.string(), z.unknown())
      .nullish()
      .transform((value) => value ?? {})
      .catch({}),
    rows_exported: count,
    start_time: text,
    metadata: z
      .looseObject({ start_time: text, result: resultSchema })
      .nullish()
      .transform((value) => value ?? null)
      .catch(null),
  })
  .transform((run) => ({
    id: run.id,
    status: run.status,
    day: dayOf(run.metadata?.start_time ?? run.start_time),
    rows: run.rows_exported ?? run.metadata?.result?.rows_written ?? 0,
    files: run.metadata?.result?.exported_files ?? [],
    errors: attemptsOf(run.errors),
  }))
export type ExportRunAnswer = z.output<typeof exportRunAnswerSchema>

function dayOf(time: string | null): string | null {
  const day = /^\d{4}-\d\d-\d\d/.exec(time ?? '')?.[0]
  return day === undefined || Number.isNaN(Date.parse(day)) ? null : day
}

/** Texts of the failed attempts, by their number: keys are `retry_0`, `retry_1`, … */
function attemptsOf(errors: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(errors)
    .toSorted(([a], [b]) => numberIn(a) - numberIn(b))
    .map(([, value]) => (typeof value === 'string' ? value : JSON.stringify(value)))
}

function numberIn(key: string): number {
  return Number(/\d+$/.exec(key)?.[0] ?? 0)
}
