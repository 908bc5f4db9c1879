import { randomUUID } from 'node:crypto'
import { type Expression, type ExpressionBuilder, sql, type SqlBool } from 'kysely'
import type { RevisionStatus } from '../../../contract/status.ts'
import type { Database, DatabaseTransaction, RevisionRow, Schema } from '../../database/schema.ts'
import type { Log } from '../../log.ts'
import { tellingEnds } from './endings.ts'
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

/** Which revision a worker takes, where it is moved to, and for whom. */
export interface Wanted {
  readonly from: RevisionStatus
  readonly to: RevisionStatus
  readonly owner: string
  readonly log?: Log
}

const INTERRUPTED = { to: 'INTERRUPTED', reason: 'interrupted by a user' } as const

/**
 * Takes the oldest revision that waits in `from` and moves it to `to` under a lease. Other workers pass over it. What is to be started is
 * left to the node that has built it, while that node is there.
 * Returns null when nothing waits.
 */
export async function claimRevision(db: Database, wanted: Wanted): Promise<Claim | null> {
  const token = randomUUID()
  try {
    return await claimAs(token, db, wanted)
  } catch (error) {
    // Its commit may have been done although the answer was lost: nobody would work on the revision until the lease ends.
    await dropClaim(db, token, wanted.log).catch(() => undefined)
    throw error
  }
}

async function dropClaim(db: Database, token: string, log: Log | undefined): Promise<void> {
  const isOurs: Condition = (is) => is('lease_token', '=', token)
  const held = await db.selectFrom('revisions').select(['id', 'deployment_id']).where(isOurs).executeTakeFirst()
  if (held !== undefined) await retake(db, { ...held, isLost: isOurs, handBack: handBackUntouched, log })
}

async function claimAs(token: string, db: Database, { from, to, owner }: Wanted): Promise<Claim | null> {
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
export async function reclaimRevisions(db: Database, { deadOwner, log }: { deadOwner?: string; log?: Log } = {}): Promise<number> {
  const isTheirs = isLost(deadOwner)
  const lost = await db.selectFrom('revisions').select(['id', 'deployment_id']).where(isTheirs).execute()
  let count = 0
  for (const { id, deployment_id } of lost) {
    if (await retake(db, { id, deployment_id, isLost: isTheirs, handBack: takeBack, log })) count += 1
  }
  return count
}

type Condition = (is: ExpressionBuilder<Schema, 'revisions'>) => Expression<SqlBool>

function isLost(deadOwner: string | undefined): Condition {
  return (is) =>
    is.and([
      is('status', 'in', LEASED),
      is.or([is('lease_expires_at', '<', sql<Date>`now()`), ...(deadOwner === undefined ? [] : [is('lease_owner', '=', deadOwner)])]),
    ])
}

interface Retaking extends Pick<RevisionRow, 'id' | 'deployment_id'> {
  readonly isLost: Condition
  readonly handBack: (trx: DatabaseTransaction, revision: RevisionRow) => Promise<void>
  readonly log: Log | undefined
}

async function retake(db: Database, { id, deployment_id, isLost, handBack, log }: Retaking): Promise<boolean> {
  return tellingEnds(db, log, async (trx) => {
    await trx.selectFrom('deployments').select('id').where('id', '=', deployment_id).forUpdate().execute()
    // Asked again under the lock: its worker may only have been slow, or another process took it back first.
    const revision = await trx.selectFrom('revisions').selectAll().where('id', '=', id).where(isLost).forUpdate().executeTakeFirst()
    if (revision === undefined) return false
    await handBack(trx, revision)
    await advanceQueue(trx, deployment_id)
    return true
  })
}

/** A worker was lost: counted, so that what kills its workers does not go on for ever. */
async function takeBack(trx: DatabaseTransaction, revision: RevisionRow): Promise<void> {
  const losses = revision.losses + 1
  if (revision.interrupt_requested_at !== null) {
    await transition(trx, { revision, ...INTERRUPTED })
  } else if (losses > MAX_LOSSES) {
    const reason = `its worker was lost ${losses} times while it was ${revision.status}`
    await transition(trx, { revision, to: failureOf(revision.status), reason, set: { losses } })
  } else {
    const to = waitingFor(revision.status)
    await transition(trx, { revision, to, reason: `its worker was lost (${losses} of ${MAX_LOSSES} times)`, set: { losses } })
  }
}

/** Nobody has begun to work on it: that is no loss. */
async function handBackUntouched(trx: DatabaseTransaction, revision: RevisionRow): Promise<void> {
  if (revision.interrupt_requested_at !== null) await transition(trx, { revision, ...INTERRUPTED })
  else await transition(trx, { revision, to: waitingFor(revision.status), reason: 'its worker had no answer from the database' })
}

function waitingFor(status: RevisionStatus): 'AWAITING_BUILD' | 'AWAITING_DEPLOY' {
  return status === 'BUILDING' ? 'AWAITING_BUILD' : 'AWAITING_DEPLOY'
}

function leaseEnd() {
  return sql<Date>`now() + ${`${LEASE_MS} milliseconds`}::interval`
}
