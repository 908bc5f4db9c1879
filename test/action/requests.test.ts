import { describe, expect, it } from 'vitest'
import { createBody, patchBody } from '../../src/action/requests.ts'
import { DIGEST, REPO_URL } from './support/answers.ts'
import { inputs } from './support/deps.ts'

const image = { kind: 'external_docker', imageUri: DIGEST } as const
const secrets = [{ name: 'A', value: 'x' }]
const gitRevision = { repo_ref: 'main', graph_config_path: 'langgraph.json' }

describe('the body that creates a deployment', () => {
  it('of a repository', () => {
    expect(createBody('agent', inputs())).toEqual({
      name: 'agent',
      source: 'git_host',
      source_config: { repo_url: REPO_URL, build_on_push: false },
      source_revision_config: gitRevision,
      secrets: [],
    })
  })

  it('of a repository, with everything', () => {
    const sourceConfig = { resource_spec: { cpu: 2 }, install_command: 'make' }
    const wanted = inputs({ sourceConfig, deploymentType: 'prod', integrationId: 'i', buildOnPush: true, secrets })
    expect(createBody('agent', wanted)).toEqual({
      name: 'agent',
      source: 'git_host',
      source_config: { ...sourceConfig, deployment_type: 'prod', integration_id: 'i', repo_url: REPO_URL, build_on_push: true },
      source_revision_config: gitRevision,
      secrets,
    })
  })

  it('of an image: with a resource_spec, and nothing of a repository', () => {
    const body = (changes: Parameters<typeof inputs>[0]) => createBody('agent', inputs({ source: image, ...changes }))
    expect(body({ integrationId: 'i', buildOnPush: true })).toEqual({
      name: 'agent',
      source: 'external_docker',
      source_config: { resource_spec: {} },
      source_revision_config: { image_uri: DIGEST },
      secrets: [],
    })
    expect(body({ sourceConfig: { resource_spec: { cpu: 2 } }, deploymentType: 'dev' }).source_config).toEqual({
      resource_spec: { cpu: 2 },
      deployment_type: 'dev',
    })
  })
})

describe('the body that updates a deployment', () => {
  it.each<[string, Parameters<typeof inputs>[0], Record<string, unknown>]>([
    ['always has a source', {}, {}],
    [
      'never has what is fixed at creation',
      { sourceConfig: { resource_spec: {} }, deploymentType: 'prod', integrationId: 'i' },
      {},
    ],
    ['says whether pushes are built', { buildOnPush: true }, { source_config: { build_on_push: true } }],
    ['says that pushes are not built', { buildOnPush: false }, { source_config: { build_on_push: false } }],
    ['replaces the environment that is given', { secrets }, { secrets }],
    ['leaves the environment alone when none is given', { secrets: [] }, {}],
  ])('%s', (_, wanted, more) => {
    expect(patchBody(inputs(wanted))).toStrictEqual({ source_revision_config: gitRevision, ...more })
  })

  it('of an image says nothing of pushes', () => {
    expect(patchBody(inputs({ source: image, buildOnPush: true }))).toStrictEqual({
      source_revision_config: { image_uri: DIGEST },
    })
  })
})
