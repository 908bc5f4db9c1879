import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { sql } from 'kysely'
import type { DeploymentCreate, DeploymentPatch, RevisionCreate } from '../../contract/deployment.ts'
import { deploymentNotFound } from '../../contract/errors.ts'
import type { Secret } from '../../contract/secret.ts'
import { announce } from '../database/notifications.ts'
import type { Database, DatabaseTransaction, DeploymentRow } from '../database/schema.ts'
import { HttpProblem } from '../http/problem.ts'
import type { Log } from '../log.ts'
import type { SecretBox } from '../secrets.ts'
import { agentPath } from './answers.ts'
import { type DeploymentKey, type DeploymentWithLatest, readDeployment, readLatest, readWithLatest } from './deployment-reads.ts'
import { insertRevision, readRevision, type SealedSecrets } from './revisions.ts'
import { judgeSecrets } from './secret-rules.ts'
import { judgeChange, judgeCreate, type Offering } from './source-rules.ts'

/** What the operations on deployments need besides their arguments. */
export interface DeploymentContext {
  readonly db: Database
  readonly secretBox: SecretBox
  readonly offering: Offering
  /** Told of the revisions that end by a request. */
  readonly log?: Log
}

/** Key of the advisory lock under which names are taken: two creates of one name must not both pass the check. */
const NAMES_LOCK = 'deployment names'

/**
 * Creates a deployment and its first revision (specification 1.2, 4.1), and the tracing project of its name.
 * @throws {HttpProblem} 400 for a broken source rule, 409 for a name that a deployment or a tracing project has.
 */
