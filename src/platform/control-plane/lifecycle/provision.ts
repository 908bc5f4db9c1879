import { sql } from 'kysely'
import type { Database } from '../../database/schema.ts'
import type { Log } from '../../log.ts'
import type { RuntimeAvailability } from '../runtimes/availability.ts'
import { tellingEnds } from './endings.ts'
import { advanceQueue } from './queue.ts'
import { transition } from './transition.ts'

/**
 * Gives one new revision's deployment what it needs and puts the revision in the queue. A source that nothing here can run ends in
 * `CREATE_FAILED` with the reason.
 * @returns whether there was one.
 */
export async function provisionNext(db: Database, availability: RuntimeAvailability, log?: Log): Promise<boolean> {
  // Asked before any lock is held: an answer may take seconds.
  const sources = await db.selectFrom('revisions').select('source').distinct().where('status', '=', 'CREATING').execute()
  const answers = await Promise.all(sources.map(async ({ source }) => [source, await availability(source)] as const))
  if (answers.length === 0) return false
  const unavailabilities = new Map(answers)
  return tellingEnds(db, log, async (trx) => {
    // Deployment first, revision second: the order in which every writer takes its locks.
    const found = await trx
      .selectFrom('deployments')
      .innerJoin('revisions', 'revisions.deployment_id', 'deployments.id')
      .select(['deployments.id as deploymentId', 'revisions.id as revisionId'])
      .where('revisions.status', '=', 'CREATING')
      .where('revisions.source', 'in', [...unavailabilities.keys()])
      .where('deployments.status', '!=', 'AWAITING_DELETE')
      .orderBy('revisions.number')
      .limit(1)
      .forUpdate('deployments')
      .skipLocked()
      .executeTakeFirst()
    if (found === undefined) return false
    const revision = await trx
      .selectFrom('revisions')
      .select(['id', 'source', 'status'])
      .where('id', '=', found.revisionId)
      .forUpdate()
      .executeTakeFirstOrThrow()
    // Another process moved it between the look and the lock.
    if (revision.status !== 'CREATING') return true
    const unavailable = unavailabilities.get(revision.source) ?? null
    if (unavailable !== null) {
      await transition(trx, { revision, to: 'CREATE_FAILED', reason: unavailable })
    } else {
      await transition(trx, { revision, to: 'QUEUED', reason: 'the deployment has what it needs' })
      await trx
        .updateTable('deployments')
        .set({ status: 'READY', updated_at: sql<Date>`clock_timestamp()` })
        .where('id', '=', found.deploymentId)
        .where('status', '=', 'AWAITING_DATABASE')
        .execute()
    }
    await advanceQueue(trx, found.deploymentId)
    return true
  })
}
