import type { DeploymentAnswer, RevisionAnswer } from '../contract/answers.ts'
import { isFinalRevisionStatus } from '../contract/status.ts'
import { changesOf } from './compare.ts'
import type { Inputs } from './inputs.ts'

/** The revision that serves, null when none does. Where the control plane does not tell, it is taken to be the newest one. */
export function servingRevisionId({ active_revision_id: active, latest_revision_id: latest }: DeploymentAnswer): string | null {
  return active === undefined ? latest : active
}

/**
 * Why a new revision is needed although the workflow would rather not make one; undefined when the one that serves (`live`) is
 * already what is wanted. `latest` is the newest revision, where that is another one.
 */
export function reasonToDeploy({
  inputs,
  deployment,
  live,
  latest,
}: {
  inputs: Inputs
  deployment: DeploymentAnswer
  live: RevisionAnswer
  latest: RevisionAnswer | undefined
}): string | undefined {
  const { source } = inputs
  if (live.status !== 'DEPLOYED') return `the revision ${live.id} is ${live.status}`
  if (latest !== undefined && !isFinalRevisionStatus(latest.status)) return `a newer revision, ${latest.id}, is ${latest.status}`
  if ((inputs.secrets?.length ?? 0) > 0) return 'secrets are given, and their live values cannot be compared'
  const [change] = changesOf(inputs, { ...deployment, source_revision_config: live.source_revision_config })
  if (change !== undefined) return `${change.field} is '${change.live}' and wanted '${change.wanted}'`
  if (source.kind === 'external_docker') {
    return /@sha256:[0-9a-f]{64}$/.test(source.imageUri)
      ? undefined
      : 'the image is named by a tag, which may mean another image by now: name it by its digest'
  }
  const commit = live.source_revision_config.repo_commit_sha
  if (source.eventCommit === undefined) return `the event does not tell which commit ${source.repoRef} is`
  if (commit === null) return 'the control plane does not tell the commit of the live revision'
  return commit.toLowerCase() === source.eventCommit
    ? undefined
    : `the live commit is ${commit} and the wanted one ${source.eventCommit}`
}
