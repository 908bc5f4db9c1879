import type { DeploymentPatch } from '../../contract/deployment.ts'
import type { SourceRevisionConfigAnswer } from '../../contract/answers.ts'
import { isTagRef } from '../../contract/git-ref.ts'
import { RequestFailure } from '../../client/failure.ts'
import type { LastGood } from './last-good.ts'
import type { ActionFailure, ErrorCode } from '../report/error-codes.ts'

/** Failures after which the last good source is brought back: the revision is proven to be bad. */
const ROLLED_BACK: readonly ErrorCode[] = ['E_CREATE_FAILED', 'E_BUILD_FAILED', 'E_DEPLOY_FAILED', 'E_SMOKE_TEST', 'E_CONFLICT']

/** Why a failure of a revision that this step made is none to roll back for; undefined when it is one. */
export function reasonToLeave({ code, cause }: Pick<ActionFailure, 'code' | 'cause'>): string | undefined {
  // A conflict that the control plane, or a proxy, has answered says nothing about the revision.
  const answered = code === 'E_CONFLICT' && cause instanceof RequestFailure
  if (ROLLED_BACK.includes(code) && !answered) return undefined
  switch (code) {
    case 'E_SUPERSEDED':
      return 'another revision has taken over, and it is not for this step to replace that one'
    case 'E_INTERRUPTED':
      return 'whoever interrupted the revision left the one before in service'
    case 'E_TIMEOUT':
      return 'the revision has not failed: it was not seen to end'
    case 'E_CANCELLED':
      return 'the step was cancelled'
    default:
      return 'it is not known that the revision is bad'
  }
}

/** What the control plane says once the revision of this step has failed. */
export type Scene = {
  good: LastGood
  failed: { revisionId: string; status: string; source: SourceRevisionConfigAnswer }
  /** Null: nothing serves. Undefined: the control plane does not tell. */
  activeRevisionId: string | null | undefined
  latestRevisionId: string | null
}

/** Why another step's or person's work forbids a rollback; undefined when nothing does. */
export function interference({ good, failed, activeRevisionId: active, latestRevisionId: latest }: Scene): string | undefined {
  if (typeof active === 'string' && active !== good.revisionId && active !== failed.revisionId)
    return `another revision, ${active}, serves by now`
  if (latest !== null && latest !== failed.revisionId) return `a newer revision, ${latest}, is on its way`
  return undefined
}

/**
 * True when the last good revision goes on serving. A control plane that does not tell keeps it as long as the new one fails. One that
 * is `DEPLOYED` may take its place at any moment, although the control plane still names the good one.
 */
export function goodServes({ good, failed, activeRevisionId }: Scene): boolean {
  return failed.status !== 'DEPLOYED' && (activeRevisionId === undefined || activeRevisionId === good.revisionId)
}

/** True when the deployment has to get a revision of the last good source: it does not serve, or the next one would not be of it. */
export function needsRevision(scene: Scene, { secretsSent }: { secretsSent: boolean }): boolean {
  return !goodServes(scene) || secretsSent || differences(scene).length > 0
}

type SourceField = 'repo_ref' | 'graph_config_path' | 'image_uri'

function differences({ good, failed }: Pick<Scene, 'good' | 'failed'>): SourceField[] {
  const fields = ['repo_ref', 'graph_config_path', 'image_uri'] as const
  // The service fills in the image that it has built from git: that one cannot be asked for.
  const compared = good.source.repo_ref === null ? fields : fields.filter((field) => field !== 'image_uri')
  return compared.filter((field) => good.source[field] !== null && good.source[field] !== failed.source[field])
}

/**
 * The update that brings the last good source back where no revision can be redeployed, or why there is none: a git source is
 * built from a ref only, never from a commit (specification 2.2).
 */
export function updateBack(scene: Scene): { body: DeploymentPatch } | { impossible: string } {
  const { good, failed } = scene
  const { repo_ref: ref, graph_config_path: path, image_uri: image, repo_commit_sha: commit } = good.source
  const changed = differences(scene)
  if (ref === null) {
    if (image === null) return { impossible: `the control plane does not tell what ${good.revisionId} was made from` }
    if (changed.length === 0) return { impossible: `the image has the same name as before, ${image}: it would be the same again` }
    return { body: { source_revision_config: { image_uri: image } } }
  }
  if (!changed.includes('repo_ref') && commit !== failed.source.repo_commit_sha) {
    return {
      impossible:
        `${ref} has moved from ${commit ?? 'an unknown commit'} to ${failed.source.repo_commit_sha ?? 'another commit'}, ` +
        'and the control plane builds from branches and tags only',
    }
  }
  if (changed.length === 0)
    return { impossible: `it was made from the same ref and commit, ${ref} at ${commit ?? 'an unknown one'}` }
  if (goodServes(scene) && !isTagRef(ref))
    return { impossible: `${ref} is a branch, whose newest commit may be another than ${commit ?? 'that'}, which serves` }
  return { body: { source_revision_config: { repo_ref: ref, ...(path === null ? {} : { graph_config_path: path }) } } }
}
