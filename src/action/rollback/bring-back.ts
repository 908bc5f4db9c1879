import { RequestFailure } from '../../client/failure.ts'
import type { DeploymentAnswer } from '../../contract/answers.ts'
import type { Deps } from '../deps.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { requestFailure } from '../report/request-failure.ts'
import { type Scene, updateBack } from './decide.ts'

/** How the last good source was asked for, or why it cannot be. */
export type BroughtBack = { revisionId: string; how: 'redeployed' | 'updated' } | { impossible: string }

/**
 * Makes a revision of the last good source: by a redeploy of the good revision, which keeps its commit and its environment, and
 * where the control plane cannot, by an update to the ref or image that it was made from.
 */
export async function bringBack({
  deployment,
  scene,
  signal,
  deps,
}: {
  deployment: DeploymentAnswer
  scene: Scene
  signal: AbortSignal
  deps: Pick<Deps, 'controlPlane' | 'log'>
}): Promise<BroughtBack> {
  const { good } = scene
  const previousLatestRevisionId = deployment.latest_revision_id
  const options = { deploymentId: deployment.id, revisionId: good.revisionId, previousLatestRevisionId, signal }
  const doing = `Bringing the revision ${good.revisionId} back`
  let refusal: string
  try {
    const { revisionId } = await deps.controlPlane.redeployRevision(options)
    return { revisionId: made(revisionId), how: 'redeployed' }
  } catch (error) {
    if (!isRefused(error)) throw requestFailure(error, doing)
    refusal = error.message
  }
  const way = updateBack(scene)
  if ('impossible' in way) return { impossible: `${refusal}; and ${way.impossible}` }
  deps.log.info(`The revision cannot be redeployed (${refusal}): its source is asked for once more.`)
  try {
    const patch = { id: deployment.id, body: way.body, previousLatestRevisionId, signal }
    return { revisionId: made((await deps.controlPlane.patchDeployment(patch)).revisionId), how: 'updated' }
  } catch (error) {
    throw requestFailure(error, doing)
  }
}

/** No such route, or not for this revision: some control planes redeploy only the latest one (hosted service). */
function isRefused(error: unknown): error is RequestFailure {
  if (!(error instanceof RequestFailure)) return false
  return error.kind === 'unsupported' || (error.kind === 'http' && [400, 404, 409, 422].includes(error.status ?? 0))
}

function made(revisionId: string | null): string {
  if (revisionId !== null) return revisionId
  throw new ActionFailure({
    code: 'E_PROTOCOL',
    happened: 'The control plane accepted the rollback, but made no new revision.',
  })
}
