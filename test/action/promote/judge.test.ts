import { describe, expect, it } from 'vitest'
import { type Evidence, judge } from '../../../src/action/promote/judge.ts'
import { ActionFailure } from '../../../src/action/report/error-codes.ts'
import { COMMIT, deployment, DIGEST, OLD_REVISION_ID, REPO_URL, revision } from '../support/answers.ts'

const OTHER_COMMIT = 'b'.repeat(40)
const OTHER_DIGEST = `registry.example.com/team/agent@sha256:${'b'.repeat(64)}`
const proof = { sha: COMMIT, at: 0, environment: 'staging', recordId: 1 }

function git(changes: Partial<Evidence> = {}): Evidence {
  return {
    wish: { from: { name: 'staging' }, tag: 'refs/tags/v1' },
    deployment: deployment({ name: 'staging' }),
    revision: revision('DEPLOYED', { id: OLD_REVISION_ID }),
    tagCommit: COMMIT,
    proof,
    repoUrl: REPO_URL,
    ...changes,
  }
}

function image(imageUri: string | null, changes: Partial<Evidence> = {}): Evidence {
  return git({
    deployment: deployment({ name: 'staging', source: 'external_docker', source_config: {} }),
    revision: revision('DEPLOYED', { id: OLD_REVISION_ID, source_revision_config: { image_uri: imageUri } }),
    ...changes,
  })
}

function refusalOf(evidence: Evidence): ActionFailure {
  try {
    judge(evidence)
  } catch (error) {
    if (error instanceof ActionFailure) return error
    throw error
  }
  throw new Error('it was promoted')
}

describe('what is promoted', () => {
  it('is the tag, with the configuration that was proven, and no other commit', () => {
    const proven = { repo_ref: 'main', graph_config_path: 'apps/agent.json', repo_commit_sha: COMMIT.toUpperCase() }
    expect(judge(git({ revision: revision('DEPLOYED', { source_revision_config: proven }) }))).toEqual({
      kind: 'git_host',
      repoUrl: REPO_URL,
      repoRef: 'refs/tags/v1',
      configPath: 'apps/agent.json',
      commit: COMMIT,
      eventCommit: COMMIT,
      pinned: true,
    })
  })

  it('is the same repository in another spelling', () => {
    expect(judge(git({ repoUrl: `${REPO_URL}.git` }))).toMatchObject({ repoUrl: REPO_URL })
  })

  it('is the image that serves, by its digest', () => {
    expect(judge(image(DIGEST))).toEqual({ kind: 'external_docker', imageUri: DIGEST })
  })

  it('is the image by the name that the workflow gives it, when it is the same', () => {
    const elsewhere = `registry.example.org/release/agent@sha256:${'a'.repeat(64)}`
    const wish = { from: { name: 'staging' }, imageUri: elsewhere }
    expect(judge(image(DIGEST, { wish, tagCommit: undefined }))).toEqual({ kind: 'external_docker', imageUri: elsewhere })
  })
})

