import { describe, expect, it } from 'vitest'
import { buildsTwice, changesOf, ignoredSourceConfig, refuseConflicts, removedVariables } from '../../src/action/compare.ts'
import type { ActionFailure } from '../../src/action/report/error-codes.ts'
import { createBody, patchBody } from '../../src/action/requests.ts'
import { deploymentCreateSchema, deploymentPatchSchema } from '../../src/contract/deployment.ts'
import { deployment, DIGEST, REPO_URL } from './support/answers.ts'
import { inputs } from './support/deps.ts'

const image = { kind: 'external_docker', imageUri: DIGEST } as const
const git = { kind: 'git_host', repoUrl: REPO_URL, repoRef: 'main', configPath: 'langgraph.json' } as const
const INTEGRATION = '9d2c7a41-4c6b-4f6e-9a1d-2f4b1f0c7e55'

describe('refuseConflicts', () => {
  it('lets through what is the same, in any spelling, and what nobody named', () => {
    const live = deployment({
      source_config: { repo_url: `${REPO_URL}.git/`, integration_id: INTEGRATION.toUpperCase(), deployment_type: 'dev' },
    })
    expect(() => refuseConflicts(inputs({ integrationId: INTEGRATION }), live)).not.toThrow()
    expect(() => refuseConflicts(inputs({ deploymentType: 'prod' }), deployment())).not.toThrow()
  })

  it('shows both values of every field that is fixed and wanted otherwise', () => {
    const live = deployment({
      source_config: {
        repo_url: 'https://github.com/acme/other',
        deployment_type: 'dev',
        integration_id: 'x',
        listener_config: { k8s_namespace: 'a' },
      },
    })
    const wanted = inputs({
      deploymentType: 'prod',
      integrationId: INTEGRATION,
      sourceConfig: { listener_config: { k8s_namespace: 'b' } },
    })
    expect(() => refuseConflicts(wanted, live)).toThrow(
      [
        "- repo_url: live is 'https://github.com/acme/other', wanted is 'https://github.com/acme/agents' (input repo-url)",
        `- integration_id: live is 'x', wanted is '${INTEGRATION}' (input integration-id)`,
        "- deployment_type: live is 'dev', wanted is 'prod' (input deployment-type)",
        `- listener_config: live is '{"k8s_namespace":"a"}', wanted is '{"k8s_namespace":"b"}' (input source-config)`,
      ].join('\n'),
    )
  })

  it('advises to delete the deployment only where it is known that nothing of it serves', () => {
    const adviceFor = (told: Record<string, unknown>): string => {
      try {
        refuseConflicts(inputs({ source: image }), deployment(told))
        return ''
      } catch (error) {
        return (error as ActionFailure).next
      }
    }
    const usual =
      'Take the live value over into the workflow, or choose another deployment-name so that a new deployment is created'
    expect(adviceFor({})).toBe(`${usual}.`)
    expect(adviceFor({ active_revision_id: undefined })).toBe(`${usual}.`)
    expect(adviceFor({ active_revision_id: null })).toBe(`${usual}, or delete the deployment if it never served.`)
  })

  it('refuses another source', () => {
    expect(() => refuseConflicts(inputs({ source: image }), deployment())).toThrow(
      /source: live is 'git_host', wanted is 'external_docker'/,
    )
  })
})

