import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { Clock } from '../../clock.ts'
import type { Database, DatabaseTransaction } from '../../database/schema.ts'
import { EXPORT_RANGE, type ExportRow, RUN_TIMES, type RunRow } from '../rows.ts'
import type { ExportSettings } from '../settings.ts'
import { ExportFailure, sentenceOf } from './failure.ts'
import { endExport } from './states.ts'

/** An export run in a worker's hands. */
export interface Claim {
  readonly run: RunRow
  readonly export: ExportRow
  readonly token: string
}

export interface ClaimOptions {
  readonly db: Database
  readonly clock: Clock
  readonly settings: ExportSettings
  readonly owner: string
}

/** Whoever claims does so alone: the caps are exact, however many processes there are. */
const CLAIMS = sql`hashtext('bulk export claims')`

/** How long a process may be silent in the middle of a transaction that others wait for. */
const IDLE_MS = 5000

/** Has the database end the transaction of a process that was stopped in the middle of it: it holds what all others need. */
export async function boundIdle(trx: DatabaseTransaction): Promise<void> {
  await sql`select set_config('idle_in_transaction_session_timeout', ${String(IDLE_MS)}, true)`.execute(trx)
}

/**
 * Takes the export run whose turn it is, under a lease; null when none may begin. The turn goes to the workspace with the fewest runs at
 * work, then to the one that was served longest ago; within it to exports by the same rule; within an export by the calendar.
 */
export async function claimRun(options: ClaimOptions): Promise<Claim | null> {
  const token = randomUUID()
  try {
    return await claimAs(token, options)
  } catch (error) {
    // Its commit may have been done although the answer was lost: nobody would work on the run until the lease ends.
    await dropClaim(options, token).catch(() => undefined)
    throw error
  }
}

async function dropClaim({ db, clock }: ClaimOptions, token: string): Promise<void> {
  const free = { status: 'CREATED', lease_owner: null, lease_token: null, lease_expires_at: null, not_before: clock.now() } as const
  await db.updateTable('bulk_export_runs').set(free).where('lease_token', '=', token).where('status', '=', 'RUNNING').execute()
}

async function claimAs(token: string, { db, clock, settings, owner }: ClaimOptions): Promise<Claim | null> {
  return db.transaction().execute(async (trx) => {
    await boundIdle(trx)
    await sql`select pg_advisory_xact_lock(${CLAIMS})`.execute(trx)
    const now = clock.now()
    const chosen = await chooseRun(trx, { now, settings })
    if (chosen === null) return null
    await trx
      .updateTable('bulk_exports')
      .set({ status: 'RUNNING', started_at: sql<Date>`coalesce(started_at, ${now})`, updated_at: now })
      .where('id', '=', chosen.exportId)
      .execute()
    await trx
      .updateTable('bulk_export_runs')
      .set({
        status: 'RUNNING',
        started_at: sql<Date>`coalesce(started_at, ${now})`,
        attempt_started_at: now,
        lease_owner: owner,
        lease_token: token,
        lease_expires_at: leaseEnd(settings),
        updated_at: sql<Date>`clock_timestamp()`,
      })
      .where('id', '=', chosen.runId)
      .execute()
    const run = await trx.selectFrom('bulk_export_runs').selectAll().select(RUN_TIMES).where('id', '=', chosen.runId).executeTakeFirstOrThrow()
    const row = await trx.selectFrom('bulk_exports').selectAll().select(EXPORT_RANGE).where('id', '=', chosen.exportId).executeTakeFirstOrThrow()
    return { run: run as RunRow, export: row as ExportRow, token }
  })
}

