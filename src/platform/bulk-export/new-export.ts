import { randomUUID } from 'node:crypto'
import type { DatabaseTransaction } from '../database/schema.ts'
import type { ExportRow } from './rows.ts'
import { cutIntoDays } from './windows.ts'

export interface NewExport {
  readonly workspaceId: string
  readonly destinationId: string
  readonly sessionId: string
  readonly start: string
  readonly end: string | null
  readonly filter: string | null
  readonly formatVersion: ExportRow['format_version']
  readonly compression: ExportRow['compression']
  readonly exportFields: ExportRow['export_fields']
  readonly intervalHours: number | null
  readonly source: { readonly id: string; readonly slot: number } | null
  readonly now: Date
  readonly dueAt: Date | null
}

/** Stores an export and one run for each day of its range. @returns its id; null for a slot that has been spawned already. */
export async function insertExport(trx: DatabaseTransaction, made: NewExport): Promise<string | null> {
  const id = randomUUID()
  const windows = made.end === null ? [] : cutIntoDays({ start: made.start, end: made.end })
  const row = await trx
    .insertInto('bulk_exports')
    .values({
      id,
      workspace_id: made.workspaceId,
      destination_id: made.destinationId,
      session_id: made.sessionId,
      start_time: made.start,
      end_time: made.end,
      filter: made.filter,
      format_version: made.formatVersion,
      compression: made.compression,
      interval_hours: made.intervalHours,
      export_fields: made.exportFields === null ? null : JSON.stringify(made.exportFields),
      source_export_id: made.source?.id ?? null,
      slot: made.source?.slot ?? null,
      next_due_at: made.dueAt,
      status: made.intervalHours === null ? 'CREATED' : 'INTERVAL_SCHEDULED',
      status_message: null,
      run_count: windows.length,
      created_at: made.now,
      updated_at: made.now,
    })
    .onConflict((conflict) => conflict.columns(['source_export_id', 'slot']).where('source_export_id', 'is not', null).doNothing())
    .returning('id')
    .executeTakeFirst()
  if (row === undefined) return null
  for (let from = 0; from < windows.length; from += 1000) {
    const batch = windows.slice(from, from + 1000).map(({ start, end }, index) => ({
      id: randomUUID(),
      export_id: id,
      number: from + index,
      status: 'CREATED' as const,
      window_start: start,
      window_end: end,
      not_before: made.now,
      created_at: made.now,
      updated_at: made.now,
    }))
    await trx.insertInto('bulk_export_runs').values(batch).execute()
  }
  return id
}
