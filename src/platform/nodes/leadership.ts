import type pg from 'pg'
import type { Log } from '../log.ts'
import { LEADER_LOCK, PRESENCE_LOCK } from './locks.ts'

/** How often a follower looks whether the leader is still heard of. Milliseconds. */
const LOOK_MS = 2000
/**
 * A leader that was silent for so long, and then for so long again while this node was answered by the database, has lost the lead: its
 * session may outlive it by a quarter of an hour when its machine is lost, and for ever when its process is stopped. Milliseconds.
 */
const SILENT_MS = 20_000
const STILL_SILENT_MS = 10_000

/** Which of the nodes does what only one has to do. */
export interface Leadership {
  /** True when this node leads, asked of the database: the lock is its session's, and ends with it. */
  leads(): Promise<boolean>
}

/**
 * Whoever gets the lock leads until its session ends; the others try again at every round of their duties. Should two ever believe to
 * lead (a session that the database has ended and whose end has not arrived yet), their rounds still take turns by locks on rows.
 */
export function createLeadership({
  session,
  log,
  onChange = async () => undefined,
  monotonic = () => performance.now(),
}: {
  session: () => pg.Client | null
  log: Log
  /** Told when this node begins to lead. */
  onChange?: () => Promise<void>
  monotonic?: () => number
}): Leadership {
  const watch = createLeaderWatch({ monotonic, log })
  let held: pg.Client | null = null
  let asking: Promise<boolean> | null = null

  const ask = async (): Promise<boolean> => {
    const now = session()
    if (now === null) {
      held = null
      return false
    }
    try {
      if (held === now) {
        await now.query('select 1')
      } else {
        held = null
        const { rows } = await now.query<{ taken: boolean }>('select pg_try_advisory_lock($1::int, 0) as taken', [LEADER_LOCK])
        if (rows[0]?.taken !== true) {
          await watch(now)
          return false
        }
        held = now
        log.info('this node leads now')
        await onChange().catch((error: Error) =>
          log.warn({ error: error.message }, 'the change of the leader could not be noted'),
        )
      }
    } catch (error) {
      // A session that does not answer is of no use to anybody: its end makes room for another one.
      log.warn({ error: (error as Error).message }, 'the session with the database does not answer')
      held = null
      now.end().catch(() => undefined)
      return false
    }
    return session() === now
  }
  return {
    leads: () => {
      // Several duties ask at once: one question answers them all.
      asking ??= ask().finally(() => (asking = null))
      return asking
    },
  }
}

/** Ends the session of a leader that is not heard of any more, and its lock with it. */
function createLeaderWatch({ monotonic, log }: { monotonic: () => number; log: Log }): (session: pg.Client) => Promise<void> {
  let lookedAt = -Infinity
  let suspect: { readonly pid: number; readonly since: number } | null = null
  return async (session) => {
    const at = monotonic()
    if (at - lookedAt < LOOK_MS) return
    lookedAt = at
    const { rows } = await session.query<{ pid: number; id: string }>(SILENT_LEADER, [LEADER_LOCK, PRESENCE_LOCK, SILENT_MS])
    const [leader] = rows
    if (leader === undefined) suspect = null
    else if (suspect?.pid !== leader.pid) suspect = { pid: leader.pid, since: at }
    else if (at - suspect.since >= STILL_SILENT_MS) {
      log.warn({ nodeId: leader.id }, 'the leading node is not heard of: it leads no more')
      await session.query('select pg_terminate_backend($1)', [leader.pid])
    }
  }
}

/** The session that holds the lock tells by its other one which node it is. */
const SILENT_LEADER = `
  select leader.pid, nodes.id from pg_locks leader
  join pg_locks present on present.pid = leader.pid and present.locktype = 'advisory' and present.classid::bigint = $2
  join nodes on present.objid::bigint = (hashtext(nodes.id)::bigint & 4294967295)
  where leader.locktype = 'advisory' and leader.granted and leader.classid::bigint = $1
    and leader.database = (select oid from pg_database where datname = current_database())
    and nodes.seen_at < clock_timestamp() - $3::float8 * interval '1 millisecond'`

/** For a platform of one process. */
export const ALWAYS_LEADS: Leadership = { leads: async () => true }

/** Runs a duty's round on the node that leads, and nowhere else. */
export function whenLeading(leadership: Leadership, round: () => Promise<boolean | void>): () => Promise<boolean | void> {
  return async () => ((await leadership.leads()) ? round() : false)
}
