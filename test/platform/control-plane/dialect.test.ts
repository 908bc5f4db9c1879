import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { create, createControlPlane, gitDeployment, imageDeployment } from '../support/control-plane.ts'
import { createWorkspace, startTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await startTestDatabase()
})
afterAll(() => database.stop())

const as = async (options: Omit<Parameters<typeof createControlPlane>[0], 'db'>) =>
  createControlPlane({ db: database.db, ...options }).as((await createWorkspace(database.db)).key)

const VENDOR = {
  name: 'agent',
  source: 'github',
  source_config: { repo_url: 'https://git.example.com/team/agent.git' },
  source_revision_config: { repo_ref: 'main', langgraph_config_path: 'deep/langgraph.json' },
  secrets: [],
}

describe('the vendor dialect', () => {
  it('is spoken in every answer, and both are understood', async () => {
    const ask = await as({ dialect: 'vendor' })
    for (const body of [VENDOR, gitDeployment('spec')]) {
      const seen = await ask({ method: 'POST', path: '/v2/deployments', body })
      expect(seen.body).toMatchObject({ source: 'github', source_revision_config: { langgraph_config_path: expect.any(String) as string } })
      expect(seen.body.source_revision_config).not.toHaveProperty('graph_config_path')
      const { body: list } = await ask({ path: `/v2/deployments/${seen.body.id}/revisions` })
      expect(list.resources[0]).toMatchObject({ source: 'github', source_revision_config: { langgraph_config_path: expect.any(String) as string } })
      const changed = await ask({
        method: 'PATCH',
        path: `/v2/deployments/${seen.body.id}`,
        body: { revision_source: 'github', source_revision_config: { langgraph_config_path: 'b.json' } },
      })
      expect(changed.body).toMatchObject({ source_revision_config: { langgraph_config_path: 'b.json' } })
    }
  })

  it('names the places and says the reasons of refusals', async () => {
    const ask = await as({ dialect: 'vendor' })
    const post = (body: unknown) => ask({ method: 'POST', path: '/v2/deployments', body })
    const invalid = await post({ ...VENDOR, source: 'svn', source_revision_config: { langgraph_config_path: '../x.json' } })
    expect(invalid.body.detail).toEqual([
      { loc: ['body', 'source'], msg: "Input should be 'github' or 'external_docker'", type: 'enum' },
      {
        loc: ['body', 'source_revision_config', 'langgraph_config_path'],
        msg: expect.stringMatching(/^Value error, langgraph_config_path should be a relative path/) as string,
        type: 'value_error',
      },
    ])
    const broken = await post({ ...imageDeployment('image'), source_revision_config: { image_uri: 'a/b', langgraph_config_path: 'a.json' } })
    expect(broken.body.detail).toBe(
      "Source configuration error: 'source_revision_config.langgraph_config_path' applies to the source 'github' only; " +
        "this deployment's source is 'external_docker'.",
    )
  })
})

describe("the specification's dialect", () => {
  it('is spoken in every answer, and both are understood', async () => {
    const ask = await as({ dialect: 'spec' })
    const { body } = await ask({ method: 'POST', path: '/v2/deployments', body: VENDOR })
    expect(body).toMatchObject({ source: 'git_host', source_revision_config: { graph_config_path: 'deep/langgraph.json' } })
    expect(JSON.stringify(body)).not.toMatch(/"github"|langgraph_config_path/)
  })

  it('takes the name that carries a value when a body has both', async () => {
    const ask = await as({ dialect: 'spec' })
    const source_revision_config = { langgraph_config_path: null, graph_config_path: 'a.json' }
    expect((await create(ask, gitDeployment('both', { source_revision_config }))).source_revision_config.graph_config_path).toBe('a.json')
  })
})

describe('an offering', () => {
  const post = async (offering: 'cloud' | 'self_hosted' | 'any', body: Record<string, unknown>) => {
    const ask = await as({ offering })
    return ask({ method: 'POST', path: '/v2/deployments', body })
  }

  it('of the cloud builds from git only', async () => {
    expect((await post('cloud', gitDeployment('a'))).status).toBe(201)
    expect(await post('cloud', imageDeployment('a'))).toMatchObject({
      status: 400,
      body: {
        detail:
          "Source configuration error: building from a container image ('external_docker') is available only for self-hosted " +
          'deployments; this is the cloud offering.',
      },
    })
  })

  it('that is self-hosted runs images only', async () => {
    expect((await post('self_hosted', imageDeployment('a'))).status).toBe(201)
    expect(await post('self_hosted', gitDeployment('a'))).toMatchObject({
      status: 400,
      body: {
        detail:
          "Source configuration error: building from a git repository ('git_host') is available only for the managed cloud offering; " +
          'this is a self-hosted one.',
      },
    })
  })

  it('of any kind takes both', async () => {
    expect((await post('any', imageDeployment('a'))).status).toBe(201)
    expect((await post('any', gitDeployment('a'))).status).toBe(201)
  })

  it('of the cloud keeps the names of its own environment to itself', async () => {
    const secrets = [{ name: 'PORT', value: '1' }]
    expect((await post('self_hosted', imageDeployment('a', { secrets }))).status).toBe(201)
    expect((await post('cloud', gitDeployment('a', { secrets }))).body.detail).toBe(
      "Secrets error: 'PORT' can be set on self-hosted installations only; this is the cloud offering, which sets it itself.",
    )
  })
})
