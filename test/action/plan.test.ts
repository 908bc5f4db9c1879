import { describe, expect, it } from 'vitest'
import type { Inputs } from '../../src/action/inputs.ts'
import { planLines, planOf } from '../../src/action/plan.ts'
import { COMMIT, deployment, DIGEST, REPO_URL } from './support/answers.ts'
import { inputs } from './support/deps.ts'

const git = { kind: 'git_host', repoUrl: REPO_URL, repoRef: 'main', configPath: 'langgraph.json' } as const
const OTHER_COMMIT = 'd'.repeat(40)

describe('the plan of a new deployment', () => {
  const planned = (wanted: Partial<Inputs>) =>
    planOf(inputs(wanted), null).map(({ field, live, wanted }) => [field, live, wanted])
  const none = (fields: [string, string][]) => fields.map(([field, wanted]) => [field, '(none)', wanted])

  it('has what is wanted, and nothing else', () => {
    expect(planned({ source: git })).toEqual(
      none([
        ['source', 'git_host'],
        ['repo_url', REPO_URL],
        ['repo_ref', 'main'],
        ['graph_config_path', 'langgraph.json'],
        ['build_on_push', 'false'],
      ]),
    )
    expect(planned({ source: { kind: 'external_docker', imageUri: DIGEST } })).toEqual(
      none([
        ['source', 'external_docker'],
        ['image_uri', DIGEST],
      ]),
    )
  })

  it('names the variables in their order, and never shows a value', () => {
    const wanted: Partial<Inputs> = {
      source: git,
      buildOnPush: true,
      integrationId: 'i',
      deploymentType: 'prod',
      sourceConfig: { resource_spec: {}, install_command: 'x' },
      secrets: [
        { name: 'B', value: 'hunter2' },
        { name: 'A', value: 'hunter3' },
      ],
    }
    expect(planned(wanted).slice(4)).toEqual(
      none([
        ['build_on_push', 'true'],
        ['integration_id', 'i'],
        ['deployment_type', 'prod'],
        ['source_config', 'resource_spec, install_command'],
        ['secrets', 'A, B'],
      ]),
    )
    expect(planned({ secrets: [] }).map(([field]) => field)).not.toContain('secrets')
  })
})

describe('the plan of an update', () => {
  const planned = (source: Inputs['source'], live: string | null | undefined) =>
    planOf(
      inputs({ source }),
      deployment({ source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json', repo_commit_sha: live } }),
    )

  it.each<[string, Inputs['source'], string | undefined, [string, string] | undefined]>([
    ['the same commit', { ...git, commit: COMMIT }, COMMIT, undefined],
    ['the same in capitals', { ...git, commit: COMMIT }, COMMIT.toUpperCase(), undefined],
    ['another one', { ...git, commit: COMMIT }, OTHER_COMMIT, [OTHER_COMMIT, COMMIT]],
    ['that of the event', { ...git, eventCommit: COMMIT }, OTHER_COMMIT, [OTHER_COMMIT, COMMIT]],
    ['its own before that of the event', { ...git, commit: COMMIT, eventCommit: OTHER_COMMIT }, COMMIT, undefined],
    ['one that is not told', { ...git, commit: COMMIT }, undefined, ['(not told)', COMMIT]],
    ['none that is wanted', git, OTHER_COMMIT, undefined],
  ])('compares the commit with %s', (_, source, live, change) => {
    expect(planned(source, live)).toEqual(change === undefined ? [] : [{ field: 'commit', live: change[0], wanted: change[1] }])
  })

  it('has no commit of an image', () => {
    const live = deployment({ source: 'external_docker', source_config: {}, source_revision_config: { image_uri: 'a:1' } })
    expect(planOf(inputs({ source: { kind: 'external_docker', imageUri: 'a:2' } }), live)).toEqual([
      { field: 'image_uri', live: 'a:1', wanted: 'a:2' },
    ])
  })

  it('has the fields before the commit', () => {
    expect(planned({ ...git, repoRef: 'next', commit: COMMIT }, OTHER_COMMIT).map(({ field }) => field)).toEqual([
      'repo_ref',
      'commit',
    ])
  })
})

describe('the lines of a plan', () => {
  it('are one a field', () => {
    expect(
      planLines([
        { field: 'repo_ref', live: 'a', wanted: 'b' },
        { field: 'commit', live: '1', wanted: '2' },
      ]),
    ).toEqual(['repo_ref: a -> b', 'commit: 1 -> 2'])
  })

  it('say that nothing differs', () => {
    expect(planLines([])).toEqual(['No field differs: a deploy would make a new revision from the same source.'])
  })
})
