import type { DeploymentAnswer, RevisionAnswer } from '../../contract/answers.ts'
import { isFinalRevisionStatus } from '../../contract/status.ts'
import type { Deps } from '../deps.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { requestFailure } from '../report/request-failure.ts'
import type { Scene } from './decide.ts'
import type { LastGood } from './last-good.ts'

/** How long a revision that was interrupted may take to end: until then it may still come into service. */
const END_MS = 60_000
const POLL_MS = 2000

/** Reads what is there now that the revision of this step has failed, and waits until that one cannot change any more. */
export async function survey({
  deploymentId,
  revisionId,
  good,
  signal,
  deps,
}: {
  deploymentId: string
  revisionId: string
  good: LastGood
  signal: AbortSignal
  deps: Pick<Deps, 'controlPlane' | 'effects'>
}): Promise<{ deployment: DeploymentAnswer; scene: Scene }> {
  try {
    const failed = await ended({ deploymentId, revisionId, signal, deps })
    const deployment = await deps.controlPlane.getDeployment(deploymentId, signal)
    return {
      deployment,
      scene: {
        good,
        failed: { revisionId, status: failed.status, source: failed.source_revision_config },
        activeRevisionId: deployment.active_revision_id,
        latestRevisionId: deployment.latest_revision_id,
      },
    }
  } catch (error) {
    throw requestFailure(error, 'Finding out what serves')
  }
}

async function ended({
  deploymentId,
  revisionId,
  signal,
  deps: { controlPlane, effects },
}: {
  deploymentId: string
  revisionId: string
  signal: AbortSignal
  deps: Pick<Deps, 'controlPlane' | 'effects'>
}): Promise<RevisionAnswer> {
  const start = effects.now()
  for (;;) {
    const revision = await controlPlane.getRevision({ deploymentId, revisionId, signal })
    if (isFinalRevisionStatus(revision.status)) return revision
    if (effects.now() - start >= END_MS) {
      throw new ActionFailure({
        code: 'E_TIMEOUT',
        happened: `The revision ${revisionId} is still ${revision.status}: it may yet come into service.`,
        next: 'Look at the deployment on the control plane.',
      })
    }
    await effects.sleep(POLL_MS, signal)
  }
}
