import { sql } from 'kysely'
import { type BulkExport, type BulkExportCreate, exportNotFound } from '../../contract/bulk-export.ts'
import { destinationNotFound } from '../../contract/destination.ts'
import { isFinalExportStatus } from '../../contract/export-status.ts'
import { projectNotFound } from '../../contract/tracing-project.ts'
import { announce } from '../database/notifications.ts'
import type { DatabaseTransaction } from '../database/schema.ts'
import { HttpProblem } from '../http/problem.ts'
import type { ExportContext } from './context.ts'
import type { Listing } from './destinations.ts'
import { insertExport } from './new-export.ts'
import { readProgress, toProgress } from './progress.ts'
import { EXPORT_RANGE, type ExportRow } from './rows.ts'
import { dueOfSlot } from './schedules.ts'
import { endExport } from './work/states.ts'

/** Plans that have bulk export (specification 1.5). */
const PLANS: readonly string[] = ['plus', 'enterprise']

/**
 * Bulk export is part of the Plus and Enterprise plans.
 * @throws {HttpProblem} 403.
 */
export function judgePlan(plan: string): void {
  if (PLANS.includes(plan)) return
  throw new HttpProblem(403, `Bulk export is available on the Plus and Enterprise plans only; this workspace has the plan '${plan}'.`)
}

/**
 * Makes an export with its runs, or a schedule.
 * @throws {HttpProblem} 404 for a destination or a tracing project that the workspace does not have, 429 beyond its limits.
 */
export async function createExport(
  context: ExportContext,
  { workspaceId, body }: { workspaceId: string; body: BulkExportCreate },
): Promise<BulkExport> {
  const { db, clock } = context
  const id = await db.transaction().execute(async (trx) => {
    await judgeReferences(trx, workspaceId, body)
    const interval = body.interval_hours ?? null
    await judgeLimits(trx, { context, workspaceId, scheduled: interval !== null })
    const now = clock.now()
    const made = await insertExport(trx, {
      workspaceId,
      destinationId: body.bulk_export_destination_id,
      sessionId: body.session_id,
      start: body.start_time,
      end: body.end_time ?? null,
      filter: body.filter || null,
      formatVersion: body.format_version,
      compression: body.compression,
      exportFields: body.export_fields ?? null,
      intervalHours: interval,
      source: null,
      now,
      dueAt: interval === null ? null : dueOfSlot(context, { start: body.start_time, intervalHours: interval, slot: 0, createdAt: now }),
    })
    await announce(trx, 'work')
    return made as string
  })
  return readExport(context, { workspaceId, exportId: id })
}

async function judgeReferences(trx: DatabaseTransaction, workspaceId: string, body: BulkExportCreate): Promise<void> {
  const find = (table: 'export_destinations' | 'tracing_projects', id: string) =>
    trx.selectFrom(table).select('id').where('id', '=', id).where('workspace_id', '=', workspaceId).executeTakeFirst()
  if ((await find('export_destinations', body.bulk_export_destination_id)) === undefined) {
    throw new HttpProblem(404, destinationNotFound(body.bulk_export_destination_id))
  }
  if ((await find('tracing_projects', body.session_id)) === undefined) throw new HttpProblem(404, projectNotFound(body.session_id))
}

