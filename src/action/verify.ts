import { startDeadline } from '../client/deadline.ts'
import { deploymentAddress, type DeploymentAnswer, type RevisionAnswer } from '../contract/answers.ts'
import type { Deps } from './deps.ts'
import type { Inputs } from './inputs.ts'
import { ActionFailure } from './report/error-codes.ts'
import { requestFailure } from './report/request-failure.ts'

/** How long the control plane may take to say that the revision that is `DEPLOYED` is the one that serves. */
const SWITCH_MS = 30_000
const SWITCH_POLL_MS = 2000
const TRIED = `The deployment was read again and again for ${SWITCH_MS / 1000} s.`
const NEXT = 'Look at the deployment on the control plane, and run the step again.'

/**
 * Proves that the revision that this step made is the one that serves, where the control plane tells. `previousId` is the
 * revision that served before. Throws `E_SUPERSEDED` when another one has taken its place, and `E_PROTOCOL` when the one before
 * it, or none, serves on.
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
      if (active === undefined || active === revisionId) {
        noteNewer(deployment, revisionId, deps)
        return
      }
      if (active !== null && active !== previousId && !(await isOlder(active))) throw superseded(revisionId, active)
      if (effects.now() - start >= SWITCH_MS)
        throw active === null ? nothingServes(revisionId, TRIED) : neverSwitched(revisionId, active)
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

  /** True for one that was made before this step's: another step's, that came into service while this one waited. */
  async function isOlder(active: string): Promise<boolean> {
    const [its, own] = await Promise.all([active, revisionId].map(madeAt))
    return its !== undefined && own !== undefined && its < own
  }

  async function madeAt(id: string): Promise<number> {
    const revision = await controlPlane.getRevision({ deploymentId, revisionId: id, signal: deadline.signal })
    return Date.parse(revision.created_at ?? '')
  }
}

/** Why a revision is not the one that was to be promoted; undefined when it is, or when any commit of its ref will do. */
export function otherCommit({ source }: Pick<Inputs, 'source'>, revision: RevisionAnswer): string | undefined {
  if (source.kind !== 'git_host' || source.pinned !== true) return undefined
  const { repo_commit_sha: commit } = revision.source_revision_config
  const wanted = source.commit ?? 'none'
  if (commit?.toLowerCase() === wanted) return undefined
  const proven = `The revision ${revision.id} was to be built from ${wanted}, which was proven`
  if (commit === null) return `${proven}, and the control plane does not tell which commit it was built from.`
  return `${proven}, and was built from ${commit}: ${source.repoRef} has moved.`
}

/**
 * Takes over what the revision was made from. A commit that is not that of the workflow is a warning; one that is not the proven
 * one that was to be promoted is an `E_CONFLICT`.
 */
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
  const other = otherCommit(inputs, revision)
  if (other !== undefined && (commit !== null || revision.status === 'DEPLOYED')) {
    throw new ActionFailure({
      code: 'E_CONFLICT',
      happened: `${other} It is ${revision.status}.`,
      next:
        commit === null
          ? 'Look at the revision on the control plane: without its commit nothing is proven.'
          : 'Find out who moved the tag. Make a new tag at the commit that was proven, and promote that.',
    })
  }
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

/** The failure of a revision whose place another one has taken, after it had been deployed. */
export function superseded(revisionId: string, active: string): ActionFailure {
  return new ActionFailure({
    code: 'E_SUPERSEDED',
    happened: `The revision ${revisionId} was deployed, but another one serves by now: ${active}.`,
  })
}

/** The failure of a revision that was deployed, on a control plane that says that none serves. */
export function nothingServes(revisionId: string, tried?: string): ActionFailure {
  return new ActionFailure({
    code: 'E_PROTOCOL',
    happened: `The revision ${revisionId} is DEPLOYED, but the control plane says that no revision serves.`,
    ...(tried === undefined ? {} : { tried }),
    next: NEXT,
  })
}

function neverSwitched(revisionId: string, active: string): ActionFailure {
  return new ActionFailure({
    code: 'E_PROTOCOL',
    happened: `The revision ${revisionId} is DEPLOYED, but the one before it still serves: ${active}.`,
    tried: TRIED,
    next: NEXT,
  })
}