export async function createDeployment(
  { db, secretBox, offering }: DeploymentContext,
  { workspaceId, body }: { workspaceId: string; body: DeploymentCreate },
): Promise<DeploymentWithLatest> {
  const { sourceConfig, revisionSource } = judgeCreate(body, offering)
  judgeSecrets(body.secrets, offering)
  const id = randomUUID()
  return db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtext(${NAMES_LOCK}), hashtext(${workspaceId}))`.execute(trx)
    await judgeNameIsFree(trx, workspaceId, body.name)
    const tracingProjectId = await makeTracingProject(trx, workspaceId, body.name)
    await trx
      .insertInto('deployments')
      .values({
        id,
        workspace_id: workspaceId,
        name: body.name,
        display_name: body.display_name ?? null,
        slug: `${body.name}-${id.replaceAll('-', '').slice(0, 12)}`,
        status: 'AWAITING_DATABASE',
        source: body.source,
        source_config: JSON.stringify(sourceConfig),
        tracing_project_id: tracingProjectId,
        latest_revision_id: null,
        active_revision_id: null,
      })
      .execute()
    const secrets = sealSecrets(secretBox, body.secrets, id)
    await insertRevision(trx, { deploymentId: id, source: body.source, revisionSource, secrets, reason: 'the deployment was created' })
    return readWithLatest(trx, { workspaceId, deploymentId: id })
  })
}

async function judgeNameIsFree(trx: DatabaseTransaction, workspaceId: string, name: string): Promise<void> {
  const taken = await trx
    .selectFrom('deployments')
    .select(['id', 'status'])
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .executeTakeFirst()
  if (taken === undefined) return
  const going = taken.status === 'AWAITING_DELETE' ? ' It is being deleted: try again when it is gone.' : ''
  throw new HttpProblem(409, `A deployment named ${name} already exists in this workspace (${taken.id}).${going}`)
}

/** Makes the tracing project of a deployment. Traces may make one of that name at the same moment, so it is the insertion that decides. */
async function makeTracingProject(trx: DatabaseTransaction, workspaceId: string, name: string): Promise<string> {
  const made = await trx
    .insertInto('tracing_projects')
    .values({ id: randomUUID(), workspace_id: workspaceId, name })
    .onConflict((conflict) => conflict.columns(['workspace_id', 'name']).doNothing())
    .returning('id')
    .executeTakeFirst()
  if (made !== undefined) return made.id
  throw new HttpProblem(
    409,
    'Deployments create a tracing project in LangSmith with the same name as the deployment. ' +
      `There already exists a project in LangSmith named: ${name}.`,
  )
}

/**
 * Changes a deployment (specification 2.2, 4.1; hosted service). Makes a revision when a field asks for one, and always with
 * `alwaysRevision`. Returns it as it is afterwards, and the id of the revision that was made.
 * @throws {HttpProblem} 400 for a broken source rule, 404, 409 while it is being deleted.
 */
export async function changeDeployment(
  { db, secretBox, offering }: DeploymentContext,
  change: {
    workspaceId: string
    deploymentId: string
    body: DeploymentPatch | RevisionCreate
    alwaysRevision: boolean
    reason: string
  },
): Promise<DeploymentWithLatest & { madeRevisionId: string | null }> {
  const { workspaceId, deploymentId, body } = change
  return db.transaction().execute(async (trx) => {
    const deployment = await lockDeployment(trx, { workspaceId, deploymentId })
    const latest = await readLatest(trx, deployment)
    const stored = {
      source: deployment.source,
      sourceConfig: deployment.source_config,
      revisionSource: latest,
      agentPath: agentPath(deployment.slug),
    }
    const { sourceConfig, revisionSource, makesRevision } = judgeChange(stored, body)
    judgeSecrets(body.secrets ?? [], offering)
    const displayName = ('display_name' in body && body.display_name) || deployment.display_name
    const changes = displayName !== deployment.display_name || !isDeepStrictEqual(sourceConfig, deployment.source_config)
    const changed = changes
      ? await trx
          .updateTable('deployments')
          .set({ source_config: JSON.stringify(sourceConfig), display_name: displayName, updated_at: sql<Date>`clock_timestamp()` })
          .where('id', '=', deploymentId)
          .returningAll()
          .executeTakeFirstOrThrow()
      : deployment
    const newSecrets = body.secrets && body.secrets.length > 0 ? sealSecrets(secretBox, body.secrets, deploymentId) : null
    if (!makesRevision && newSecrets === null && !change.alwaysRevision) return { deployment: changed, latest, madeRevisionId: null }
    const madeRevisionId = await insertRevision(trx, {
      deploymentId,
      source: deployment.source,
      revisionSource: {
        repo_ref: revisionSource.repo_ref,
        graph_config_path: revisionSource.graph_config_path,
        image_uri: revisionSource.image_uri,
      },
      secrets: newSecrets ?? { sealed: latest.secrets, names: latest.secret_names },
      reason: change.reason,
    })
    return { ...(await readWithLatest(trx, { workspaceId, deploymentId })), madeRevisionId }
  })
}

/**
 * Deploys a revision once more (hosted service): a new revision from the same source and environment. What was built is not built again
 * while it is still kept.
 * @throws {HttpProblem} 400 for a revision that has not ended, 404.
 */
export async function redeployRevision(
  { db }: DeploymentContext,
  { workspaceId, deploymentId, revisionId }: { workspaceId: string; deploymentId: string; revisionId: string },
): Promise<DeploymentWithLatest> {
  return db.transaction().execute(async (trx) => {
    const deployment = await lockDeployment(trx, { workspaceId, deploymentId })
    const revision = await readRevision(trx, { deploymentId, revisionId })
    if (revision.status !== 'DEPLOYED') {
      throw new HttpProblem(400, `Revision ID ${revisionId} is ${revision.status}: only a DEPLOYED revision can be redeployed.`)
    }
    await insertRevision(trx, {
      deploymentId,
      source: deployment.source,
      revisionSource: { repo_ref: revision.repo_ref, graph_config_path: revision.graph_config_path, image_uri: revision.image_uri },
      secrets: { sealed: revision.secrets, names: revision.secret_names },
      reason: `revision ${revisionId} was redeployed`,
      ...(revision.built === null
        ? {}
        : { built: { repoCommitSha: revision.repo_commit_sha, built: revision.built, builtOn: revision.built_on } }),
    })
    return readWithLatest(trx, { workspaceId, deploymentId })
  })
}

/** Marks a deployment for deletion; the queue ends what it runs and removes it. Asking twice is the same as once. */
export async function deleteDeployment(
  db: Database,
  { workspaceId, deploymentId, deleteTracingProject }: { workspaceId: string; deploymentId: string; deleteTracingProject: boolean },
): Promise<void> {
  const marked = await deleteDeployments(db, { workspaceId, deploymentIds: [deploymentId], deleteTracingProject })
  if (marked.length === 0) throw new HttpProblem(404, deploymentNotFound(deploymentId))
}

/** Marks those of the deployments that the workspace has. @returns their ids. */
export async function deleteDeployments(
  db: Database,
  options: { workspaceId: string; deploymentIds: readonly string[]; deleteTracingProject: boolean },
): Promise<string[]> {
  return db.transaction().execute(async (trx) => {
    // Locked in one order, so that two of these cannot wait for each other.
    const found = await trx
      .selectFrom('deployments')
      .select('id')
      .where('id', 'in', options.deploymentIds)
      .where('workspace_id', '=', options.workspaceId)
      .orderBy('id')
      .forUpdate()
      .execute()
    const ids = found.map(({ id }) => id)
    if (ids.length === 0) return ids
    await trx
      .updateTable('deployments')
      .set({
        status: 'AWAITING_DELETE',
        ...(options.deleteTracingProject ? { delete_tracing_project: true } : {}),
        updated_at: sql<Date>`clock_timestamp()`,
      })
      .where('id', 'in', ids)
      .execute()
    await announce(trx, 'work')
    await announce(trx, 'agents')
    return ids
  })
}

/** The deployment, held until the transaction ends. */
async function lockDeployment(trx: DatabaseTransaction, key: DeploymentKey): Promise<DeploymentRow> {
  const deployment = await readDeployment(trx, key, { lock: true })
  if (deployment.status === 'AWAITING_DELETE') throw new HttpProblem(409, `Deployment ID ${deployment.id} is being deleted.`)
  return deployment
}

function sealSecrets(secretBox: SecretBox, secrets: readonly Secret[], deploymentId: string): SealedSecrets {
  if (secrets.length === 0) return { sealed: null, names: [] }
  return { sealed: secretBox.seal(secrets, deploymentId), names: secrets.map((secret) => secret.name).toSorted() }
}
