import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { RevisionStatus } from '../../../contract/status.ts'
import { announce } from '../../database/notifications.ts'
import type { Database, DatabaseTransaction } from '../../database/schema.ts'
import type { Log } from '../../log.ts'
import { StartFailure } from '../runtimes/runtime.ts'
import { tellingEnds } from './endings.ts'
import type { Claim } from './lease.ts'
import { advanceQueue } from './queue.ts'
import { failureOf } from './states.ts'
import { RevisionMoved, type RevisionUpdate, transition } from './transition.ts'
import { WorkStopped } from './work.ts'

/** How a worker leaves a revision that it had in hand. */
export interface Settlement {
  readonly to: RevisionStatus
  readonly reason: string
  readonly set?: RevisionUpdate
  /** Changes that must happen together with the step. Throws {@link StartFailure} when the step must not be made after all. */
  readonly also?: (trx: DatabaseTransaction) => Promise<void>
}

/**
 * What became of a settlement. `lost`: the lease ran out or is another's, so nothing of the work counts. `interrupted`: a user's wish came
 * first, so the worker has to end what it started and settle with `INTERRUPTED`. In both cases nothing was stored.
 */
export type Settled = 'settled' | 'interrupted' | 'lost'

export const INTERRUPTION: Settlement = { to: 'INTERRUPTED', reason: 'interrupted by a user' }

/** Moves a revision out of a worker's hands and lets the deployment's queue move on, in one transaction. */
export async function settle(db: Database, claim: Claim, { to, reason, set, also }: Settlement, log?: Log): Promise<Settled> {
  try {
    return await tellingEnds(db, log, async (trx) => {
      await trx.selectFrom('deployments').select('id').where('id', '=', claim.deployment_id).forUpdate().execute()
      const held = await trx
        .selectFrom('revisions')
        .select('interrupt_requested_at')
        .where('id', '=', claim.id)
        .where('lease_token', '=', claim.lease_token)
        .where('lease_expires_at', '>', sql<Date>`clock_timestamp()`)
        .forUpdate()
        .executeTakeFirst()
      if (held === undefined) return 'lost'
      // A wish that was acknowledged is kept, also when the work was done a moment later.
      if (held.interrupt_requested_at !== null && to !== 'INTERRUPTED') return 'interrupted'
      await transition(trx, { revision: claim, to, reason, ...(set === undefined ? {} : { set }) })
      await also?.(trx)
      await advanceQueue(trx, claim.deployment_id)
      await announce(trx, 'agents')
      return 'settled'
    })
  } catch (error) {
    if (error instanceof RevisionMoved) return 'lost'
    throw error
  }
}

/** Where a revision goes whose work ended with `error`; null: nowhere. `sentence` is what a user reads of a failure. */
export function settlementOf(claim: Claim, error: unknown, sentence: (error: unknown) => string): Settlement | null {
  if (!(error instanceof WorkStopped)) return { to: failureOf(claim.status), reason: sentence(error) }
  const addition = error.abandoned ? ', and its work could not be ended' : ''
  switch (error.reason) {
    case 'interrupted':
      return { ...INTERRUPTION, reason: INTERRUPTION.reason + addition }
    case 'time limit':
      return { to: failureOf(claim.status), reason: `the time limit for ${claim.status} passed${addition}` }
    case 'stopping':
      // Handed back as it was: a stop of the platform is not the revision's fault.
      return { to: claim.status === 'BUILDING' ? 'AWAITING_BUILD' : 'AWAITING_DEPLOY', reason: 'the platform was stopped' }
    case 'lost':
      return null
  }
}

/**
 * Settles, and keeps at it while the database is away; the lease's end is the backstop.
 * @throws what the database says, when it stays away.
 */
export async function settleStubbornly(db: Database, claim: Claim, settlement: Settlement, log: Log): Promise<Settled> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await settle(db, claim, settlement, log)
    } catch (error) {
      // What `also` refuses is no matter of the database: the same again would be refused again.
      if (error instanceof StartFailure || attempt === 5) throw error
      log.warn({ revisionId: claim.id, error: (error as Error).message }, 'a status could not be stored; trying again')
      await sleep(200 * 2 ** attempt)
    }
  }
}