async function chooseRun(
  trx: DatabaseTransaction,
  { now, settings }: { now: Date; settings: ExportSettings },
): Promise<{ runId: string; exportId: string } | null> {
  // The export's row is locked before the run's, as everywhere. Locked ones are somebody's who ends them: they are passed over.
  const { rows } = await sql<{ run_id: string; export_id: string }>`
    with open as (
      select e.id, e.workspace_id, e.status, e.number,
        (select count(*) from bulk_export_runs r where r.export_id = e.id and r.status = 'RUNNING') as at_work,
        (select max(r.attempt_started_at) from bulk_export_runs r where r.export_id = e.id) as served,
        (select r.id from bulk_export_runs r where r.export_id = e.id and r.status = 'CREATED' and r.not_before <= ${now}
          order by r.number limit 1) as next_run
      from bulk_exports e where e.status in ('CREATED', 'RUNNING')
    ), workspace as (
      select workspace_id, sum(at_work) as at_work, max(served) as served, count(*) filter (where status = 'RUNNING') as exports
      from open group by workspace_id
    )
    select o.next_run as run_id, e.id as export_id
    from open o join workspace w using (workspace_id) join bulk_exports e on e.id = o.id
    where o.next_run is not null and o.at_work < ${settings.runsAtOnce}
      and (o.status = 'RUNNING' or w.exports < ${settings.exportsAtOnce}) and e.status in ('CREATED', 'RUNNING')
    order by w.at_work, w.served nulls first, o.at_work, o.served nulls first, o.number
    limit 1 for update of e skip locked`.execute(trx)
  const [row] = rows
  if (row === undefined) return null
  const run = await trx
    .selectFrom('bulk_export_runs')
    .select('id')
    .where('id', '=', row.run_id)
    .where('status', '=', 'CREATED')
    .forUpdate()
    .skipLocked()
    .executeTakeFirst()
  return run === undefined ? null : { runId: run.id, exportId: row.export_id }
}

/** Renews a lease. False: the run is no longer in this worker's hands. One that ran out and was not taken back yet is renewed. */
export async function renewLease(db: Database, { run, token }: Claim, settings: ExportSettings): Promise<boolean> {
  const row = await db
    .updateTable('bulk_export_runs')
    .set({ lease_expires_at: leaseEnd(settings) })
    .where('id', '=', run.id)
    .where('lease_token', '=', token)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

export interface ReclaimOptions {
  readonly db: Database
  readonly clock: Clock
  readonly settings: ExportSettings
  /** Everything of this owner is lost, whatever its lease says: its process is gone. */
  readonly deadOwner?: string
}

/**
 * Takes back the runs whose workers are gone. They wait for another worker, with their retries as they were; one that lost too many in a
 * row without getting on fails: it may be what kills them. @returns how many were taken back.
 */
export async function reclaimRuns({ db, clock, settings, deadOwner }: ReclaimOptions): Promise<number> {
  const isLost = sql<boolean>`status = 'RUNNING' and (lease_expires_at < clock_timestamp() or lease_owner = ${deadOwner ?? null}::text)`
  const lost = await db.selectFrom('bulk_export_runs').select(['id', 'export_id']).where(isLost).execute()
  let count = 0
  for (const { id, export_id } of lost) {
    await db.transaction().execute(async (trx) => {
      await boundIdle(trx)
      const { status } = await trx.selectFrom('bulk_exports').select('status').where('id', '=', export_id).forUpdate().executeTakeFirstOrThrow()
      // Asked again under the lock: its worker may only have been slow, or another process took it back first.
      const run = await trx.selectFrom('bulk_export_runs').selectAll().where('id', '=', id).where(isLost).forUpdate().executeTakeFirst()
      if (run === undefined) return
      count += 1
      const losses = run.losses + 1
      const now = clock.now()
      const given = { lease_owner: null, lease_token: null, lease_expires_at: null, losses, updated_at: sql<Date>`clock_timestamp()` }
      if (losses <= settings.lossesMax) {
        await trx.updateTable('bulk_export_runs').set({ ...given, status: 'CREATED', not_before: now }).where('id', '=', id).execute()
        return
      }
      const failure = new ExportFailure('interruption', `its worker was lost ${losses} times without getting on: it is not taken up again`)
      const errors = JSON.stringify({ ...run.errors, [`retry_${run.retry_number}`]: failure.message })
      await trx.updateTable('bulk_export_runs').set({ ...given, status: 'FAILED', errors, finished_at: now }).where('id', '=', id).execute()
      await endExport(trx, { exportId: export_id, from: status, to: 'FAILED', reason: sentenceOf(failure), now })
    })
  }
  return count
}

function leaseEnd({ leaseMs }: ExportSettings) {
  return sql<Date>`clock_timestamp() + ${`${leaseMs} milliseconds`}::interval`
}
