import type { Database, DatabaseTransaction } from '../../database/schema.ts'
import type { Log } from '../../log.ts'
import { tellingEnds } from './endings.ts'
import { isWorkedOn, UNFINISHED, WORKED_ON } from './states.ts'
import { transition } from './transition.ts'

/**
 * Gives a deployment's place of work to the newest revision that waits for it; the others that wait are superseded. Nothing happens while a
 * revision is worked on. Called in the transaction of every step that may free the place, so that the queue never stalls.
 * @returns whether one's turn has begun.
 */
export async function advanceQueue(trx: DatabaseTransaction, deploymentId: string): Promise<boolean> {
  // The row of the deployment is the lock of its queue.
  const deployment = await trx.selectFrom('deployments').select('status').where('id', '=', deploymentId).forUpdate().executeTakeFirst()
  if (deployment === undefined || deployment.status === 'AWAITING_DELETE') return false
  const unfinished = await trx
    .selectFrom('revisions')
    .select((is) => ['id', 'number', 'source', 'status', is('built', 'is not', null).as('is_built')])
    .where('deployment_id', '=', deploymentId)
    .where('status', 'in', UNFINISHED)
    .orderBy('number', 'desc')
    .execute()
  if (unfinished.some((revision) => isWorkedOn(revision.status))) return false
  const [newest, ...superseded] = unfinished.filter((revision) => revision.status === 'QUEUED')
  if (newest === undefined) return false
  for (const revision of superseded) {
    await transition(trx, { revision, to: 'SKIPPED', reason: `superseded by revision ${newest.id}` })
  }
  const needsBuild = newest.source === 'git_host' && !newest.is_built
  await transition(trx, { revision: newest, to: needsBuild ? 'AWAITING_BUILD' : 'AWAITING_DEPLOY', reason: 'its turn' })
  return true
}

/**
 * Every step that frees a place advances the queue itself. Should one ever have been forgotten, this look finds the deployment whose queue
 * stands still. @returns how many there were: more than none is a defect of ours.
 */
export async function advanceStalledQueues(db: Database, log?: Log): Promise<number> {
  const stalled = await db
    .selectFrom('revisions as waiting')
    .select('waiting.deployment_id')
    .distinct()
    .where('waiting.status', '=', 'QUEUED')
    .where((is) =>
      is.not(
        is.exists(
          is
            .selectFrom('revisions as working')
            .select('working.id')
            .whereRef('working.deployment_id', '=', 'waiting.deployment_id')
            .where('working.status', 'in', WORKED_ON),
        ),
      ),
    )
    .execute()
  let count = 0
  for (const { deployment_id } of stalled) {
    if (await tellingEnds(db, log, (trx) => advanceQueue(trx, deployment_id))) count += 1
  }
  return count
}
