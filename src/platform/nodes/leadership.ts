import type pg from 'pg'
import type { Log } from '../log.ts'
import { LEADER_LOCK } from './locks.ts'

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
}: {
  session: () => pg.Client | null
  log: Log
  /** Told when this node begins to lead. */
  onChange?: () => Promise<void>
}): Leadership {
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
        if (rows[0]?.taken !== true) return false
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

/** For a platform of one process. */
export const ALWAYS_LEADS: Leadership = { leads: async () => true }

/** Runs a duty's round on the node that leads, and nowhere else. */
export function whenLeading(leadership: Leadership, round: () => Promise<boolean | void>): () => Promise<boolean | void> {
  return async () => ((await leadership.leads()) ? round() : false)
}
