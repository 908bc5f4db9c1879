import { sql } from 'kysely'
import type pg from 'pg'
import type { Database } from '../database/schema.ts'
import { PRESENCE_LOCK } from './locks.ts'

/** How often a node says that it is there. Milliseconds. */
export const BEAT_MS = 2000
/** Silent for so long, and without its session in the database: the process has ended. */
export const ENDED_MS = 6000
/** Silent for so long: gone, whatever its session says; its machine, or the network between, may be. */
export const SILENT_MS = 30_000
/** A node that was away from the database itself waits so long before it judges others: they may have been away with it. */
const STEADY_MS = 10_000

export interface Member {
  readonly id: string
  readonly role: 'all' | 'api' | 'queue'
  /** Where other nodes reach this one; null for one that runs no agents. */
  readonly url: string | null
  /** Names of the master keys that it knows. */
  readonly keyNames: readonly string[]
}

/** This node among those that share the database. */
export interface Membership {
  /** Says that it is there; the first time makes its row. */
  beat(): Promise<void>
  /** Nodes that have ended or are silent. Empty while this node cannot judge. */
  gone(): Promise<string[]>
  /** False while this node was away from the database itself: then the silence of others says nothing. */
  canJudge(): boolean
}

/** To be run on each new session of the node: as long as the session lasts, others see that its process does. */
export async function markPresent(session: pg.Client, nodeId: string): Promise<void> {
  await session.query('select pg_advisory_lock_shared($1::int, hashtext($2))', [PRESENCE_LOCK, nodeId])
}

/** A process that ends takes its session with it at once, so its work is taken up long before a lease runs out. */
export function createMembership(db: Database, me: Member, { monotonic = () => performance.now() } = {}): Membership {
  let lastBeatAt = -Infinity
  let steadySince = Infinity

  const canJudge = () => {
    const at = monotonic()
    return at - steadySince >= STEADY_MS && at - lastBeatAt <= BEAT_MS * 3
  }
  return {
    canJudge,
    beat: async () => {
      const row = { id: me.id, role: me.role, url: me.url, key_names: JSON.stringify(me.keyNames) }
      const now = sql<Date>`clock_timestamp()`
      await db
        .insertInto('nodes')
        .values({ ...row, seen_at: now as unknown as Date })
        .onConflict((conflict) => conflict.column('id').doUpdateSet({ ...row, seen_at: now }))
        .execute()
      const at = monotonic()
      // A gap: this process slept, or the database was away.
      if (at - lastBeatAt > BEAT_MS * 3) steadySince = at
      lastBeatAt = at
    },
    gone: async () => {
      if (!canJudge()) return []
      const { rows } = await sql<{ id: string }>`
        select id from nodes where id <> ${me.id} and (
          seen_at < clock_timestamp() - ${`${SILENT_MS} milliseconds`}::interval
          or (seen_at < clock_timestamp() - ${`${ENDED_MS} milliseconds`}::interval and not exists (
            select 1 from pg_locks
            where locktype = 'advisory' and granted and objsubid = 2 and classid::bigint = ${PRESENCE_LOCK}
              and objid::bigint = (hashtext(nodes.id)::bigint & 4294967295)
              and database = (select oid from pg_database where datname = current_database())
          ))
        )`.execute(db)
      return rows.map(({ id }) => id)
    },
  }
}
