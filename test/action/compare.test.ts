import { describe, expect, it } from 'vitest'
import { buildsTwice, changesOf, ignoredSourceConfig, refuseConflicts, removedVariables } from '../../src/action/compare.ts'
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

  it('refuses another source', () => {
    expect(() => refuseConflicts(inputs({ source: image }), deployment())).toThrow(
      /source: live is 'git_host', wanted is 'external_docker'/,
    )
  })
})

describe('changesOf', () => {
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
    const live = deployment({ source: 'external_docker', source_revision_config: { image_uri: `agent:1@sha256:${'0'.repeat(64)}` } })
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
