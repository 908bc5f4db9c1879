import { startDeadline } from '../client/deadline.ts'
import { deploymentAddress, type DeploymentAnswer, type RevisionAnswer } from '../contract/answers.ts'
import type { Deps } from './deps.ts'
import type { Inputs } from './inputs.ts'
import { ActionFailure } from './report/error-codes.ts'
import { requestFailure } from './report/request-failure.ts'

/** How long the control plane may take to say that the revision that is `DEPLOYED` is the one that serves. */
const SWITCH_MS = 30_000
const SWITCH_POLL_MS = 2000

/**
 * Proves that the revision that this step made is the one that serves, where the control plane tells. `previousId` is the
 * revision that served before. Throws `E_SUPERSEDED` when another one has taken its place.
 */
export async function verifyServing({
  deploymentId,
  revisionId,
  previousId,
  deps,
}: {
  deploymentId: string
  revisionId: string
  previousId: string | null
  deps: Deps
}): Promise<void> {
  const { controlPlane, effects, journal, signal } = deps
  const deadline = startDeadline({ timeoutMs: 2 * SWITCH_MS, parent: signal, effects })
  const start = effects.now()
  try {
    for (;;) {
      const deployment = await controlPlane.getDeployment(deploymentId, deadline.signal)
      journal.set('deployment-url', deploymentAddress(deployment))
      const active = deployment.active_revision_id
      if (active === null || active === revisionId) {
        noteNewer(deployment, revisionId, deps)
        return
      }
      if (active !== previousId) throw superseded(revisionId, active)
      if (effects.now() - start >= SWITCH_MS) throw neverSwitched(revisionId, active)
      await effects.sleep(SWITCH_POLL_MS, deadline.signal)
    }
  } catch (error) {
    if (error instanceof ActionFailure) throw error
    if (signal.aborted)
      throw new ActionFailure({
        code: 'E_CANCELLED',
        happened: 'The step was cancelled while it verified the deployment.',
        cause: error,
      })
    throw requestFailure(error, `The revision ${revisionId} is DEPLOYED, but verifying that it serves`)
  } finally {
    deadline.stop()
  }
}

/** Takes over what the revision was made from, and warns when that is not the commit of the workflow. */
export function checkCommit({
  inputs,
  revision,
  deps,
}: {
  inputs: Inputs
  revision: RevisionAnswer
  deps: Pick<Deps, 'log' | 'journal'>
}): void {
  const { repo_commit_sha: commit, image_uri: image } = revision.source_revision_config
  deps.journal.set('commit-sha', commit)
  deps.journal.set('image-uri', image)
  if (inputs.source.kind !== 'git_host' || inputs.source.commit === undefined || commit === null) return
  if (commit.toLowerCase() === inputs.source.commit) return
  const { commit: wanted, repoRef } = inputs.source
  const sentence = `The revision was built from ${commit}, and the workflow runs on ${wanted}: ${repoRef} has moved meanwhile.`
  deps.log.warning(sentence)
  deps.journal.note(sentence)
}

function noteNewer({ latest_revision_id: latest }: DeploymentAnswer, revisionId: string, { log, journal }: Deps): void {
  if (latest === null || latest === revisionId) return
  const sentence = `A newer revision, ${latest}, is already on its way.`
  log.info(sentence)
  journal.note(sentence)
}

function superseded(revisionId: string, active: string): ActionFailure {
  return new ActionFailure({
    code: 'E_SUPERSEDED',
    happened: `The revision ${revisionId} was deployed, but another one serves by now: ${active}.`,
  })
}

function neverSwitched(revisionId: string, active: string): ActionFailure {
  return new ActionFailure({
    code: 'E_PROTOCOL',
    happened: `The revision ${revisionId} is DEPLOYED, but the one before it still serves: ${active}.`,
    tried: `The deployment was read again and again for ${SWITCH_MS / 1000} s.`,
    next: 'Look at the deployment on the control plane, and run the step again.',
  })
}