describe('a conflict', () => {
  const conflict = (wanted: Parameters<typeof inputs>[0], live: Record<string, unknown>): ActionFailure => {
    try {
      refuseConflicts(inputs(wanted), deployment(live))
    } catch (error) {
      return error as ActionFailure
    }
    throw new Error('nothing was refused')
  }
  const OTHERWISE = "The deployment 'agent' exists, and fields of it that are fixed at creation are wanted otherwise:"

  it('of the source names the input, and that nothing was changed', () => {
    expect(conflict({ source: image }, {})).toMatchObject({
      code: 'E_CONFLICT',
      message: `${OTHERWISE}\n- source: live is 'git_host', wanted is 'external_docker' (input image-uri)`,
      tried: 'Nothing was changed.',
    })
  })

  it('is not sought in the repository of an image', () => {
    expect(() =>
      refuseConflicts(
        inputs({ source: image }),
        deployment({ source: 'external_docker', source_config: { repo_url: 'https://github.com/acme/other' } }),
      ),
    ).not.toThrow()
  })

  it.each([
    ['a text', 'listener_id', 'one', 'two', "live is 'one', wanted is 'two'"],
    ['a text and nothing', 'listener_id', null, 'two', undefined],
    ['fields in another order', 'listener_config', { a: { y: 1, x: 2 }, b: 3 }, { b: 3, a: { x: 2, y: 1 } }, undefined],
    [
      'a list in another order',
      'listener_config',
      { a: [1, 2] },
      { a: [2, 1] },
      `live is '{"a":[1,2]}', wanted is '{"a":[2,1]}'`,
    ],
    ['fields within a list in another order', 'listener_config', { a: [{ y: 1, x: 2 }] }, { a: [{ x: 2, y: 1 }] }, undefined],
    ['a null in a field', 'listener_config', { a: null, b: 1 }, { b: 1, a: null }, undefined],
    [
      'names in their order',
      'listener_config',
      { c: 1, a: 1, b: 1 },
      { b: 2, c: 1, a: 1 },
      `live is '{"a":1,"b":1,"c":1}', wanted is '{"a":1,"b":2,"c":1}'`,
    ],
  ])('compares %s', (_, field, live, wanted, told) => {
    const check = () =>
      refuseConflicts(
        inputs({ sourceConfig: { [field]: wanted } as never }),
        deployment({ source_config: { repo_url: REPO_URL, [field]: live } }),
      )
    if (told === undefined) expect(check).not.toThrow()
    else expect(check).toThrow(`${OTHERWISE}\n- ${field}: ${told} (input source-config)`)
  })
})

describe('changesOf', () => {
  it('says what the control plane does not tell', () => {
    const live = deployment({ source_config: {}, source_revision_config: {} })
    expect(changesOf(inputs({ buildOnPush: false }), live)).toEqual([
      { field: 'repo_ref', live: '(none)', wanted: 'main' },
      { field: 'graph_config_path', live: '(none)', wanted: 'langgraph.json' },
      { field: 'build_on_push', live: 'unknown', wanted: 'false' },
    ])
    expect(changesOf(inputs({ source: image }), live)).toEqual([{ field: 'image_uri', live: '(none)', wanted: DIGEST }])
  })

  it.each([
    [[], ['B', 'A'], '(none)', 'A, B (all values set anew)'],
    [['C', 'A', 'B'], ['A'], 'A, B, C', 'A (all values set anew)'],
  ])('shows the variables %j and %j in the order of their names', (before, after, live, wanted) => {
    const secrets = after.map((name) => ({ name, value: 'hunter2' }))
    const there = deployment({ secrets: before.map((name) => ({ name })) })
    expect(changesOf(inputs({ secrets }), there)).toEqual([{ field: 'secrets', live, wanted }])
    expect(changesOf(inputs({ secrets: [] }), there)).toEqual([])
  })

  it('names an image that is another one', () => {
    const live = deployment({ source: 'external_docker', source_revision_config: { image_uri: 'agent:1' } })
    expect(changesOf(inputs({ source: { kind: 'external_docker', imageUri: 'agent:2' } }), live)).toEqual([
      { field: 'image_uri', live: 'agent:1', wanted: 'agent:2' },
    ])
  })
  it('lists what differs, and secrets by name', () => {
    const live = deployment({ secrets: [{ name: 'OLD', value: 'hunter2' }] })
    const wanted = inputs({
      source: { ...git, repoRef: 'next', configPath: 'a.json' },
      buildOnPush: true,
      secrets: [{ name: 'NEW', value: 'hunter3' }],
    })
    expect(changesOf(wanted, live)).toEqual([
      { field: 'repo_ref', live: 'main', wanted: 'next' },
      { field: 'graph_config_path', live: 'langgraph.json', wanted: 'a.json' },
      { field: 'build_on_push', live: 'false', wanted: 'true' },
      { field: 'secrets', live: 'OLD', wanted: 'NEW (all values set anew)' },
    ])
  })

  it('is empty when nothing differs', () => {
    expect(changesOf(inputs(), deployment())).toEqual([])
    // The service adds the digest that it found behind a tag.
    const live = deployment({
      source: 'external_docker',
      source_revision_config: { image_uri: `agent:1@sha256:${'0'.repeat(64)}` },
    })
    expect(changesOf(inputs({ source: { kind: 'external_docker', imageUri: 'agent:1' } }), live)).toEqual([])
    expect(changesOf(inputs({ source: { kind: 'external_docker', imageUri: 'agent:2' } }), live)).toHaveLength(1)
  })
})

