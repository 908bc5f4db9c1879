import { sql } from 'kysely'
import type { Database } from '../database/schema.ts'
import type { RateCounter } from './counter.ts'
import type { Admission } from './sliding-window.ts'

/**
 * Into how many slices a window is cut. The slice that a window's beginning falls into counts whole: processes together never let in more
 * than the limit in any window, and a request may be refused up to one slice, 1/20 of the window, longer than an exact log would.
 */
export const SLICES = 20

/** Counts in the database, for several `api` processes on one. */
export function createSharedCounter(db: Database): RateCounter & { sweep(): Promise<void> } {
  /** Identities that are refused for now, by our own clock: a flood from one of them must not become a flood on the database. */
  const refusedUntil = new Map<string, number>()

  return {
    take: async (key, { count, seconds }) => {
      const refusal = knownRefusal(refusedUntil, key)
      if (refusal !== null) return refusal
      const { rows } = await sql<{ admitted: boolean; remaining: number; retry_after_ms: number }>`
        select * from take_rate_limit(${key}, ${count}, ${seconds * 1000}, ${SLICES})`.execute(db)
      const row = rows[0]
      if (row === undefined) throw new Error('the rate limit was not counted')
      if (!row.admitted) refusedUntil.set(key, performance.now() + row.retry_after_ms)
      return { admitted: row.admitted, remaining: row.remaining, retryAfterMs: row.retry_after_ms }
    },
    clear: async () => {
      refusedUntil.clear()
      await sql`delete from rate_limit_slices`.execute(db)
    },
    sweep: async () => {
      for (const [key, until] of refusedUntil) if (until <= performance.now()) refusedUntil.delete(key)
      // Past those that another process sweeps, or counts, at this moment: no two of them ever wait for each other.
      await sql`delete from rate_limit_slices where (key, slice) in (
        select key, slice from rate_limit_slices where expires_at < now() for update skip locked)`.execute(db)
    },
  }
}

function knownRefusal(refusedUntil: Map<string, number>, key: string): Admission | null {
  const until = refusedUntil.get(key)
  if (until === undefined) return null
  const left = until - performance.now()
  if (left > 0) return { admitted: false, remaining: 0, retryAfterMs: left }
  refusedUntil.delete(key)
  return null
}