describe('a promotion is refused', () => {
  const refused: [string, Evidence, (string | RegExp)[]][] = [
    ['of another commit', git({ tagCommit: OTHER_COMMIT }), [`live: ${COMMIT}`, `wanted: ${OTHER_COMMIT}`, OLD_REVISION_ID]],
    ['without a record', git({ proof: null }), ['no record', OLD_REVISION_ID]],
    ['of an image without a record', image(DIGEST, { proof: null }), ['no record']],
    ['without the tag', git({ tagCommit: null }), ['no tag refs/tags/v1']],
    ['while the live revision is not DEPLOYED', git({ revision: revision('INTERRUPTED') }), ['is INTERRUPTED']],
    ['of another repository', git({ repoUrl: 'https://github.com/acme/other' }), [REPO_URL, 'acme/other']],
    ['outside a repository', git({ repoUrl: undefined }), ['runs in none']],
    [
      'of a commit that is not told',
      git({ revision: revision('DEPLOYED', { source_revision_config: { graph_config_path: 'langgraph.json' } }) }),
      ['does not tell the commit'],
    ],
    ['of git by an image', git({ wish: { from: { name: 'staging' }, imageUri: DIGEST } }), ['is built from git']],
    ['of an image by a tag that may move', image('registry.example.com/team/agent:1.0'), ['names no digest']],
    ['of an image that is not told', image(null), ['does not tell']],
    [
      'of another image',
      image(DIGEST, { wish: { from: { name: 'staging' }, imageUri: OTHER_DIGEST } }),
      [`live: sha256:${'a'.repeat(64)}`, `wanted: sha256:${'b'.repeat(64)}`],
    ],
    [
      'of an image that a workflow of another commit deployed',
      image(DIGEST, { tagCommit: OTHER_COMMIT }),
      [`live: ${COMMIT}`, `wanted: ${OTHER_COMMIT}`],
    ],
    ['of an image without the tag', image(DIGEST, { tagCommit: null }), ['no tag refs/tags/v1']],
  ]
  it.each(refused)('%s', (_, evidence, says) => {
    const failure = refusalOf(evidence)
    expect(failure.code).toBe('E_CONFLICT')
    expect(failure.tried).toBe('Nothing was changed.')
    for (const text of says) expect(failure.message).toMatch(text)
  })

  it('says how to get the record', () => {
    const { next } = refusalOf(git({ proof: null }))
    expect(next).toContain('environment and smoke-test-input')
    expect(next).toContain('deployments: write')
  })
})

