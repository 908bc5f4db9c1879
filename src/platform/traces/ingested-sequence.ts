import { sql } from 'kysely'
import type { Database, DatabaseTransaction } from '../database/schema.ts'

/**
 * `runs.ingested_seq` grows with every run that becomes complete, and never changes afterwards. An ingest holds this lock shared
 * until it has committed, so that whoever holds it alone sees every number that was given out: none below can appear later.
 */
const LOCK = sql`hashtext('runs ingested sequence')`

export async function joinIngestedSequence(trx: DatabaseTransaction): Promise<void> {
  await sql`select pg_advisory_xact_lock_shared(${LOCK})`.execute(trx)
}

/**
 * The number up to which the set of complete runs is fixed from now on: an export that reads `ingested_seq <= ` it, again and
 * again, finds the same runs each time (deleted ones apart). Waits for the ingests that are under way, milliseconds.
 */
export async function fixIngestedSequence(db: Database): Promise<bigint> {
  return db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(${LOCK})`.execute(trx)
    const { rows } = await sql<{ last: string }>`
      select case when is_called then last_value else 0 end as last from runs_ingested_seq`.execute(trx)
    return BigInt(rows[0]?.last ?? 0)
  })
}
