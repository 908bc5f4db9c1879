import { sql } from 'kysely'
import type { Database, DatabaseTransaction } from '../../../src/platform/database/schema.ts'
import { until } from './processes.ts'

/** How many sessions of the database wait for a lock. */
export async function waitingForLocks(db: Database): Promise<number> {
  const { rows } = await sql<{ pid: number }>`select pid from pg_stat_activity where wait_event_type = 'Lock'`.execute(db)
  return rows.length
}

/**
 * Brings about the meeting in which two would end up waiting for each other: a transaction takes `first`, `act` begins and waits for it, then
 * the transaction takes `second`. Rejects when `act` holds that already; else lets `act` go on to its end.
 */
export async function meet<T>(
  db: Database,
  {
    first,
    act,
    second,
  }: {
    first: (other: DatabaseTransaction) => Promise<unknown>
    act: () => Promise<T>
    second: (other: DatabaseTransaction) => Promise<unknown>
  },
): Promise<T> {
  const other = await db.startTransaction().execute()
  // Shorter than PostgreSQL takes to find a deadlock, and to end either of the two.
  await sql`set local lock_timeout = '300ms'`.execute(other)
  await first(other)
  let ended = false
  const acting = act().finally(() => {
    ended = true
  })
  try {
    await until(async () => ended || (await waitingForLocks(db)) === 1)
    if (ended) throw new Error('it did not wait for what was taken first')
    await second(other)
    await other.commit().execute()
  } catch (error) {
    await other.rollback().execute()
    await Promise.allSettled([acting])
    throw error
  }
  return acting
}
