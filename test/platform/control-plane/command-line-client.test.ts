import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { create, createControlPlane, gitDeployment, type TestControlPlane } from '../support/control-plane.ts'
import { createWorkspace, startTestDatabase, type TestDatabase } from '../support/database.ts'

/**
 * The requests of the ecosystem's own command line (`langgraphjs deploy …` of `@langchain/langgraph-cli` 1.5.1), recorded from it: method,
 * path, headers and body as it sends them, and the fields that it reads.
 */
let database: TestDatabase
let plane: TestControlPlane
let key: string
let workspaceId: string
let id: string
let revisionId: string

beforeAll(async () => {
  database = await startTestDatabase()
  plane = createControlPlane({ db: database.db, dialect: 'vendor' })
  const workspace = await createWorkspace(database.db)
  key = workspace.key
  workspaceId = workspace.id
  const deployment = await create(plane.as(key), gitDeployment('my-agent'))
  id = deployment.id
  revisionId = deployment.latest_revision_id as string
  await database.db
    .insertInto('revision_logs')
    .values((['build', 'deploy'] as const).map((type) => ({ revision_id: revisionId, type, level: 'INFO', message: `a ${type} line`, at: new Date() })))
    .execute()
})
afterAll(() => database.stop())

/** A GET has no content type there, and a tenant goes with it where one is configured. */
const send = (method: string, path: string, payload?: unknown) =>
  plane.ask({
    method,
    path,
    key,
    headers: { Accept: 'application/json', 'X-Tenant-ID': workspaceId },
    ...(payload === undefined ? {} : { body: payload }),
  })

describe('the command line of the ecosystem', () => {
  it('lists deployments with their addresses', async () => {
    const { status, body } = await send('GET', '/v2/deployments?name_contains=')
    expect(status).toBe(200)
    expect(body.resources).toMatchObject([{ id, name: 'my-agent', source_config: { custom_url: expect.stringContaining('/agents/my-agent-') as string } }])
  })

  it('finds a deployment by its name, and none by another', async () => {
    expect((await send('GET', '/v2/deployments?name_contains=my-agent')).body.resources).toMatchObject([{ id, name: 'my-agent' }])
    expect((await send('GET', '/v2/deployments?name_contains=other')).body.resources).toEqual([])
  })

  it('lists revisions', async ({ skip }) => {
    skip(CLUSTERED, 'where queues run, the revision goes on')
    const { body } = await send('GET', `/v2/deployments/${id}/revisions?limit=10`)
    expect(body.resources).toMatchObject([{ id: revisionId, status: 'CREATING', created_at: expect.any(String) as string }])
    expect((await send('GET', `/v2/deployments/${id}/revisions?limit=1`)).body.resources).toHaveLength(1)
  })

  it('reads logs', async () => {
    const build = await send('POST', `/v1/projects/${id}/revisions/${revisionId}/build_logs`, { limit: 100, order: 'desc' })
    expect(build.body).toMatchObject({ logs: [{ level: 'INFO', message: 'a build line', timestamp: expect.any(String) as string }], next_offset: null })
    for (const path of [`/v1/projects/${id}/deploy_logs`, `/v1/projects/${id}/revisions/${revisionId}/deploy_logs`]) {
      const deploy = await send('POST', path, { limit: 100, order: 'desc', level: 'INFO', query: 'line' })
      expect(deploy.body.logs).toMatchObject([{ message: 'a deploy line' }])
    }
  })

  it('is told why its own sources are not here', async () => {
    const created = await send('POST', '/v2/deployments', {
      name: 'other-agent',
      source: 'internal_source',
      source_config: { deployment_type: 'dev' },
      source_revision_config: { langgraph_config_path: 'langgraph.json' },
      secrets: [],
    })
    expect(created).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body', 'source'], msg: "Input should be 'github' or 'external_docker'", type: 'enum' }] },
    })
    const patched = await send('PATCH', `/v2/deployments/${id}`, {
      revision_source: 'internal_docker',
      source_revision_config: { image_uri: 'registry/agent@sha256:0' },
      tracked_packages: ['langgraph:1.4.18'],
      secrets: [],
    })
    expect(patched.body.detail).toMatchObject([{ loc: ['body', 'revision_source'], type: 'enum' }])
    expect((await send('POST', `/v2/deployments/${id}/push-token`)).body.detail).toContain("only available for 'internal_docker' source deployments")
  })

  it('deletes a deployment', async () => {
    expect(await send('DELETE', `/v2/deployments/${id}`)).toMatchObject({ status: 204, body: undefined })
  })
})
