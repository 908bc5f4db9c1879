import { sql } from 'kysely'
import type { Clock } from '../clock.ts'
import { announce } from '../database/notifications.ts'
import type { Database } from '../database/schema.ts'
import type { Log } from '../log.ts'
import type { ExportMetrics } from './metrics.ts'
import { insertExport } from './new-export.ts'
import { EXPORT_RANGE, type ExportRow } from './rows.ts'
import type { ExportSettings } from './settings.ts'
import { windowOfSlot } from './windows.ts'

interface Timing {
  readonly clock: Clock
  readonly settings: Pick<ExportSettings, 'lateArrivalMs'>
}

/**
 * When a slot is spawned: ten minutes after its window's end (specification 4.3), for runs that arrive late. What of that lies in the
 * future when the schedule is made is divided by the time scale; what lies in the past is due at once.
 */
export function dueOfSlot(
  { clock, settings }: Timing,
  { start, intervalHours, slot, createdAt }: { start: string; intervalHours: number; slot: number; createdAt: Date },
): Date {
  const { end } = windowOfSlot({ start, intervalHours, slot })
  const due = Date.parse(end) + settings.lateArrivalMs
  const wait = due - createdAt.getTime()
  return wait <= 0 ? new Date(due) : new Date(createdAt.getTime() + clock.scaled(wait))
}

export interface ScheduleOptions extends Timing {
  readonly db: Database
  readonly settings: ExportSettings
  readonly metrics: ExportMetrics
  readonly log: Log
}

/** Slots that one transaction spawns. */
const BATCH = 20

/**
 * Spawns what is due. A slot and the schedule's step to the next one are stored together, and the database admits each slot once: after a
 * downtime all that was missed is caught up, without gaps and without doubles.
 * @returns true when there may be more.
 */
export async function spawnDue({ db, clock, settings, metrics, log }: ScheduleOptions): Promise<boolean> {
  const due = await db
    .selectFrom('bulk_exports')
    .select('id')
    .where('status', '=', 'INTERVAL_SCHEDULED')
    .where('next_due_at', '<=', clock.now())
    .orderBy('next_due_at')
    .limit(100)
    .execute()
  let more = false
  for (const { id } of due) {
    const spawned = await spawnSlots({ db, clock, settings }, id)
    if (spawned.length === 0) continue
    more = true
    metrics.add('export_spawned_total', {}, spawned.length)
    log.info({ scheduleId: id, exportIds: spawned }, 'a schedule spawned exports')
  }
  return more
}

async function spawnSlots({ db, clock, settings }: Pick<ScheduleOptions, 'db' | 'clock' | 'settings'>, scheduleId: string): Promise<string[]> {
  return db.transaction().execute(async (trx) => {
    const schedule = (await trx
      .selectFrom('bulk_exports')
      .selectAll()
      .select(EXPORT_RANGE)
      .where('id', '=', scheduleId)
      .where('status', '=', 'INTERVAL_SCHEDULED')
      .forUpdate()
      .skipLocked()
      .executeTakeFirst()) as ExportRow | undefined
    if (schedule === undefined || schedule.interval_hours === null) return []
    const { rows } = await sql<{ n: number }>`
      select count(*)::int as n from bulk_exports where source_export_id = ${scheduleId} and status in ('CREATED', 'RUNNING')`.execute(trx)
    let room = Math.min(BATCH, settings.spawnedUnfinishedMax - (rows[0]?.n ?? 0))
    const now = clock.now()
    const timing = { start: schedule.start_text, intervalHours: schedule.interval_hours, createdAt: schedule.created_at }
    let slot = schedule.next_slot
    const spawned: string[] = []
    while (room > 0 && dueOfSlot({ clock, settings }, { ...timing, slot }) <= now) {
      const window = windowOfSlot({ ...timing, slot })
      const made = await insertExport(trx, {
        workspaceId: schedule.workspace_id,
        destinationId: schedule.destination_id,
        sessionId: schedule.session_id,
        start: window.start,
        end: window.end,
        filter: schedule.filter,
        formatVersion: schedule.format_version,
        compression: schedule.compression,
        exportFields: schedule.export_fields,
        intervalHours: null,
        source: { id: schedule.id, slot },
        now,
        dueAt: null,
      })
      if (made !== null) spawned.push(made)
      slot += 1
      room -= 1
    }
    if (slot === schedule.next_slot) return []
    const nextDue = dueOfSlot({ clock, settings }, { ...timing, slot })
    await trx.updateTable('bulk_exports').set({ next_slot: slot, next_due_at: nextDue, updated_at: now }).where('id', '=', scheduleId).execute()
    await announce(trx, 'work')
    return spawned
  })
}
