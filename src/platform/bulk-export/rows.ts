import { type RawBuilder, sql } from 'kysely'
import type { BulkExportRow, BulkExportRunRow } from '../database/schema.ts'

/** A time with its microseconds, which a JavaScript date would lose: `2026-11-20T08:00:00.000000Z`. */
export function exact(column: string): RawBuilder<string | null> {
  return sql`to_char(${sql.ref(column)} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}

/** An export with its range to the microsecond. */
export type ExportRow = BulkExportRow & { readonly start_text: string; readonly end_text: string | null }

export const EXPORT_RANGE = [exact('bulk_exports.start_time').as('start_text'), exact('bulk_exports.end_time').as('end_text')] as const

/** An export run with its window and cursor to the microsecond. */
export type RunRow = BulkExportRunRow & {
  readonly window_start_text: string
  readonly window_end_text: string
  readonly cursor_text: string | null
}

export const RUN_TIMES = [
  exact('bulk_export_runs.window_start').as('window_start_text'),
  exact('bulk_export_runs.window_end').as('window_end_text'),
  exact('bulk_export_runs.cursor_time').as('cursor_text'),
] as const

/** What an answer shows of a cursor. */
export function cursorText(time: string, id: string): string {
  return `${time} ${id}`
}
