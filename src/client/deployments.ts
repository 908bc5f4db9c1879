import { deploymentAnswerSchema, pageAnswerSchema, type DeploymentAnswer, type RevisionAnswer } from '../contract/answers.ts'
import type { DeploymentCreate, DeploymentPatch } from '../contract/deployment.ts'
import { toDialect } from '../contract/dialects.ts'
import { PAGE_LIMIT_MAX } from '../contract/paging.ts'
import type { ControlPlaneContext } from './context.ts'
import { DuplicateNameError, endlessList } from './failure.ts'
import { isMissingResource, onOptionalRoute } from './optional-route.ts'
import { readPages } from './pages.ts'
import { pathOf } from './path.ts'
import { matchesSent, newerRevisions, withRecovery } from './recovery.ts'
import type { RevisionOperations } from './revisions.ts'

export type CreateResult = { deployment: DeploymentAnswer; recovered: boolean }
export type PatchResult = { deployment: DeploymentAnswer; revisionId: string | null; recovered: boolean }

export type DeploymentOperations = {
  /** All pages. */
  listDeployments(options: { nameContains?: string; signal: AbortSignal }): Promise<DeploymentAnswer[]>
  /** The one of exactly this name, or null. Two of them are a `DuplicateNameError`. */
  findDeploymentByName(name: string, signal: AbortSignal): Promise<DeploymentAnswer | null>
  getDeployment(id: string, signal: AbortSignal): Promise<DeploymentAnswer>
  /** `recovered`: the answer was lost, and the deployment was found by its name afterwards. */
  createDeployment(body: DeploymentCreate, signal: AbortSignal): Promise<CreateResult>
  /**
   * `previousLatestRevisionId` is `latest_revision_id` before the request (null: there was none). `revisionId` is the revision
   * that this request made, null when it made none; `recovered`: the answer was lost, and the revision was found afterwards.
   */
  patchDeployment(options: {
    id: string
    body: DeploymentPatch
    previousLatestRevisionId: string | null
    signal: AbortSignal
  }): Promise<PatchResult>
  /**
   * Deploys an earlier revision once more, as a new one from the same source (hosted service). `unsupported` where the control
   * plane has no such route; a 400 where it redeploys only the latest one. The result is that of `patchDeployment`.
   */
  redeployRevision(options: {
    deploymentId: string
    revisionId: string
    previousLatestRevisionId: string | null
    signal: AbortSignal
  }): Promise<PatchResult>
  /** `alreadyGone`: there was nothing to delete. The service deletes in the background. */
  deleteDeployment(options: {
    id: string
    deleteTracingProject: boolean
    timeoutMs?: number
    signal: AbortSignal
  }): Promise<{ alreadyGone: boolean }>
}

const deploymentsPageSchema = pageAnswerSchema(deploymentAnswerSchema)
const COLLECTION = pathOf('v2', 'deployments')

