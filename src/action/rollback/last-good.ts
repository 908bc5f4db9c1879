import type { DeploymentAnswer, RevisionAnswer, SourceRevisionConfigAnswer } from '../../contract/answers.ts'
import type { Deps } from '../deps.ts'
import { requestFailure } from '../report/request-failure.ts'

/** The revision that served before this step, and the settings of the deployment that an update changes with the source. */
export type LastGood = {
  revisionId: string
  source: SourceRevisionConfigAnswer
  /** Null where the control plane does not tell. */
  buildOnPush: boolean | null
}

/**
 * Remembers what a rollback would bring back; called before anything is changed. Null when the deployment has no revision that
 * was ever `DEPLOYED`: then there is nothing to go back to.
 */
export async function rememberGood({
  deployment,
  signal,
  deps,
}: {
  deployment: DeploymentAnswer
  signal: AbortSignal
  deps: Pick<Deps, 'controlPlane'>
}): Promise<LastGood | null> {
  try {
    const revision = await lastGood(deployment, signal, deps)
    if (revision === undefined) return null
    const { build_on_push: buildOnPush } = deployment.source_config
    return { revisionId: revision.id, source: revision.source_revision_config, buildOnPush }
  } catch (error) {
    throw requestFailure(error, 'Finding out what a rollback would bring back')
  }
}

async function lastGood(
  { id: deploymentId, active_revision_id: active }: DeploymentAnswer,
  signal: AbortSignal,
  { controlPlane }: Pick<Deps, 'controlPlane'>,
): Promise<RevisionAnswer | undefined> {
  if (typeof active === 'string') return await controlPlane.getRevision({ deploymentId, revisionId: active, signal })
  const [newest] = await controlPlane.listRevisions({ deploymentId, status: ['DEPLOYED'], max: 1, signal })
  return newest
}
