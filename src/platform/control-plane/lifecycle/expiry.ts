import { sql } from 'kysely'
import type { Database, DatabaseTransaction } from '../../database/schema.ts'
import type { Log } from '../../log.ts'
import { tellingEnds } from './endings.ts'
import { advanceQueue } from './queue.ts'
import { failureOf, WAITING } from './states.ts'
import { transition } from './transition.ts'

export interface ExpiryOptions {
  /** How long a revision may wait for a worker while there are any. */
  readonly waitLimitMs: number
  /** How long its turn may last in all, however often it was handed back or taken up again. */
  readonly totalLimitMs: number
  /** Nobody worked before this process began: a wait counts from then at the earliest, so that a stopped platform fails nothing. */
  readonly workingSince: Date
  readonly log?: Log
}

const MAY_EXPIRE = ['CREATING', ...WAITING] as const

/**
 * Fails the revisions that have waited too long: nothing stays unfinished for ever, and a stuck one must not hold up its deployment's
 * queue. One that a worker holds ends by the worker's own limit or its lease. @returns how many.
 */
export async function expireWaiting(db: Database, options: ExpiryOptions): Promise<number> {
  const { waitLimitMs, totalLimitMs, workingSince, log } = options
  const { rows } = await sql<{ id: string; deployment_id: string; waited: boolean }>`
    select id, deployment_id, waited from (
      select id, deployment_id,
        greatest(status_since, ${workingSince}::timestamptz) < now() - ${interval(waitLimitMs)}::interval as waited,
        (select min(at) from revision_transitions t where t.revision_id = revisions.id and t.from_status = 'QUEUED')
          < now() - ${interval(totalLimitMs)}::interval as too_long
      from revisions where status in (${sql.join(MAY_EXPIRE)})
    ) as waiting where waited or too_long`.execute(db)
  let count = 0
  for (const row of rows) {
    const waited = `no worker was free for ${duration(waitLimitMs)}`
    const reason = row.waited ? waited : `its turn has lasted longer than ${duration(totalLimitMs)}`
    if (await tellingEnds(db, log, (trx) => expire(trx, { ...row, reason }))) count += 1
  }
  return count
}

async function expire(
  trx: DatabaseTransaction,
  { id, deployment_id, reason }: { id: string; deployment_id: string; reason: string },
): Promise<boolean> {
  await trx.selectFrom('deployments').select('id').where('id', '=', deployment_id).forUpdate().execute()
  // Asked again under the lock: a worker may have taken it meanwhile.
  const revision = await trx
    .selectFrom('revisions')
    .select(['id', 'source', 'status'])
    .where('id', '=', id)
    .where('status', 'in', MAY_EXPIRE)
    .forUpdate()
    .executeTakeFirst()
  if (revision === undefined) return false
  await transition(trx, { revision, to: failureOf(revision.status), reason })
  await advanceQueue(trx, deployment_id)
  return true
}

function interval(milliseconds: number): string {
  return `${milliseconds} milliseconds`
}

function duration(milliseconds: number): string {
  const minutes = milliseconds / 60_000
  return minutes >= 1 ? `${Math.round(minutes)} minutes` : `${Math.round(milliseconds / 1000)} seconds`
}