describe('what might surprise', () => {
  it('names the variables that secrets would take away', () => {
    const live = deployment({ secrets: [{ name: 'A' }, { name: 'B' }] })
    expect(removedVariables(inputs({ secrets: [{ name: 'A', value: 'x' }] }), live)).toEqual(['B'])
    expect(removedVariables(inputs({ secrets: [] }), live)).toEqual([])
    expect(removedVariables(inputs(), live)).toEqual([])
  })

  it('names the fields of source-config that only count on create', () => {
    const live = deployment({ source_config: { resource_spec: { memory_mb: 512, cpu: 1 } } })
    expect(ignoredSourceConfig(inputs({ sourceConfig: { resource_spec: { cpu: 1, memory_mb: 512 } } }), live)).toEqual([])
    expect(ignoredSourceConfig(inputs({ sourceConfig: { resource_spec: { cpu: 2 }, install_command: 'npm ci' } }), live)).toEqual(
      ['resource_spec', 'install_command'],
    )
  })

  it('does not take a field that is fixed, or that has no value, for one that counts on create', () => {
    const sourceConfig = { listener_id: 'two', install_command: undefined } as never
    const live = deployment({ source_config: { listener_id: 'one', install_command: 'npm ci' } })
    expect(ignoredSourceConfig(inputs({ sourceConfig }), live)).toEqual([])
  })

  it('knows that nothing is built twice where nobody asked for that, or where there is no branch', () => {
    const live = deployment({ source_config: {} })
    expect(buildsTwice(inputs(), live)).toBe(false)
    expect(buildsTwice(inputs({ buildOnPush: true }), live)).toBe(true)
    expect(buildsTwice(inputs({ source: image, buildOnPush: true }), live)).toBe(false)
  })

  it('knows when a push is built twice', () => {
    const live = deployment({ source_config: { build_on_push: true } })
    expect(buildsTwice(inputs(), live)).toBe(true)
    expect(buildsTwice(inputs({ buildOnPush: false }), live)).toBe(false)
    expect(buildsTwice(inputs({ source: { ...git, repoRef: 'refs/tags/v1' } }), live)).toBe(false)
  })
})

describe('the requests', () => {
  it('create with everything that the contract wants', () => {
    const wanted = inputs({ integrationId: INTEGRATION, deploymentType: 'dev', sourceConfig: { install_command: 'npm ci' } })
    expect(createBody('agent', wanted)).toEqual({
      name: 'agent',
      source: 'git_host',
      source_config: {
        install_command: 'npm ci',
        deployment_type: 'dev',
        integration_id: INTEGRATION,
        repo_url: REPO_URL,
        build_on_push: false,
      },
      source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' },
      secrets: [],
    })
    expect(createBody('agent', inputs({ source: image, secrets: [{ name: 'A', value: 'x' }] }))).toEqual({
      name: 'agent',
      source: 'external_docker',
      source_config: { resource_spec: {} },
      source_revision_config: { image_uri: DIGEST },
      secrets: [{ name: 'A', value: 'x' }],
    })
  })

  it('update with a source that makes a revision, and never with what is fixed', () => {
    expect(patchBody(inputs({ integrationId: INTEGRATION, deploymentType: 'dev', secrets: [] }))).toEqual({
      source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' },
    })
    expect(patchBody(inputs({ buildOnPush: false, secrets: [{ name: 'A', value: 'x' }] }))).toEqual({
      source_config: { build_on_push: false },
      source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' },
      secrets: [{ name: 'A', value: 'x' }],
    })
    expect(patchBody(inputs({ source: image }))).toEqual({ source_revision_config: { image_uri: DIGEST } })
  })

  it.each([inputs({ buildOnPush: true }), inputs({ source: image })])('fit the schemas of the contract', (wanted) => {
    expect(deploymentCreateSchema.safeParse(createBody('agent', wanted)).error).toBeUndefined()
    expect(deploymentPatchSchema.safeParse(patchBody(wanted)).error).toBeUndefined()
  })
})
