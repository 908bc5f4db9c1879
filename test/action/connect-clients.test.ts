import nock from 'nock'
import { describe, expect, it } from 'vitest'
import { connect } from '../../src/action/connect.ts'
import { deployment, DEPLOYMENT_ID, DEPLOYMENT_PATH, failureOf, unaborted } from '../client/support/fixtures.ts'
import { allowOnlyMocks, HOST } from '../client/support/mocks.ts'
import { virtualEffects } from '../client/support/virtual-effects.ts'

const API = 'https://api.test'
const AGENT = 'https://agent.test'
const EXPORT_PATH = `/api/v1/bulk-exports/${DEPLOYMENT_ID}`
const EXPORT = { id: DEPLOYMENT_ID, status: 'RUNNING' }
const SPENT = (seconds: number) => ({ RateLimit: `"x";r=0;t=${seconds}` })

allowOnlyMocks()

type Wanted = Partial<Parameters<typeof connect>[0]['inputs']>

function scene(wanted: Wanted = {}) {
  const effects = virtualEffects()
  const lines: string[] = []
  const clients = connect({
    inputs: { apiKey: 'key-4711', controlPlaneUrl: HOST, dialect: 'spec', ...wanted },
    effects,
    log: { info: (line) => lines.push(line) },
    redact: (text) => text.replaceAll('hunter2', '***'),
  })
  return { ...clients, effects, lines }
}

const KEY = { 'X-Api-Key': 'key-4711', 'User-Agent': 'deploy-agent-server' }
const KEY_AND_WORKSPACE = { ...KEY, 'X-Tenant-Id': 'workspace-1' }
/** Answers only requests that carry these headers, and not the workspace where it is not among them. */
const expecting = (host: string, reqheaders: Record<string, string>) =>
  nock(host, { reqheaders, badheaders: 'X-Tenant-Id' in reqheaders ? [] : ['X-Tenant-Id'] })

describe('the headers of a step', () => {
  it('carry the key to the control plane, and the workspace where it is known', async () => {
    expecting(HOST, KEY).get(DEPLOYMENT_PATH).reply(200, deployment())
    await scene().controlPlane.getDeployment(DEPLOYMENT_ID, unaborted())
    expecting(HOST, KEY_AND_WORKSPACE).get(DEPLOYMENT_PATH).reply(200, deployment())
    const { once } = scene({ workspaceId: 'workspace-1' })
    expect(await once.getDeployment(DEPLOYMENT_ID, unaborted())).toMatchObject({ id: DEPLOYMENT_ID })
  })

  it('tell the agent server the key, and nothing of the workspace', async () => {
    expecting(AGENT, KEY).get('/ok').reply(200, {})
    await expect(scene({ workspaceId: 'workspace-1' }).agentServer(AGENT).ok(unaborted())).resolves.toBeUndefined()
  })

  it('carry both to the main API', async () => {
    const { api, once } = scene({ workspaceId: 'workspace-1' }).bulkExports(API)
    for (const client of [api, once]) {
      expecting(API, KEY_AND_WORKSPACE).get(EXPORT_PATH).reply(200, EXPORT)
      expect(await client.getExport(DEPLOYMENT_ID, unaborted())).toMatchObject({ id: DEPLOYMENT_ID })
    }
  })
})

describe('a request that fails', () => {
  it('is sent again to the control plane, and the log says so', async () => {
    const { controlPlane, lines, effects } = scene()
    nock(HOST).get(DEPLOYMENT_PATH).reply(503).get(DEPLOYMENT_PATH).reply(200, deployment())
    await controlPlane.getDeployment(DEPLOYMENT_ID, unaborted())
    expect(effects.sleeps).toEqual([500])
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(new RegExp(`^GET ${DEPLOYMENT_PATH} answered .*503.*: trying again in .+ m?s\\.$`))
  })

  it('is sent again to the main API, and the log says so', async () => {
    const { bulkExports, lines } = scene()
    nock(API).get(EXPORT_PATH).reply(503).get(EXPORT_PATH).reply(200, EXPORT)
    await bulkExports(API).api.getExport(DEPLOYMENT_ID, unaborted())
    expect(lines).toEqual([expect.stringMatching(new RegExp(`^GET ${EXPORT_PATH} answered .*503.*: trying again in `))])
  })

  it.each<[string, string, string, (all: ReturnType<typeof scene>) => Promise<unknown>]>([
    ['the control plane', HOST, DEPLOYMENT_PATH, ({ once }) => once.getDeployment(DEPLOYMENT_ID, unaborted())],
    ['the main API', API, EXPORT_PATH, ({ bulkExports }) => bulkExports(API).once.getExport(DEPLOYMENT_ID, unaborted())],
    ['the agent server', AGENT, '/ok', ({ agentServer }) => agentServer(AGENT).ok(unaborted())],
  ])('is sent once where somebody else asks again: %s', async (_, host, path, ask) => {
    const all = scene()
    nock(host).get(path).reply(503)
    expect(await failureOf(ask(all))).toMatchObject({ status: 503, attempts: 1 })
    nock(host).get(path).reply(200, '<html>', { 'content-type': 'text/html' })
    expect(await failureOf(ask(all))).toMatchObject({ kind: 'protocol', attempts: 1 })
    expect(all.lines).toEqual([])
    expect(all.effects.sleeps).toEqual([])
  })

  it('shows no secret', async () => {
    const { once } = scene()
    nock(HOST).get(DEPLOYMENT_PATH).reply(422, { detail: 'the value hunter2 is bad' })
    const failure = await failureOf(once.getDeployment(DEPLOYMENT_ID, unaborted()))
    expect(failure.message).toContain('***')
    expect(failure.message).not.toContain('hunter2')
  })
})