/** Two limits of the hosted service; off on self-hosted installations. */
async function judgeLimits(
  trx: DatabaseTransaction,
  { context, workspaceId, scheduled }: { context: ExportContext; workspaceId: string; scheduled: boolean },
): Promise<void> {
  const { creationsAnHour, schedulesMax } = context.settings
  if (creationsAnHour === null && schedulesMax === null) return
  // Requests that come together are counted one after the other.
  await trx.selectFrom('workspaces').select('id').where('id', '=', workspaceId).forUpdate().execute()
  const count = async (condition: ReturnType<typeof sql>) => {
    const { rows } = await sql<{ n: number }>`
      select count(*)::int as n from bulk_exports where workspace_id = ${workspaceId} and ${condition}`.execute(trx)
    return rows[0]?.n ?? 0
  }
  const hourAgo = new Date(context.clock.now().getTime() - 3_600_000)
  if (creationsAnHour !== null && (await count(sql`created_at > ${hourAgo}`)) >= creationsAnHour) {
    const rule = `a workspace may create ${creationsAnHour} exports an hour, those that schedules spawn among them`
    throw new HttpProblem(429, `Too many exports: ${rule}. Try again later.`, { 'Retry-After': '60' })
  }
  if (scheduled && schedulesMax !== null && (await count(sql`status = 'INTERVAL_SCHEDULED'`)) >= schedulesMax) {
    throw new HttpProblem(429, `Too many schedules: a workspace may have ${schedulesMax} active ones. Cancel one first; waiting does not help.`)
  }
}

/** Newest first. */
export async function listExports(context: ExportContext, { workspaceId, limit, offset }: Listing): Promise<BulkExport[]> {
  const rows = await context.db
    .selectFrom('bulk_exports')
    .selectAll()
    .select(EXPORT_RANGE)
    .where('workspace_id', '=', workspaceId)
    .orderBy('number', 'desc')
    .limit(limit)
    .offset(offset)
    .execute()
  return toAnswers(context, rows as ExportRow[])
}

/** @throws {HttpProblem} 404. */
export async function readExport(context: ExportContext, place: ExportPlace): Promise<BulkExport> {
  const [answer] = await toAnswers(context, [await findExport(context, place)])
  return answer as BulkExport
}

export interface ExportPlace {
  readonly workspaceId: string
  readonly exportId: string
}

/** @throws {HttpProblem} 404. */
export async function findExport({ db }: Pick<ExportContext, 'db'>, { workspaceId, exportId }: ExportPlace): Promise<ExportRow> {
  const row = await db
    .selectFrom('bulk_exports')
    .selectAll()
    .select(EXPORT_RANGE)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', exportId)
    .executeTakeFirst()
  if (row === undefined) throw new HttpProblem(404, exportNotFound(exportId))
  return row as ExportRow
}

/**
 * Cancels an export: its runs end with it, and their workers store nothing any more. Of a schedule only the spawning ends.
 * One that is cancelled already stays so.
 * @throws {HttpProblem} 404; 409 for one that has ended in another way: final states are final.
 */
export async function cancelExport(context: ExportContext, place: ExportPlace): Promise<BulkExport> {
  await findExport(context, place)
  await context.db.transaction().execute(async (trx) => {
    const { status } = await trx.selectFrom('bulk_exports').select('status').where('id', '=', place.exportId).forUpdate().executeTakeFirstOrThrow()
    if (status === 'CANCELLED') return
    if (isFinalExportStatus(status)) {
      throw new HttpProblem(409, `Bulk export ${place.exportId} is ${status}: it has ended, and cannot be cancelled. Create a new one instead.`)
    }
    const now = context.clock.now()
    await endExport(trx, { exportId: place.exportId, from: status, to: 'CANCELLED', reason: 'cancelled by a user', now })
  })
  return readExport(context, place)
}

async function toAnswers({ db, clock }: ExportContext, rows: readonly ExportRow[]): Promise<BulkExport[]> {
  const progress = await readProgress(db, rows.map((row) => row.id))
  const now = clock.now()
  return rows.map((row) => ({
    id: row.id,
    tenant_id: row.workspace_id,
    bulk_export_destination_id: row.destination_id,
    session_id: row.session_id,
    all_experiments: false,
    start_time: row.start_text,
    end_time: row.end_text,
    filter: row.filter,
    format: 'Parquet',
    format_version: row.format_version,
    compression: row.compression,
    interval_hours: row.interval_hours,
    export_fields: row.export_fields,
    source_bulk_export_id: row.source_export_id,
    status: row.status,
    status_message: row.status_message,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    finished_at: row.finished_at?.toISOString() ?? null,
    progress: toProgress(progress.get(row.id), { status: row.status, startedAt: row.started_at, now }),
  }))
}
