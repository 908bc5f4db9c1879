import { startDeadline } from '../../client/deadline.ts'
import { RequestFailure } from '../../client/failure.ts'
import type { Deps } from '../deps.ts'
import type { Inputs } from '../inputs.ts'
import type { ActionFailure } from '../report/error-codes.ts'
import type { Aside } from './aside.ts'
import type { LastGood } from './last-good.ts'

const SERVES_MS = 5000

/** What a rollback cannot undo: values of secrets are never readable, so that earlier ones cannot be sent again. */
export function secretsSentence({ secrets = [] }: Pick<Inputs, 'secrets'>): {
  kept: string
  of: (how: 'redeployed' | 'updated') => string
} {
  const names = secrets.map(({ name }) => name).join(', ')
  const [verb, values] = secrets.length === 1 ? ['keeps', 'its earlier value'] : ['keep', 'their earlier values']
  const kept = secrets.length === 0 ? '' : ` ${names} ${verb} what this step has set: ${values} cannot be read back.`
  const redeployed =
    secrets.length === 0
      ? ''
      : ` Whether ${names} ${secrets.length === 1 ? 'has' : 'have'} ${values} again is for the control plane: a redeploy takes the environment of the revision.`
  return { kept, of: (how) => (how === 'updated' ? kept : redeployed) }
}

/**
 * Why the revision that a rollback made is not known to be the last good one, although it serves; undefined when it is. A redeploy takes
 * the commit of the revision (hosted service); an update builds what the ref is at.
 */
export function differentCommit({
  good: { revisionId, source },
  commit,
  how,
}: {
  good: LastGood
  commit: string | undefined
  how: 'redeployed' | 'updated'
}): string | undefined {
  const { repo_ref: ref, repo_commit_sha: wanted } = source
  if (ref === null) return undefined
  if (wanted === null)
    return how === 'redeployed'
      ? undefined
      : `the control plane does not tell which commit ${revisionId} was built from, and ${ref} may have moved meanwhile.`
  if (commit?.toLowerCase() === wanted.toLowerCase()) return undefined
  return (
    `${revisionId} was built from ${wanted}, and what serves now from ${commit ?? 'a commit that the control plane does not tell'}, ` +
    `because ${ref} has moved meanwhile.`
  )
}

/** What cannot be promised of an image that is named by a tag. */
export function imageDoubt({ source: { repo_ref: ref, image_uri: image } }: Pick<LastGood, 'source'>): string {
  if (ref !== null || image === null || image.includes('@sha256:')) return ''
  return ` The image is named by a tag, ${image}: whether it is still the same one cannot be told.`
}

/** The story of a rollback that did not come to its end, with what serves now, where that can still be found out. */
export async function unfinished({
  second,
  aside,
  asked,
  deploymentId,
  deps,
}: {
  second: ActionFailure
  aside: Aside
  /** Whether the control plane was asked for a revision. */
  asked: boolean
  deploymentId: string
  deps: Pick<Deps, 'once' | 'effects' | 'signal'>
}): Promise<string> {
  const revisionId = aside.output('revision-id')
  // Without a revision, and asked for one: its answer is missing.
  const unanswered = asked && revisionId === undefined
  if (deps.signal.aborted) {
    if (unanswered)
      return 'The step was cancelled before the rollback was answered: it may have begun, and goes on by itself then.'
    return revisionId === undefined
      ? 'The step was cancelled before the rollback had begun.'
      : `The step was cancelled during the rollback: the revision ${revisionId} goes on by itself, whatever on-cancel says.`
  }
  const which = revisionId === undefined ? '' : ` (revision ${revisionId})`
  const happened = `The rollback failed as well${which}: ${second.code}: ${second.message}`
  const lost = unanswered && second.cause instanceof RequestFailure && second.cause.ambiguous
  const doubt = lost ? ' It may have begun all the same.' : ''
  return `${happened}${/[.!?]$/.test(happened) ? '' : '.'}${doubt} ${await serves(deploymentId, deps)}`
}

async function serves(
  deploymentId: string,
  { once, effects, signal }: Pick<Deps, 'once' | 'effects' | 'signal'>,
): Promise<string> {
  const deadline = startDeadline({ timeoutMs: SERVES_MS, parent: signal, effects })
  try {
    const { active_revision_id: active } = await once.getDeployment(deploymentId, deadline.signal)
    if (active === null) return 'No revision serves.'
    return active === undefined ? 'The control plane does not tell which revision serves.' : `The revision ${active} serves.`
  } catch {
    return 'Which revision serves could not be found out.'
  } finally {
    deadline.stop()
  }
}
