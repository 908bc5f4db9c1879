import type { DeploymentAnswer, RevisionAnswer } from '../../contract/answers.ts'
import type { Proof } from '../github/proof.ts'
import type { GitSource, ImageSource } from '../inputs.ts'
import { sameRepoUrl } from '../parse/repo-url.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { digestOf, type PromoteWish } from './wish.ts'

/** What a promotion is judged by. */
export type Evidence = {
  wish: PromoteWish
  /** The deployment that was proven, and the revision of it that serves. */
  deployment: DeploymentAnswer
  revision: RevisionAnswer
  /** The commit that the tag names by now; null when there is no such tag, undefined when no tag was given. */
  tagCommit: string | null | undefined
  proof: Proof | null
  /** Address of the repository of the workflow, whose tags and records these are. */
  repoUrl: string | undefined
}

/** The source that is promoted. Throws `E_CONFLICT` unless it is exactly what was proven, and what the tag or the image names. */
export function judge(evidence: Evidence): GitSource | ImageSource {
  const { deployment, revision } = evidence
  if (revision.status !== 'DEPLOYED') {
    throw refused({
      happened: `The live revision of '${deployment.name}', ${revision.id}, is ${revision.status}, not DEPLOYED.`,
      next: `Deploy '${deployment.name}' first, and see its smoke test pass.`,
    })
  }
  const source = deployment.source === 'external_docker' ? imageOf(evidence) : gitOf(evidence)
  if (evidence.proof === null) throw unproven(evidence)
  if (source.kind === 'external_docker') agreeOnImage(evidence, evidence.proof)
  return source
}

function gitOf({ wish, deployment, revision, tagCommit, repoUrl }: Evidence): GitSource {
  const { repo_commit_sha: commit, graph_config_path: configPath } = revision.source_revision_config
  const { repo_url: provenUrl } = deployment.source_config
  const { tag } = wish
  if (tag === undefined) {
    throw refused({
      happened: `'${deployment.name}' is built from git, and image-uri names an image.`,
      next: 'Take image-uri out, and give the tag of the release.',
    })
  }
  if (provenUrl === null || repoUrl === undefined || !sameRepoUrl(provenUrl, repoUrl)) {
    throw refused({
      happened:
        `'${deployment.name}' is built from ${provenUrl ?? 'a repository that the control plane does not tell'}, ` +
        `and this workflow runs in ${repoUrl ?? 'none'}: its tags say nothing about that one.`,
      next: 'Promote from a workflow of the repository that is deployed.',
    })
  }
  if (tagCommit === null || tagCommit === undefined) {
    throw refused({
      happened: `The repository has no tag ${tag} that names a commit, as far as github-token may see.`,
      next: 'Push the tag, give the job the permission contents: read, and run the step again.',
    })
  }
  if (commit === null || configPath === null) {
    throw refused({
      happened: `The control plane does not tell the ${commit === null ? 'commit' : 'graph configuration'} of the revision ${revision.id}.`,
      next: 'Nothing can be proven without it: deploy the tag with mode: deploy.',
    })
  }
  if (commit.toLowerCase() !== tagCommit.toLowerCase()) {
    throw refused({
      happened:
        `'${deployment.name}' serves another commit than the tag names:\n` +
        `- live: ${commit} (revision ${revision.id})\n- wanted: ${tagCommit} (${tag})`,
      next: `Deploy the commit of the tag to '${deployment.name}' and see it pass, or move the release to the commit that was proven.`,
    })
  }
  return {
    kind: 'git_host',
    repoUrl: provenUrl,
    repoRef: tag,
    configPath,
    commit: tagCommit,
    eventCommit: tagCommit,
    pinned: true,
  }
}

function imageOf({ wish, deployment, revision }: Evidence): ImageSource {
  const { image_uri: imageUri } = revision.source_revision_config
  const digest = imageUri === null ? undefined : digestOf(imageUri)
  if (imageUri === null || digest === undefined) {
    throw refused({
      happened:
        `The revision ${revision.id} of '${deployment.name}' runs ${imageUri ?? 'an image that the control plane does not tell'}, ` +
        'which names no digest: another image may have its name by now.',
      next: `Deploy the image to '${deployment.name}' by its digest: name@sha256:….`,
    })
  }
  const wanted = wish.imageUri === undefined ? digest : digestOf(wish.imageUri)
  if (wanted !== digest) {
    throw refused({
      happened:
        `'${deployment.name}' serves another image than image-uri names:\n` +
        `- live: ${digest} (revision ${revision.id})\n- wanted: ${wanted ?? 'none'}`,
      next: `Deploy that image to '${deployment.name}' and see it pass, or promote the one that serves there.`,
    })
  }
  // The same image may be known under another name to the target's registry.
  return { kind: 'external_docker', imageUri: wish.imageUri ?? imageUri }
}

/** An image that only the tag of the repository names has to have been deployed by a workflow of that commit. */
function agreeOnImage({ wish, deployment, revision, tagCommit }: Evidence, proof: Proof): void {
  if (wish.imageUri !== undefined) return
  if (tagCommit === null || tagCommit === undefined) {
    throw refused({
      happened: `The repository has no tag ${wish.tag ?? ''} that names a commit, as far as github-token may see.`,
      next: 'Push the tag and give the job the permission contents: read, or give image-uri.',
    })
  }
  if (proof.sha.toLowerCase() === tagCommit.toLowerCase()) return
  throw refused({
    happened:
      `The image that '${deployment.name}' serves was deployed by a workflow of another commit than the tag names:\n` +
      `- live: ${proof.sha} (revision ${revision.id}, environment ${proof.environment})\n- wanted: ${tagCommit} (${wish.tag ?? ''})`,
    next: `Deploy the image of the tag to '${deployment.name}' and see it pass, or name the image by its digest in image-uri.`,
  })
}

function unproven({ deployment, revision }: Evidence): ActionFailure {
  return refused({
    happened:
      `There is no record that the revision ${revision.id} of '${deployment.name}' has passed its smoke test: ` +
      "GitHub's deployments of this repository have none for this control plane, or a later one says that it has failed it.",
    next:
      `Deploy '${deployment.name}' with environment and smoke-test-input set (and the permission deployments: write): ` +
      'the step that passes leaves the record.',
  })
}

function refused({ happened, next }: { happened: string; next: string }): ActionFailure {
  return new ActionFailure({ code: 'E_CONFLICT', happened, tried: 'Nothing was changed.', next })
}