describe('a creation whose answer was lost', () => {
  const wanted = {
    name: 'my-agent',
    source: 'git_host',
    source_config: { repo_url: 'https://example.com/org/repo', build_on_push: false },
    source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' },
    secrets: [],
  } as never

  it('is looked for, and the log says so', async () => {
    const { controlPlane, lines, effects } = scene()
    nock(HOST).post('/v2/deployments').reply(503)
    nock(HOST)
      .get('/v2/deployments')
      .query(true)
      .reply(200, { resources: [deployment()], offset: 0 })
    const made = await controlPlane.createDeployment(wanted, unaborted())
    expect(made).toMatchObject({ deployment: { id: DEPLOYMENT_ID }, recovered: true })
    expect(effects.sleeps).toEqual([1500])
    expect(lines).toEqual([
      expect.stringMatching(/^POST \/v2\/deployments answered .*; looking whether it was carried out: trying again in /),
    ])
  })

  it.each([
    ['spec', 'git_host', 'graph_config_path'],
    ['vendor', 'github', 'langgraph_config_path'],
  ] as const)('was asked for in the words of the dialect %s', async (dialect, source, field) => {
    const { controlPlane } = scene({ dialect })
    let body: Record<string, unknown> = {}
    nock(HOST)
      .post('/v2/deployments', (sent: Record<string, unknown>) => {
        body = sent
        return true
      })
      .reply(201, deployment())
    await controlPlane.createDeployment(wanted, unaborted())
    expect(body).toMatchObject({ source, source_revision_config: { [field]: 'langgraph.json' } })
  })
})

describe('a destination whose creation got no answer', () => {
  const body = { display_name: 'lake', destination_type: 's3', config: { bucket_name: 'lake', region: 'eu-central-1' } } as never
  const made = { id: DEPLOYMENT_ID, display_name: 'lake', config: { bucket_name: 'lake' } }
  const lose = () => {
    nock(API).post('/api/v1/bulk-exports/destinations').reply(503)
    nock(API).get('/api/v1/bulk-exports/destinations').query(true).reply(200, [made])
  }

  it.each([
    ['api', 1],
    ['once', 0],
  ] as const)('is looked for by %s', async (which, told) => {
    const { bulkExports, effects, lines } = scene()
    lose()
    const destination = await bulkExports(API)[which].createDestination({ body, known: [], signal: unaborted() })
    expect(destination.id).toBe(DEPLOYMENT_ID)
    expect(effects.sleeps).toEqual([1500])
    expect(lines).toHaveLength(told)
  })
})

describe('the budget of a step', () => {
  it('counts what the main API makes it wait, through either client', async () => {
    const { bulkExports, effects, waitedForRateLimitMs, lines } = scene()
    const { api, once } = bulkExports(API)
    nock(API)
      .get(EXPORT_PATH)
      .reply(200, EXPORT, SPENT(3))
      .get(EXPORT_PATH)
      .reply(200, EXPORT, SPENT(2))
      .get(EXPORT_PATH)
      .reply(200, EXPORT)
    await once.getExport(DEPLOYMENT_ID, unaborted())
    await api.getExport(DEPLOYMENT_ID, unaborted())
    expect(waitedForRateLimitMs()).toBe(3000)
    await once.getExport(DEPLOYMENT_ID, unaborted())
    expect(waitedForRateLimitMs()).toBe(5000)
    expect(effects.sleeps).toEqual([3000, 2000])
    expect(lines).toEqual([
      expect.stringMatching(new RegExp(`^GET ${EXPORT_PATH} waits 3 s for the rate limit of `)),
      expect.stringMatching(new RegExp(`^GET ${EXPORT_PATH} waits 2 s for the rate limit of `)),
    ])
  })

  it.each([
    [999, 0],
    [1000, 1],
  ])('tells a wait from a second on: %d ms', async (waitMs, told) => {
    const { once, effects, lines } = scene()
    nock(HOST).get(DEPLOYMENT_PATH).reply(200, deployment(), SPENT(2)).get(DEPLOYMENT_PATH).reply(200, deployment())
    await once.getDeployment(DEPLOYMENT_ID, unaborted())
    effects.advance(2000 - waitMs)
    await once.getDeployment(DEPLOYMENT_ID, unaborted())
    expect(effects.sleeps).toEqual([waitMs])
    expect(lines).toHaveLength(told)
  })

  it('does not hold what goes to the agent server', async () => {
    const { agentServer, effects } = scene()
    nock(AGENT).get('/ok').reply(200, {}, SPENT(30)).get('/ok').reply(200, {})
    const server = agentServer(AGENT)
    await server.ok(unaborted())
    await server.ok(unaborted())
    expect(effects.sleeps).toEqual([])
  })
})
