import { sql } from 'kysely'
import { deploymentNotFound } from '../../contract/errors.ts'
import type { DeploymentStatus } from '../../contract/status.ts'
import type { Database, DatabaseTransaction, DeploymentRow, RevisionRow } from '../database/schema.ts'
import { HttpProblem } from '../http/problem.ts'
import type { LatestRevision } from './answers.ts'

/** A deployment is looked for in one workspace only. */
export interface DeploymentKey {
  readonly workspaceId: string
  readonly deploymentId: string
}

/** A deployment with its latest revision. */
export interface DeploymentWithLatest {
  readonly deployment: DeploymentRow
  readonly latest: RevisionRow
}

/** A deployment with what its answer shows of its latest revision. */
export interface ShownDeployment {
  readonly deployment: DeploymentRow
  readonly latest: LatestRevision
}

/** @throws {HttpProblem} 404 when the workspace has no such deployment. */
export async function readDeployment(
  db: Database | DatabaseTransaction,
  { workspaceId, deploymentId }: DeploymentKey,
  { lock = false }: { lock?: boolean } = {},
): Promise<DeploymentRow> {
  const select = db.selectFrom('deployments').selectAll().where('id', '=', deploymentId).where('workspace_id', '=', workspaceId)
  const row = await (lock ? select.forUpdate() : select).executeTakeFirst()
  if (row === undefined) throw new HttpProblem(404, deploymentNotFound(deploymentId))
  return row
}

/** The latest revision of a deployment that the transaction holds. */
export async function readLatest(trx: DatabaseTransaction, deployment: DeploymentRow): Promise<RevisionRow> {
  return trx.selectFrom('revisions').selectAll().where('id', '=', deployment.latest_revision_id).executeTakeFirstOrThrow()
}

/** @throws {HttpProblem} 404 when the workspace has no such deployment. */
export async function readWithLatest(trx: DatabaseTransaction, key: DeploymentKey): Promise<DeploymentWithLatest> {
  const deployment = await readDeployment(trx, key)
  return { deployment, latest: await readLatest(trx, deployment) }
}

/** In one look, so that a deployment that is removed meanwhile is either there as a whole or not at all. */
export async function readShown(db: Database, { workspaceId, deploymentId }: DeploymentKey): Promise<ShownDeployment> {
  const row = await db
    .selectFrom('deployments')
    .innerJoin('revisions as latest', 'latest.id', 'deployments.latest_revision_id')
    .selectAll('deployments')
    .select(SHOWN_OF_LATEST)
    .where('deployments.id', '=', deploymentId)
    .where('deployments.workspace_id', '=', workspaceId)
    .executeTakeFirst()
  if (row === undefined) throw new HttpProblem(404, deploymentNotFound(deploymentId))
  return split(row)
}

export interface DeploymentFilter {
  readonly limit: number
  readonly offset: number
  readonly nameContains: string | null
  readonly namePrefix: string | null
  readonly deploymentType: string | null
  readonly remoteReconciled: boolean | null
  readonly statuses: readonly DeploymentStatus[] | null
  readonly ids: readonly string[] | null
}

/** The workspace's deployments, newest first. */
export async function listDeployments(
  db: Database,
  { workspaceId, filter }: { workspaceId: string; filter: DeploymentFilter },
): Promise<ShownDeployment[]> {
  let page = db.selectFrom('deployments').select('id').where('workspace_id', '=', workspaceId)
  // Names are lower case.
  if (filter.nameContains !== null) page = page.where(sql<boolean>`position(${filter.nameContains.toLowerCase()} in name) > 0`)
  if (filter.namePrefix !== null) page = page.where(sql<boolean>`starts_with(name, ${filter.namePrefix.toLowerCase()})`)
  if (filter.deploymentType !== null) page = page.where(sql<boolean>`source_config ->> 'deployment_type' = ${filter.deploymentType}`)
  if (filter.remoteReconciled !== null) page = page.where('active_revision_id', filter.remoteReconciled ? 'is not' : 'is', null)
  if (filter.statuses !== null) page = page.where('status', 'in', filter.statuses)
  if (filter.ids !== null) page = page.where('id', 'in', filter.ids)
  page = page.orderBy('created_at', 'desc').orderBy('id').limit(filter.limit).offset(filter.offset)
  // The ids of the page first, which an index has in order: what the page passes over is neither read nor joined.
  const rows = await db
    .selectFrom(page.as('page'))
    .innerJoin('deployments', 'deployments.id', 'page.id')
    .innerJoin('revisions as latest', 'latest.id', 'deployments.latest_revision_id')
    .selectAll('deployments')
    .select(SHOWN_OF_LATEST)
    .orderBy('deployments.created_at', 'desc')
    .orderBy('deployments.id')
    .execute()
  return rows.map(split)
}

const SHOWN_OF_LATEST = [
  'latest.repo_ref',
  'latest.graph_config_path',
  'latest.image_uri',
  'latest.repo_commit_sha',
  'latest.secret_names',
] as const

function split({ repo_ref, graph_config_path, image_uri, repo_commit_sha, secret_names, ...deployment }: DeploymentRow & LatestRevision): ShownDeployment {
  return { deployment, latest: { repo_ref, graph_config_path, image_uri, repo_commit_sha, secret_names } }
}
