import { type BulkExportRun, exportRunNotFound } from '../../contract/bulk-export.ts'
import type { DestinationConfig } from '../../contract/destination.ts'
import { HttpProblem } from '../http/problem.ts'
import type { ExportContext } from './context.ts'
import { type ExportPlace, findExport } from './exports.ts'
import { folderOf, rootOf } from './layout.ts'
import { cursorText, RUN_TIMES, type RunRow } from './rows.ts'

type ShownRow = RunRow & Readonly<{ session_id: string; workspace_id: string; format_version: 'v1' | 'v2_beta'; config: DestinationConfig | null }>

function selectRuns({ db }: ExportContext) {
  return db
    .selectFrom('bulk_export_runs')
    .innerJoin('bulk_exports', 'bulk_exports.id', 'bulk_export_runs.export_id')
    .leftJoin('export_destinations', 'export_destinations.id', 'bulk_exports.destination_id')
    .selectAll('bulk_export_runs')
    .select(RUN_TIMES)
    .select(['bulk_exports.session_id', 'bulk_exports.workspace_id', 'bulk_exports.format_version', 'export_destinations.config'])
}

/** The runs of an export, by their windows. @throws {HttpProblem} 404. */
export async function listRuns(context: ExportContext, place: ExportPlace): Promise<BulkExportRun[]> {
  await findExport(context, place)
  const rows = await selectRuns(context).where('export_id', '=', place.exportId).orderBy('bulk_export_runs.number').execute()
  return rows.map((row) => toRun(row as unknown as ShownRow))
}

/** @throws {HttpProblem} 404. */
export async function readRun(context: ExportContext, { runId, ...place }: ExportPlace & { runId: string }): Promise<BulkExportRun> {
  await findExport(context, place)
  const row = await selectRuns(context).where('export_id', '=', place.exportId).where('bulk_export_runs.id', '=', runId).executeTakeFirst()
  if (row === undefined) throw new HttpProblem(404, exportRunNotFound(runId))
  return toRun(row as unknown as ShownRow)
}

/** The runs of all exports that a schedule has spawned, oldest first. @throws {HttpProblem} 404. */
export async function listRunsOfSchedule(
  context: ExportContext,
  { workspaceId, scheduleId, limit, offset }: { workspaceId: string; scheduleId: string; limit: number; offset: number },
): Promise<BulkExportRun[]> {
  await findExport(context, { workspaceId, exportId: scheduleId })
  const rows = await selectRuns(context)
    .where('bulk_exports.source_export_id', '=', scheduleId)
    .orderBy('bulk_exports.slot')
    .orderBy('bulk_export_runs.number')
    .limit(limit)
    .offset(offset)
    .execute()
  return rows.map((row) => toRun(row as unknown as ShownRow))
}

function toRun(row: ShownRow): BulkExportRun {
  const { config } = row
  const bucket = config?.bucket_name ?? ''
  const folder =
    config === null
      ? ''
      : folderOf({
          config,
          exportId: row.export_id,
          workspaceId: row.workspace_id,
          sessionId: row.session_id,
          formatVersion: row.format_version,
          windowStart: row.window_start,
        })
  const begun = row.started_at !== null
  const started = row.started_at?.toISOString() ?? null
  return {
    id: row.id,
    bulk_export_id: row.export_id,
    session_id: row.session_id,
    status: row.status,
    retry_number: row.retry_number,
    errors: row.errors,
    rows_exported: Number(row.rows_written),
    bytes_exported: Number(row.bytes_written),
    late_rows: Number(row.late_rows),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    start_time: started,
    end_time: row.finished_at?.toISOString() ?? null,
    finished_at: row.finished_at?.toISOString() ?? null,
    metadata: {
      prefix: config === null ? '' : rootOf(config),
      start_time: row.window_start_text,
      end_time: row.window_end_text,
      execution_backend: null,
      result: begun
        ? {
            rows_written: Number(row.rows_written),
            exported_files: row.files.map(({ key }) => `${bucket}/${key}`),
            export_path: `${bucket}/${folder}`,
            latest_cursor: row.cursor_text === null ? null : cursorText(row.cursor_text, row.cursor_id as string),
            pending_upload:
              row.pending === null
                ? null
                : {
                    target_cursor: cursorText(row.pending.cursor.time, row.pending.cursor.id),
                    file_path: `${bucket}/${row.pending.key}`,
                    rows_count: row.pending.rows,
                  },
          }
        : null,
    },
  }
}
