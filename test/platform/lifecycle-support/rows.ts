import { randomUUID } from 'node:crypto'
import type { Database, RevisionRow } from '../../../src/platform/database/schema.ts'

export async function makeDeployment(db: Database, workspaceId: string, sourceConfig: Record<string, unknown> = {}): Promise<string> {
  const id = randomUUID()
  const name = `agent-${id.slice(0, 8)}`
  await db
    .insertInto('deployments')
    .values({
      id,
      workspace_id: workspaceId,
      name,
      display_name: null,
      slug: name,
      status: 'READY',
      source: 'git_host',
      source_config: JSON.stringify({ repo_url: 'https://git.example.com/acme/agent', build_on_push: false, ...sourceConfig }),
      tracing_project_id: null,
      latest_revision_id: null,
      active_revision_id: null,
    })
    .execute()
  return id
}

/** A revision put straight into a state, with whatever columns matter to the test. */
export async function makeRevision(
  db: Database,
  deploymentId: string,
  columns: Partial<Pick<RevisionRow, 'status' | 'repo_ref' | 'repo_commit_sha' | 'losses' | 'source'>> & { status_since?: Date; built?: string } = {},
): Promise<string> {
  const id = randomUUID()
  await db
    .insertInto('revisions')
    .values({
      id,
      deployment_id: deploymentId,
      status: 'QUEUED',
      status_message: null,
      source: 'git_host',
      repo_ref: 'main',
      graph_config_path: 'langgraph.json',
      image_uri: null,
      repo_commit_sha: null,
      secrets: null,
      lease_owner: null,
      lease_token: null,
      built: null,
      ...columns,
    })
    .execute()
  await db.updateTable('deployments').set({ latest_revision_id: id }).where('id', '=', deploymentId).execute()
  return id
}

export async function statusOf(db: Database, revisionId: string): Promise<{ status: string; message: string | null; losses: number }> {
  const row = await db.selectFrom('revisions').select(['status', 'status_message', 'losses']).where('id', '=', revisionId).executeTakeFirstOrThrow()
  return { status: row.status, message: row.status_message, losses: row.losses }
}

/** The steps of a revision as `FROM>TO`, oldest first. */
export async function stepsOf(db: Database, revisionId: string): Promise<string[]> {
  const rows = await db.selectFrom('revision_transitions').selectAll().where('revision_id', '=', revisionId).orderBy('id').execute()
  return rows.map((row) => `${row.from_status ?? ''}>${row.to_status}`)
}

/** As if the worker had been silent for longer than its lease. */
export async function expireLease(db: Database, revisionId: string): Promise<void> {
  await db
    .updateTable('revisions')
    .set({ lease_expires_at: new Date(Date.now() - 1000) })
    .where('id', '=', revisionId)
    .execute()
}