describe('what a refusal says', () => {
  const config = (changes: Record<string, unknown>) =>
    revision('DEPLOYED', {
      id: OLD_REVISION_ID,
      source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json', repo_commit_sha: COMMIT, ...changes },
    })
  const untold = deployment({ name: 'staging', source_config: {} })
  const tagProblem = 'The repository has no tag refs/tags/v1 that names a commit, as far as github-token may see.'
  const untagged = { from: { name: 'staging' } }
  const otherRepository = 'Promote from a workflow of the repository that is deployed.'
  const untoldNext = 'Nothing can be proven without it: deploy the tag with mode: deploy.'
  const digestNext = "Deploy the image to 'staging' by its digest: name@sha256:…."
  const named = `The revision ${OLD_REVISION_ID} of 'staging' runs`

  it.each<[string, Evidence, string, string]>([
    [
      'of a revision that does not serve',
      git({ revision: revision('BUILDING', { id: OLD_REVISION_ID }) }),
      `The live revision of 'staging', ${OLD_REVISION_ID}, is BUILDING, not DEPLOYED.`,
      "Deploy 'staging' first, and see its smoke test pass.",
    ],
    [
      'of git, by an image',
      git({ wish: { from: { name: 'staging' }, imageUri: DIGEST } }),
      "'staging' is built from git, and image-uri names an image.",
      'Take image-uri out, and give the tag of the release.',
    ],
    [
      'of another repository',
      git({ repoUrl: 'https://github.com/acme/other' }),
      `'staging' is built from ${REPO_URL}, and this workflow runs in https://github.com/acme/other: its tags say nothing about that one.`,
      otherRepository,
    ],
    [
      'outside a repository',
      git({ repoUrl: undefined }),
      `'staging' is built from ${REPO_URL}, and this workflow runs in none: its tags say nothing about that one.`,
      otherRepository,
    ],
    [
      'of a repository that is not told',
      git({ deployment: untold }),
      `'staging' is built from a repository that the control plane does not tell, and this workflow runs in ${REPO_URL}: its tags say nothing about that one.`,
      otherRepository,
    ],
    [
      'of a tag that is not there',
      git({ tagCommit: null }),
      tagProblem,
      'Push the tag, give the job the permission contents: read, and run the step again.',
    ],
    [
      'of a tag that was not looked for',
      git({ tagCommit: undefined }),
      tagProblem,
      'Push the tag, give the job the permission contents: read, and run the step again.',
    ],
    [
      'of a commit that is not told',
      git({ revision: config({ repo_commit_sha: null }) }),
      `The control plane does not tell the commit of the revision ${OLD_REVISION_ID}.`,
      untoldNext,
    ],
    [
      'of a configuration that is not told',
      git({ revision: config({ graph_config_path: null }) }),
      `The control plane does not tell the graph configuration of the revision ${OLD_REVISION_ID}.`,
      untoldNext,
    ],
    [
      'of another commit',
      git({ revision: config({}), tagCommit: OTHER_COMMIT }),
      `'staging' serves another commit than the tag names:\n- live: ${COMMIT} (revision ${OLD_REVISION_ID})\n- wanted: ${OTHER_COMMIT} (refs/tags/v1)`,
      "Deploy the commit of the tag to 'staging' and see it pass, or move the release to the commit that was proven.",
    ],
    [
      'of an image by a tag that may move',
      image('registry.example.com/team/agent:1.0'),
      `${named} registry.example.com/team/agent:1.0, which names no digest: another image may have its name by now.`,
      digestNext,
    ],
    [
      'of an image that is not told',
      image(null),
      `${named} an image that the control plane does not tell, which names no digest: another image may have its name by now.`,
      digestNext,
    ],
    [
      'of another image',
      image(DIGEST, { wish: { ...untagged, imageUri: OTHER_DIGEST } }),
      `'staging' serves another image than image-uri names:\n- live: sha256:${'a'.repeat(64)} (revision ${OLD_REVISION_ID})\n- wanted: sha256:${'b'.repeat(64)}`,
      "Deploy that image to 'staging' and see it pass, or promote the one that serves there.",
    ],
    [
      'of an image that names no digest',
      image(DIGEST, { wish: { ...untagged, imageUri: 'registry.example.com/team/agent:1.0' } }),
      `'staging' serves another image than image-uri names:\n- live: sha256:${'a'.repeat(64)} (revision ${OLD_REVISION_ID})\n- wanted: none`,
      "Deploy that image to 'staging' and see it pass, or promote the one that serves there.",
    ],
    [
      'of an image whose tag is not there',
      image(DIGEST, { tagCommit: null }),
      tagProblem,
      'Push the tag and give the job the permission contents: read, or give image-uri.',
    ],
    [
      'of an image whose tag was not looked for',
      image(DIGEST, { tagCommit: undefined }),
      tagProblem,
      'Push the tag and give the job the permission contents: read, or give image-uri.',
    ],
    [
      'of an image that a workflow of another commit deployed',
      image(DIGEST, { tagCommit: OTHER_COMMIT }),
      `The image that 'staging' serves was deployed by a workflow of another commit than the tag names:\n- live: ${COMMIT} (revision ${OLD_REVISION_ID}, environment staging)\n- wanted: ${OTHER_COMMIT} (refs/tags/v1)`,
      "Deploy the image of the tag to 'staging' and see it pass, or name the image by its digest in image-uri.",
    ],
    [
      'without a record',
      git({ proof: null }),
      `There is no record that the revision ${OLD_REVISION_ID} of 'staging' has passed its smoke test: GitHub's deployments of this repository have none for this control plane, or a later one says that it has failed it.`,
      "Deploy 'staging' with environment and smoke-test-input set (and the permission deployments: write): the step that passes leaves the record.",
    ],
  ])('%s', (_, evidence, message, next) => {
    expect(refusalOf(evidence)).toMatchObject({ code: 'E_CONFLICT', message, tried: 'Nothing was changed.', next })
  })

  it('is nothing where the letter case of a commit is all that differs', () => {
    expect(judge(image(DIGEST, { proof: { ...proof, sha: COMMIT.toUpperCase() } }))).toMatchObject({ imageUri: DIGEST })
    expect(judge(git({ tagCommit: COMMIT.toUpperCase() }))).toMatchObject({ commit: COMMIT.toUpperCase() })
  })

  it('is nothing about the tag where an image is named', () => {
    const wish = { ...untagged, imageUri: DIGEST }
    for (const tagCommit of [null, undefined, OTHER_COMMIT]) {
      expect(judge(image(DIGEST, { wish, tagCommit }))).toEqual({ kind: 'external_docker', imageUri: DIGEST })
    }
  })

  it('is nothing about the workflow that deployed a commit: the commit itself is compared', () => {
    expect(judge(git({ proof: { ...proof, sha: OTHER_COMMIT } }))).toMatchObject({ commit: COMMIT })
  })
})
