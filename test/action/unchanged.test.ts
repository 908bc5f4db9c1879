import { describe, expect, it } from 'vitest'
import type { Inputs } from '../../src/action/inputs.ts'
import { reasonToDeploy } from '../../src/action/unchanged.ts'
import { COMMIT, deployment, DIGEST, REPO_URL, revision } from './support/answers.ts'
import { inputs } from './support/deps.ts'

const git = {
  kind: 'git_host',
  repoUrl: REPO_URL,
  repoRef: 'main',
  configPath: 'langgraph.json',
  commit: COMMIT,
  eventCommit: COMMIT,
} as const

function reason(
  wanted: Partial<Inputs> = {},
  live = revision('DEPLOYED'),
  latest = undefined as ReturnType<typeof revision> | undefined,
) {
  return reasonToDeploy({ inputs: inputs({ source: git, ...wanted }), deployment: deployment(), live, latest })
}

function imageReason(imageUri: string, live: string) {
  const image = { image_uri: live }
  const existing = deployment({ source: 'external_docker', source_config: {}, source_revision_config: image })
  return reasonToDeploy({
    inputs: inputs({ source: { kind: 'external_docker', imageUri } }),
    deployment: existing,
    live: revision('DEPLOYED', { source_revision_config: image }),
    latest: undefined,
  })
}

describe('reasonToDeploy', () => {
  it('is none when the live revision has this commit and this configuration', () => {
    expect(reason()).toBeUndefined()
    expect(reason({ buildOnPush: false })).toBeUndefined()
    expect(reason({}, revision('DEPLOYED'), revision('BUILD_FAILED'))).toBeUndefined()
  })

  it.each<[string, string | undefined]>([
    ['another commit', reason({ source: { ...git, commit: 'b'.repeat(40), eventCommit: 'b'.repeat(40) } })],
    [
      'a commit that nobody knows',
      reason({ source: { kind: 'git_host', repoUrl: REPO_URL, repoRef: 'main', configPath: 'langgraph.json' } }),
    ],
    ['another ref', reason({ source: { ...git, repoRef: 'refs/tags/v1' } })],
    ['another configuration file', reason({ source: { ...git, configPath: 'other.json' } })],
    ['another build_on_push', reason({ buildOnPush: true })],
    ['secrets', reason({ secrets: [{ name: 'A', value: 'x' }] })],
    ['a live revision that is not deployed', reason({}, revision('INTERRUPTED'))],
    ['a newer revision on its way', reason({}, revision('DEPLOYED'), revision('BUILDING'))],
    [
      'a live revision without a commit',
      reason({}, revision('DEPLOYED', { source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' } })),
    ],
    ['an image by tag, even the same', imageReason('registry.example.com/agent:1', 'registry.example.com/agent:1')],
    ['another digest', imageReason(DIGEST, `registry.example.com/team/agent@sha256:${'b'.repeat(64)}`)],
  ])('is there for %s', (_, found) => {
    expect(found).toMatch(/\w+/)
  })

  it('does not pretend to know the live values of secrets', () => {
    expect(reason({ secrets: [{ name: 'A', value: 'x' }] })).toBe('secrets are given, and their live values cannot be compared')
  })

  it('is none for the same digest', () => {
    expect(imageReason(DIGEST, DIGEST)).toBeUndefined()
  })
})
