import { sql, type UpdateObject } from 'kysely'
import type { Clock } from '../../clock.ts'
import type { Database, DatabaseTransaction, Schema } from '../../database/schema.ts'
import type { ExportSettings } from '../settings.ts'
import { type ExportFailure, FAILURES, sentenceOf } from './failure.ts'
import { boundIdle, type Claim } from './lease.ts'
import { endExport } from './states.ts'

/** The run is no longer in this worker's hands: nothing of its work since the last checkpoint counts. */
export class LeaseLost extends Error {}

type RunUpdate = UpdateObject<Schema, 'bulk_export_runs'>

const FREE = { lease_owner: null, lease_token: null, lease_expires_at: null } as const

/**
 * Stores what a worker has done, if the run is still its own. The lease must not have run out either: another worker may be about to take
 * the run, and a worker that slept cannot know.
 * @throws {LeaseLost}
 */
export async function checkpoint(db: Database | DatabaseTransaction, { run, token }: Claim, set: RunUpdate): Promise<void> {
  const held = await db
    .updateTable('bulk_export_runs')
    .set({ ...set, updated_at: sql<Date>`clock_timestamp()` })
    .where('id', '=', run.id)
    .where('status', '=', 'RUNNING')
    .where('lease_token', '=', token)
    .where('lease_expires_at', '>', sql<Date>`clock_timestamp()`)
    .returning('id')
    .executeTakeFirst()
  if (held === undefined) throw new LeaseLost(`the lease of the export run ${run.id} was lost`)
}

/** @throws {LeaseLost} when the run is no longer in this worker's hands. */
export async function confirmHeld(db: Database, claim: Claim): Promise<void> {
  await checkpoint(db, claim, {})
}

/** What became of the export when a run of it ended. */
export type Settled = { readonly exportEnded: 'COMPLETED' | 'FAILED' | null }

interface SettleOptions {
  readonly db: Database
  readonly clock: Clock
}

/** Ends a run well; with the last one its export. @throws {LeaseLost} */
export async function completeRun({ db, clock }: SettleOptions, claim: Claim, { lateRows }: { lateRows: number }): Promise<Settled> {
  return settle(db, claim, async (trx, status) => {
    const now = clock.now()
    await checkpoint(trx, claim, { ...FREE, status: 'COMPLETED', finished_at: now, late_rows: lateRows, pending: null })
    const { left } = await trx
      .selectFrom('bulk_export_runs')
      .select(({ fn }) => fn.countAll<string>().as('left'))
      .where('export_id', '=', claim.run.export_id)
      .where('status', '!=', 'COMPLETED')
      .executeTakeFirstOrThrow()
    if (left !== '0') return { exportEnded: null }
    await endExport(trx, { exportId: claim.run.export_id, from: status, to: 'COMPLETED', reason: null, now })
    return { exportEnded: 'COMPLETED' }
  })
}

/** Ends an attempt badly: the run is tried again later, or fails and its export with it. @throws {LeaseLost} */
export async function failAttempt(
  { db, clock, settings }: SettleOptions & { settings: ExportSettings },
  claim: Claim,
  failure: ExportFailure,
): Promise<Settled> {
  return settle(db, claim, async (trx, status) => {
    const { retry_number: retry, errors: before } = claim.run
    const now = clock.now()
    const sentence = sentenceOf(failure)
    const errors = JSON.stringify({ ...before, [`retry_${retry}`]: sentence })
    if (FAILURES[failure.kind].retried && retry < settings.retries) {
      const notBefore = new Date(now.getTime() + clock.scaled(settings.retryDelayMs))
      await checkpoint(trx, claim, { ...FREE, status: 'CREATED', retry_number: retry + 1, errors, not_before: notBefore })
      return { exportEnded: null }
    }
    await checkpoint(trx, claim, { ...FREE, status: 'FAILED', errors, finished_at: now })
    const reason = `the run of ${claim.run.window_start_text.slice(0, 10)} failed: ${sentence}`
    await endExport(trx, { exportId: claim.run.export_id, from: status, to: 'FAILED', reason, now })
    return { exportEnded: 'FAILED' }
  })
}

/** Gives a run back as it is, for another worker: an interruption is not its fault. @throws {LeaseLost} */
export async function handBack({ db, clock }: SettleOptions, claim: Claim): Promise<void> {
  await checkpoint(db, claim, { ...FREE, status: 'CREATED', not_before: clock.now() })
}

async function settle(
  db: Database,
  { run }: Claim,
  change: (trx: DatabaseTransaction, status: 'RUNNING') => Promise<Settled>,
): Promise<Settled> {
  return db.transaction().execute(async (trx) => {
    await boundIdle(trx)
    const { status } = await trx.selectFrom('bulk_exports').select('status').where('id', '=', run.export_id).forUpdate().executeTakeFirstOrThrow()
    if (status !== 'RUNNING') throw new LeaseLost(`the export ${run.export_id} is ${status}`)
    return change(trx, status)
  })
}
