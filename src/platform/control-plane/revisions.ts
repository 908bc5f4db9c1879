import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { revisionNotFound } from '../../contract/errors.ts'
import type { Source } from '../../contract/revision.ts'
import type { RevisionStatus } from '../../contract/status.ts'
import { announce } from '../database/notifications.ts'
import type { Database, DatabaseTransaction, RevisionRow } from '../database/schema.ts'
import { HttpProblem } from '../http/problem.ts'
import type { Log } from '../log.ts'
import { tellingEnds } from './lifecycle/endings.ts'
import { isUnfinished, isWorkedOn, LEASED } from './lifecycle/states.ts'
import { advanceQueue } from './lifecycle/queue.ts'
import { recordTransition, transition } from './lifecycle/transition.ts'
import { SHOWN_OF_REVISION, type ShownRevision } from './answers.ts'
import type { RevisionSource } from './source-rules.ts'

/** An agent's environment as it is stored: sealed, and its names for showing. */
export interface SealedSecrets {
  readonly sealed: Buffer | null
  readonly names: readonly string[]
}

/** Makes a revision in `CREATING` and makes it the deployment's latest. */
export async function insertRevision(
  trx: DatabaseTransaction,
  revision: {
    deploymentId: string
    source: Source
    revisionSource: RevisionSource
    secrets: SealedSecrets
    reason: string
    /** Of a revision that is deployed once more, without a new build. */
    built?: { repoCommitSha: string | null; built: NonNullable<RevisionRow['built']>; builtOn: string | null }
  },
): Promise<string> {
  const id = randomUUID()
  await trx
    .insertInto('revisions')
    .values({
      id,
      deployment_id: revision.deploymentId,
      status: 'CREATING',
      status_message: null,
      source: revision.source,
      ...revision.revisionSource,
      repo_commit_sha: revision.built?.repoCommitSha ?? null,
      built: revision.built ? JSON.stringify(revision.built.built) : null,
      built_on: revision.built?.builtOn ?? null,
      secrets: revision.secrets.sealed,
      secret_names: JSON.stringify(revision.secrets.names),
      lease_owner: null,
      lease_token: null,
    })
    .execute()
  await trx
    .updateTable('deployments')
    .set({ latest_revision_id: id, updated_at: sql<Date>`clock_timestamp()` })
    .where('id', '=', revision.deploymentId)
    .execute()
  await recordTransition(trx, { revisionId: id, from: null, to: 'CREATING', reason: revision.reason })
  await announce(trx, 'work')
  return id
}

/** One page of a deployment's revisions, newest first (specification 4.1). */
export async function listRevisions(
  db: Database,
  query: { deploymentId: string; limit: number; offset: number; statuses: readonly RevisionStatus[] | null; remoteReconciled: boolean | null },
): Promise<ShownRevision[]> {
  let select = db.selectFrom('revisions').select(SHOWN_OF_REVISION).where('deployment_id', '=', query.deploymentId)
  if (query.statuses !== null) select = select.where('status', 'in', query.statuses)
  if (query.remoteReconciled !== null) select = select.where('remote_reconciled', '=', query.remoteReconciled)
  return select.orderBy('number', 'desc').limit(query.limit).offset(query.offset).execute()
}

/** @throws {HttpProblem} 404 when the deployment has no such revision. */
export async function readRevision(
  db: Database | DatabaseTransaction,
  { deploymentId, revisionId }: { deploymentId: string; revisionId: string },
): Promise<RevisionRow> {
  const row = await db
    .selectFrom('revisions')
    .selectAll()
    .where('id', '=', revisionId)
    .where('deployment_id', '=', deploymentId)
    .executeTakeFirst()
  if (row === undefined) throw new HttpProblem(404, revisionNotFound(revisionId))
  return row
}

/**
 * Interrupts a revision. One that waits ends at once, and the queue moves on in the same transaction. For one that a worker holds the wish
 * is noted: the worker ends the whole process tree first, then does the same.
 * @throws {HttpProblem} 404 for an unknown revision, 409 for one that has ended.
 */
export async function interruptRevision(
  db: Database,
  { deploymentId, revisionId, log }: { deploymentId: string; revisionId: string; log?: Log | undefined },
): Promise<RevisionRow> {
  return tellingEnds(db, log, async (trx) => {
    await trx.selectFrom('deployments').select('id').where('id', '=', deploymentId).forUpdate().execute()
    const found = await readRevision(trx, { deploymentId, revisionId })
    const revision = await trx.selectFrom('revisions').selectAll().where('id', '=', found.id).forUpdate().executeTakeFirstOrThrow()
    if (!isUnfinished(revision.status)) {
      throw new HttpProblem(409, `Revision ID ${revisionId} is ${revision.status} already: there is nothing to interrupt.`)
    }
    if ((LEASED as readonly string[]).includes(revision.status)) {
      await announce(trx, 'work')
      return trx
        .updateTable('revisions')
        .set({ interrupt_requested_at: sql<Date>`coalesce(interrupt_requested_at, now())` })
        .where('id', '=', revisionId)
        .returningAll()
        .executeTakeFirstOrThrow()
    }
    const interrupted = await transition(trx, { revision, to: 'INTERRUPTED', reason: 'interrupted by a user' })
    if (isWorkedOn(revision.status)) await advanceQueue(trx, deploymentId)
    return interrupted
  })
}
