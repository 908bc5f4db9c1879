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
