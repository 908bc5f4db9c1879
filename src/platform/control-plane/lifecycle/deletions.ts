import { rm } from 'node:fs/promises'
import path from 'node:path'
import { sql } from 'kysely'
import { lockAgents } from '../../agents/lock-agents.ts'
import { announce } from '../../database/notifications.ts'
import type { Database, DatabaseTransaction } from '../../database/schema.ts'
import { HttpProblem } from '../../http/problem.ts'
import type { Log } from '../../log.ts'
import { deleteProject } from '../../traces/projects.ts'
import { tellingEnds } from './endings.ts'
import { LEASED, UNFINISHED } from './states.ts'
import { transition } from './transition.ts'

export interface DeletionOptions {
  readonly db: Database
  readonly builds: string
  readonly log: Log
}

/** Rows that one statement removes: a deployment may have a million log lines, and no statement may take for ever. */
const BATCH = 20_000

/**
 * Takes deployments that await deletion one step further: end what is unfinished, drain what serves, then remove the deployment with all
 * that belongs to it. Safe to repeat; a restart goes on where it was.
 */
export async function removeDeleted({ db, builds, log }: DeletionOptions): Promise<void> {
  const deployments = await db.selectFrom('deployments').select('id').where('status', '=', 'AWAITING_DELETE').execute()
  for (const { id } of deployments) {
    try {
      const quiet = await tellingEnds(db, log, (trx) => quieten(trx, id))
      if (quiet) await remove(db, { deploymentId: id, builds })
    } catch (error) {
      // The others go on; this one is looked at again.
      log.warn({ deploymentId: id, error: (error as Error).message }, 'a deployment could not be removed yet')
    }
  }
}

/** Ends what waits, asks for the end of what is worked on and of what serves. @returns whether nothing is left that moves. */
async function quieten(trx: DatabaseTransaction, deploymentId: string): Promise<boolean> {
  await trx.selectFrom('deployments').select('id').where('id', '=', deploymentId).forUpdate().execute()
  const revisions = await trx
    .selectFrom('revisions')
    .select(['id', 'source', 'status', 'interrupt_requested_at'])
    .where('deployment_id', '=', deploymentId)
    .where('status', 'in', UNFINISHED)
    .forUpdate()
    .execute()
  const held = revisions.filter((revision) => (LEASED as readonly string[]).includes(revision.status))
  for (const revision of revisions) {
    if (!held.includes(revision)) await transition(trx, { revision, to: 'INTERRUPTED', reason: 'the deployment is being deleted' })
  }
  const unasked = held.filter((revision) => revision.interrupt_requested_at === null)
  for (const { id } of unasked) {
    await trx.updateTable('revisions').set({ interrupt_requested_at: sql<Date>`now()` }).where('id', '=', id).execute()
  }
  if (unasked.length > 0) await announce(trx, 'work')
  const drained = await trx
    .updateTable('agents')
    .set({ state: 'draining' })
    .where('id', 'in', lockAgents(trx).where('deployment_id', '=', deploymentId).where('state', '=', 'serving'))
    .returning('id')
    .execute()
  // Only news is announced: this duty listens itself.
  if (drained.length > 0) await announce(trx, 'agents')
  const agent = await trx.selectFrom('agents').select('id').where('deployment_id', '=', deploymentId).limit(1).executeTakeFirst()
  return held.length === 0 && agent === undefined
}

/** Nothing of it can begin any more: workers and supervisors pass over what awaits deletion. */
async function remove(db: Database, { deploymentId, builds }: { deploymentId: string; builds: string }): Promise<void> {
  const revisions = await db.selectFrom('revisions').select('id').where('deployment_id', '=', deploymentId).execute()
  for (const { id } of revisions) {
    // What cannot be removed now belongs to nobody from here on: the sweep finds it.
    await rm(path.join(builds, id), { recursive: true, force: true }).catch(() => undefined)
  }
  for (const table of ['revision_logs', 'revision_transitions'] as const) await removeInBatches(db, table, deploymentId)
  await removeTracingProject(db, deploymentId)
  await db.deleteFrom('deployments').where('id', '=', deploymentId).where('status', '=', 'AWAITING_DELETE').execute()
}

/** Before the deployment: while its row is there, an interrupted removal is taken up again. */
async function removeTracingProject(db: Database, deploymentId: string): Promise<void> {
  const deployment = await db
    .selectFrom('deployments')
    .select(['workspace_id', 'tracing_project_id', 'delete_tracing_project'])
    .where('id', '=', deploymentId)
    .executeTakeFirst()
  if (!deployment?.delete_tracing_project || deployment.tracing_project_id === null) return
  await deleteProject(db, { workspaceId: deployment.workspace_id, projectId: deployment.tracing_project_id }).catch((error: unknown) => {
    // Somebody else removed it first.
    if (!(error instanceof HttpProblem && error.status === 404)) throw error
  })
}

async function removeInBatches(db: Database, table: 'revision_logs' | 'revision_transitions', deploymentId: string): Promise<void> {
  for (;;) {
    // Locked in one order: the sweep and the log itself may delete the same lines.
    const { numAffectedRows } = await sql`
      with chosen as materialized (
        select of_it.id from ${sql.table(table)} of_it
        join revisions on revisions.id = of_it.revision_id
        where revisions.deployment_id = ${deploymentId} limit ${BATCH}
      ), held as (
        select of_it.id from ${sql.table(table)} of_it join chosen using (id) order by of_it.id for update of of_it
      )
      delete from ${sql.table(table)} where id in (select id from held)`.execute(db)
    if (numAffectedRows === undefined || numAffectedRows < BATCH) return
  }
}
