import { describe, expect, it } from 'vitest'
import type { Inputs } from '../../src/action/inputs.ts'
import { reasonToDeploy, servingRevisionId } from '../../src/action/unchanged.ts'
import {
  COMMIT,
  deployment,
  DIGEST,
  GIT_SOURCE,
  NEW_REVISION_ID,
  OLD_REVISION_ID,
  REPO_URL,
  revision,
} from './support/answers.ts'
import { inputs } from './support/deps.ts'

function reason(
  wanted: Partial<Inputs> = {},
  live = revision('DEPLOYED'),
  latest = undefined as ReturnType<typeof revision> | undefined,
) {
  return reasonToDeploy({ inputs: inputs({ source: GIT_SOURCE, ...wanted }), deployment: deployment(), live, latest })
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

describe('servingRevisionId', () => {
  it.each<[string, Record<string, unknown>, string | null]>([
    ['the active one', { active_revision_id: OLD_REVISION_ID }, OLD_REVISION_ID],
    ['none, where the control plane says that nothing serves', { active_revision_id: null }, null],
    ['the newest one, where it does not tell', { active_revision_id: undefined }, NEW_REVISION_ID],
  ])('is %s', (_, told, id) => {
    expect(servingRevisionId(deployment({ latest_revision_id: NEW_REVISION_ID, ...told }))).toBe(id)
  })
})

describe('reasonToDeploy', () => {
  it('is none when the live revision has this commit and this configuration', () => {
    expect(reason()).toBeUndefined()
    expect(reason({ buildOnPush: false })).toBeUndefined()
    expect(reason({}, revision('DEPLOYED'), revision('BUILD_FAILED'))).toBeUndefined()
  })

  it.each<[string, string | undefined]>([
    ['another commit', reason({ source: { ...GIT_SOURCE, commit: 'b'.repeat(40), eventCommit: 'b'.repeat(40) } })],
    [
      'a commit that nobody knows',
      reason({ source: { kind: 'git_host', repoUrl: REPO_URL, repoRef: 'main', configPath: 'langgraph.json' } }),
    ],
    ['another ref', reason({ source: { ...GIT_SOURCE, repoRef: 'refs/tags/v1' } })],
    ['another configuration file', reason({ source: { ...GIT_SOURCE, configPath: 'other.json' } })],
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

describe('the words of a reason', () => {
  const other = 'b'.repeat(40)
  const { commit: _, eventCommit: __, ...unknown } = GIT_SOURCE
  const source = (changes: Record<string, unknown>) => ({ source_revision_config: { repo_ref: 'main', ...changes } })
  const config = { graph_config_path: 'langgraph.json' }
  const pushed = 'the image is named by a tag, which may mean another image by now: name it by its digest'

  it.each<[string | undefined, string | undefined]>([
    [reason({}, revision('INTERRUPTED')), `the revision ${NEW_REVISION_ID} is INTERRUPTED`],
    [
      reason({}, revision('DEPLOYED'), revision('BUILDING', { id: OLD_REVISION_ID })),
      `a newer revision, ${OLD_REVISION_ID}, is BUILDING`,
    ],
    [reason({ secrets: [] }), undefined],
    [reason({ source: { ...GIT_SOURCE, repoRef: 'next' } }), "repo_ref is 'main' and wanted 'next'"],
    [reason({ source: { ...GIT_SOURCE, configPath: 'a.json' } }), "graph_config_path is 'langgraph.json' and wanted 'a.json'"],
    [reason({ source: unknown }), 'the event does not tell which commit main is'],
    [reason({}, revision('DEPLOYED', source(config))), 'the control plane does not tell the commit of the live revision'],
    [
      reason({}, revision('DEPLOYED', source({ ...config, repo_commit_sha: other }))),
      `the live commit is ${other} and the wanted one ${COMMIT}`,
    ],
    [reason({}, revision('DEPLOYED', source({ ...config, repo_commit_sha: COMMIT.toUpperCase() }))), undefined],
    [imageReason('a/agent:1', 'a/agent:1'), pushed],
    [imageReason(`${DIGEST}0`, `${DIGEST}0`), pushed],
  ])('%s', (found, words) => {
    expect(found).toBe(words)
  })
})