export function deploymentOperations(
  context: ControlPlaneContext & Pick<RevisionOperations, 'listRevisions'>,
): DeploymentOperations {
  const { transport, dialect, listRevisions } = context

  const listDeployments: DeploymentOperations['listDeployments'] = async ({ nameContains, signal }) =>
    await readPages({
      endless: () => endlessList(COLLECTION),
      readPage: async ({ limit, offset }) => {
        const query = { limit, offset, name_contains: nameContains }
        const { body } = await onOptionalRoute({
          ids: [],
          what: 'list of deployments at this address',
          run: () => transport.request({ method: 'GET', path: COLLECTION, query, schema: deploymentsPageSchema, signal }),
        })
        return body
      },
    })

  const findDeploymentByName: DeploymentOperations['findDeploymentByName'] = async (name, signal) => {
    const candidates = await listDeployments({ nameContains: name, signal })
    // Pages shift when somebody creates a deployment meanwhile: the same one may be listed twice.
    const byId = new Map(candidates.filter((candidate) => candidate.name === name).map((candidate) => [candidate.id, candidate]))
    if (byId.size > 1) throw new DuplicateNameError(name, [...byId.keys()])
    return [...byId.values()][0] ?? null
  }

  const getDeployment: DeploymentOperations['getDeployment'] = async (id, signal) =>
    (await transport.request({ method: 'GET', path: deploymentPath(id), schema: deploymentAnswerSchema, signal })).body

  return {
    listDeployments,
    findDeploymentByName,
    getDeployment,

    createDeployment: async (body, signal) =>
      await withRecovery<CreateResult>({
        context,
        signal,
        send: async () => {
          const sent = toDialect(body, dialect)
          const request = { method: 'POST', path: COLLECTION, body: sent, schema: deploymentAnswerSchema, signal } as const
          return { deployment: (await transport.request(request)).body, recovered: false }
        },
        recover: async () => {
          const deployment = await findDeploymentByName(body.name, signal)
          if (deployment === null) return { outcome: 'absent' }
          const ours = (deployment.source ?? body.source) === body.source && matchesSent(deployment, body)
          if (ours) return { outcome: 'found', value: { deployment, recovered: true } }
          const because = `a deployment of that name exists now (${deployment.id}), but with another source`
          return { outcome: 'unclear', because }
        },
      }),

    patchDeployment: async ({ id, body, previousLatestRevisionId, signal }) =>
      await withRecovery<PatchResult>({
        context,
        signal,
        send: async () => {
          const sent = toDialect(body, dialect)
          const path = deploymentPath(id)
          const request = { method: 'PATCH', path, body: sent, schema: deploymentAnswerSchema, signal } as const
          const deployment = (await transport.request(request)).body
          const latest = deployment.latest_revision_id
          return { deployment, revisionId: latest === previousLatestRevisionId ? null : latest, recovered: false }
        },
        recover: async () => {
          if (!makesRevision(body)) return { outcome: 'absent' }
          const revisions = await listRevisions({ deploymentId: id, max: PAGE_LIMIT_MAX, signal })
          const newer = newerRevisions(revisions, previousLatestRevisionId)
          if (newer === null) {
            const because = `the revision ${previousLatestRevisionId}, which came before, is not in the list`
            return { outcome: 'unclear', because }
          }
          const revision = newer.find((candidate) => matchesSent(candidate, body))
          if (revision === undefined) return { outcome: 'absent' }
          const deployment = await getDeployment(id, signal)
          return { outcome: 'found', value: { deployment, revisionId: revision.id, recovered: true } }
        },
      }),

    redeployRevision: async ({ deploymentId, revisionId, previousLatestRevisionId, signal }) =>
      await withRecovery<PatchResult>({
        context,
        signal,
        send: async () =>
          await onOptionalRoute({
            ids: [deploymentId, revisionId],
            what: 'way to redeploy a revision',
            run: async () => {
              const path = pathOf('v2', 'deployments', deploymentId, 'revisions', revisionId, 'redeploy')
              const deployment = (await transport.request({ method: 'POST', path, schema: deploymentAnswerSchema, signal })).body
              const latest = deployment.latest_revision_id
              return { deployment, revisionId: latest === previousLatestRevisionId ? null : latest, recovered: false }
            },
          }),
        recover: async () => {
          const revisions = await listRevisions({ deploymentId, max: PAGE_LIMIT_MAX, signal })
          const source = revisions.find(({ id }) => id === revisionId)
          const newer = newerRevisions(revisions, previousLatestRevisionId)
          if (newer === null || source === undefined) {
            return { outcome: 'unclear', because: 'the revisions from before are not all in the list' }
          }
          const revision = newer.find((candidate) => isSameSource(candidate, source))
          if (revision === undefined) return { outcome: 'absent' }
          const deployment = await getDeployment(deploymentId, signal)
          return { outcome: 'found', value: { deployment, revisionId: revision.id, recovered: true } }
        },
      }),

    deleteDeployment: async ({ id, deleteTracingProject, timeoutMs, signal }) =>
      await onOptionalRoute({
        ids: [id],
        what: 'way to delete a deployment',
        run: async () => {
          const query = { delete_tracing_project: deleteTracingProject }
          try {
            await transport.request({
              method: 'DELETE',
              path: deploymentPath(id),
              query,
              emptyAllowed: true,
              ...(timeoutMs === undefined ? {} : { timeoutMs }),
              signal,
            })
            return { alreadyGone: false }
          } catch (error) {
            if (!isMissingResource(error, [id])) throw error
            return { alreadyGone: true }
          }
        },
      }),
  }
}

function deploymentPath(id: string): string {
  return pathOf('v2', 'deployments', id)
}

/** True for revisions of one source; a commit that is not known yet may still become that of the other. */
function isSameSource({ source_revision_config: a }: RevisionAnswer, { source_revision_config: b }: RevisionAnswer): boolean {
  const commit = a.repo_commit_sha === null || b.repo_commit_sha === null || a.repo_commit_sha === b.repo_commit_sha
  return commit && (['repo_ref', 'graph_config_path', 'image_uri'] as const).every((field) => a[field] === b[field])
}

/** True when a PATCH with this body makes a revision (specification 2.2; hosted service). */
function makesRevision(body: DeploymentPatch): boolean {
  const { repo_ref, graph_config_path, image_uri } = body.source_revision_config ?? {}
  const { resource_spec, install_command, build_command } = body.source_config ?? {}
  const triggers = [repo_ref, graph_config_path, image_uri, resource_spec, install_command, build_command, body.secret_references]
  return triggers.some((value) => value !== null && value !== undefined) || (body.secrets?.length ?? 0) > 0
}
