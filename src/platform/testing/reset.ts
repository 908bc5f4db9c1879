import { setTimeout as wait } from 'node:timers/promises'
import { FINAL_EXPORT_STATUSES } from '../../contract/export-status.ts'
import { endExport } from '../bulk-export/work/states.ts'
import { deleteDeployments } from '../control-plane/deployments.ts'
import type { Database } from '../database/schema.ts'
import { HttpProblem } from '../http/problem.ts'

/** How long agents and exports may take to come to rest, and how often it is looked. Milliseconds. */
const REST_LIMIT_MS = 60_000
const LOOK_MS = 20
/** How long workers may take to remove from a bucket what they had begun to write; one that is broken is left as it is. */
const LEFTOVERS_LIMIT_MS = 5000

/**
 * Brings a workspace back to how it was at first: no deployments and agents, no exports and destinations, no runs and tracing projects.
 * @throws {HttpProblem} 503 when something does not come to rest.
 */
export async function resetWorkspace(db: Database, workspaceId: string): Promise<void> {
  const deadline = performance.now() + REST_LIMIT_MS
  await removeExports(db, workspaceId)
  await removeDeployments(db, { workspaceId, deadline })
  // Last: agents trace until they end.
  await db.deleteFrom('runs').where('workspace_id', '=', workspaceId).execute()
  await db.deleteFrom('feedback').where('workspace_id', '=', workspaceId).execute()
  await db.deleteFrom('tracing_projects').where('workspace_id', '=', workspaceId).execute()
}

async function removeDeployments(
  db: Database,
  { workspaceId, deadline }: { workspaceId: string; deadline: number },
): Promise<void> {
  const left = () => db.selectFrom('deployments').select('id').where('workspace_id', '=', workspaceId).execute()
  let deployments = await left()
  if (deployments.length === 0) return
  await deleteDeployments(db, { workspaceId, deploymentIds: deployments.map(({ id }) => id), deleteTracingProject: true })
  while ((deployments = await left()).length > 0) {
    if (performance.now() > deadline) {
      throw new HttpProblem(
        503,
        `${deployments.length} deployments did not come to rest within ${REST_LIMIT_MS / 1000} s: try again.`,
      )
    }
    await wait(LOOK_MS)
  }
}

/** Workers notice that a run is no longer theirs; what they had begun to write is removed. */
async function removeExports(db: Database, workspaceId: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const open = await trx
      .selectFrom('bulk_exports')
      .select(['id', 'status'])
      .where('workspace_id', '=', workspaceId)
      .where('status', 'not in', FINAL_EXPORT_STATUSES)
      .orderBy('id')
      .forUpdate()
      .execute()
    const now = new Date()
    for (const { id, status } of open)
      await endExport(trx, { exportId: id, from: status, to: 'CANCELLED', reason: 'the workspace was reset', now })
  })
  const deadline = performance.now() + LEFTOVERS_LIMIT_MS
  // Without its row a worker does not find what it has to remove, and the next test finds the file.
  while ((await hasLeftovers(db, workspaceId)) && performance.now() < deadline) await wait(LOOK_MS)
  await db.deleteFrom('bulk_exports').where('workspace_id', '=', workspaceId).execute()
  await db.deleteFrom('export_destinations').where('workspace_id', '=', workspaceId).execute()
}

async function hasLeftovers(db: Database, workspaceId: string): Promise<boolean> {
  const left = await db
    .selectFrom('bulk_export_runs')
    .innerJoin('bulk_exports', 'bulk_exports.id', 'bulk_export_runs.export_id')
    .select('bulk_export_runs.id')
    .where('bulk_exports.workspace_id', '=', workspaceId)
    .where('bulk_export_runs.pending', 'is not', null)
    .executeTakeFirst()
  return left !== undefined
}
