import { sql } from 'kysely'
import type { ExportProgress } from '../../contract/bulk-export.ts'
import type { Database, DatabaseTransaction } from '../database/schema.ts'

export interface ProgressRow {
  readonly runs_total: number
  readonly runs_done: number
  readonly rows_exported: number
  readonly bytes_exported: number
  readonly files_exported: number
  readonly late_rows: number
  /** Share of the export's range that is done, 0 to 1. */
  readonly share: number
}

/** Sums over the runs of exports, by the exports' ids. */
export async function readProgress(db: Database | DatabaseTransaction, exportIds: readonly string[]): Promise<Map<string, ProgressRow>> {
  if (exportIds.length === 0) return new Map()
  const { rows } = await sql<ProgressRow & { export_id: string }>`
    select export_id, count(*)::int as runs_total, (count(*) filter (where status = 'COMPLETED'))::int as runs_done,
      sum(rows_written)::float8 as rows_exported, sum(bytes_written)::float8 as bytes_exported,
      sum(jsonb_array_length(files))::int as files_exported, sum(late_rows)::float8 as late_rows,
      (sum(case when status = 'COMPLETED' then extract(epoch from window_end - window_start)
        when cursor_time is not null then extract(epoch from cursor_time - window_start) else 0 end)
        / sum(extract(epoch from window_end - window_start)))::float8 as share
    from bulk_export_runs where export_id = any(${exportIds}::uuid[]) group by export_id`.execute(db)
  return new Map(rows.map((row) => [row.export_id, row]))
}

const NOTHING: ProgressRow = { runs_total: 0, runs_done: 0, rows_exported: 0, bytes_exported: 0, files_exported: 0, late_rows: 0, share: 0 }

/** Progress as answered. The time left follows from the time so far and the share of the range that is done. */
export function toProgress(
  row: ProgressRow = NOTHING,
  { status, startedAt, now }: { status: string; startedAt: Date | null; now: Date },
): ExportProgress {
  const { share, ...sums } = row
  let left: number | null = null
  if (status === 'COMPLETED') left = 0
  else if (status === 'RUNNING' && startedAt !== null && share > 0) {
    left = Math.round((Math.max(0, now.getTime() - startedAt.getTime()) / 1000) * ((1 - Math.min(share, 1)) / share))
  }
  return {
    runs_total: sums.runs_total,
    runs_done: sums.runs_done,
    rows_exported: sums.rows_exported,
    bytes_exported: sums.bytes_exported,
    files_exported: sums.files_exported,
    late_rows: sums.late_rows,
    estimated_seconds_left: left,
  }
}
