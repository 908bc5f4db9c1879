import { randomUUID } from 'node:crypto'
import { type ExpressionBuilder, sql } from 'kysely'
import type { RevisionStatus } from '../../../contract/status.ts'
import type { Database, DatabaseTransaction, RevisionRow, Schema } from '../../database/schema.ts'
import { failureOf, LEASED } from './states.ts'
import { advanceQueue } from './queue.ts'
import { transition } from './transition.ts'

/** How long a worker may be silent before its revision goes to another, and how often it says that it is alive. Milliseconds. */
export const LEASE_MS = 30_000
export const HEARTBEAT_MS = 5_000

/** How often a revision is taken up again after its worker was lost, before it fails. */
export const MAX_LOSSES = 3

/** A revision in a worker's hands. */
export type Claim = RevisionRow & { readonly lease_token: string }

/**
 * Takes the oldest revision that waits in `from` and moves it to `to` under a lease. Other workers pass over it. What is to be started is
 * left to the node that has built it, while that node is there.
 * Returns null when nothing waits.
 */
export async function claimRevision(
  db: Database,
  { from, to, owner }: { from: RevisionStatus; to: RevisionStatus; owner: string },
): Promise<Claim | null> {
  return db.transaction().execute(async (trx) => {
    const waiting = await trx
      .selectFrom('revisions')
      .innerJoin('deployments', 'deployments.id', 'revisions.deployment_id')
      .select(['revisions.id', 'revisions.source', 'revisions.status'])
      .where('revisions.status', '=', from)
      .where('deployments.status', '!=', 'AWAITING_DELETE')
      .where(from === 'AWAITING_DEPLOY' ? isNotElsewhere(owner) : sql<boolean>`true`)
      .orderBy('revisions.number')
      .limit(1)
      .forUpdate('revisions')
      .skipLocked()
      .executeTakeFirst()
    if (waiting === undefined) return null
    const token = randomUUID()
    const set = { lease_owner: owner, lease_token: token, lease_expires_at: leaseEnd() }
    const claimed = await transition(trx, { revision: waiting, to, reason: 'a worker took it', set })
    return { ...claimed, lease_token: token }
  })
}

/** True for revisions whose build lies on this node's disk, or on that of a node that is gone, or who knows where. */
export function isNotElsewhere(nodeId: string) {
  return sql<boolean>`(revisions.built_on is null or revisions.built_on = ${nodeId}
    or not exists (select 1 from nodes where nodes.id = revisions.built_on and nodes.role <> 'api'))`
}

/** What a heartbeat learnt: go on, stop because a user asked, or stop because the lease is another's. */
export type Heartbeat = 'go on' | 'interrupted' | 'lost'

/** A lease that ran out and that nobody has taken back yet is renewed: after a sleep of the machine the work goes on. */
export async function heartbeat(db: Database, claim: Claim): Promise<Heartbeat> {
  const row = await db
    .updateTable('revisions')
    .set({ lease_expires_at: leaseEnd() })
    .where('id', '=', claim.id)
    .where('lease_token', '=', claim.lease_token)
    .returning('interrupt_requested_at')
    .executeTakeFirst()
  if (row === undefined) return 'lost'
  return row.interrupt_requested_at === null ? 'go on' : 'interrupted'
}

/**
 * Takes back the revisions whose workers are gone: leases that ran out, and at the start all of `deadOwner`. An interrupted one ends, the
 * others wait for another worker, and one that lost too many workers fails: it may be what kills them.
 * @returns how many were taken back.
 */
export async function reclaimRevisions(db: Database, { deadOwner }: { deadOwner?: string } = {}): Promise<number> {
  const lost = await db.selectFrom('revisions').select(['id', 'deployment_id']).where(isLost(deadOwner)).execute()
  let count = 0
  for (const { id, deployment_id } of lost) {
    await db.transaction().execute(async (trx) => {
      await trx.selectFrom('deployments').select('id').where('id', '=', deployment_id).forUpdate().execute()
      // Asked again under the lock: its worker may only have been slow, or another process took it back first.
      const revision = await trx.selectFrom('revisions').selectAll().where('id', '=', id).where(isLost(deadOwner)).forUpdate().executeTakeFirst()
      if (revision === undefined) return
      await takeBack(trx, revision)
      await advanceQueue(trx, deployment_id)
      count += 1
    })
  }
  return count
}

function isLost(deadOwner: string | undefined) {
  return (is: ExpressionBuilder<Schema, 'revisions'>) =>
    is.and([
      is('status', 'in', LEASED),
      is.or([is('lease_expires_at', '<', sql<Date>`now()`), ...(deadOwner === undefined ? [] : [is('lease_owner', '=', deadOwner)])]),
    ])
}

async function takeBack(trx: DatabaseTransaction, revision: RevisionRow): Promise<void> {
  const losses = revision.losses + 1
  if (revision.interrupt_requested_at !== null) {
    await transition(trx, { revision, to: 'INTERRUPTED', reason: 'interrupted by a user' })
  } else if (losses > MAX_LOSSES) {
    const reason = `its worker was lost ${losses} times while it was ${revision.status}`
    await transition(trx, { revision, to: failureOf(revision.status), reason, set: { losses } })
  } else {
    const to = revision.status === 'BUILDING' ? 'AWAITING_BUILD' : 'AWAITING_DEPLOY'
    await transition(trx, { revision, to, reason: `its worker was lost (${losses} of ${MAX_LOSSES} times)`, set: { losses } })
  }
}

function leaseEnd() {
  return sql<Date>`now() + ${`${LEASE_MS} milliseconds`}::interval`
}
