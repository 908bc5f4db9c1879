import nock from 'nock'
import { describe, expect, it } from 'vitest'
import { createControlPlane } from '../../src/client/control-plane.ts'
import { matchesSent, newerRevisions } from '../../src/client/recovery.ts'
import type { RetryEvent } from '../../src/client/retry.ts'
import { type RevisionAnswer, revisionAnswerSchema } from '../../src/contract/answers.ts'
import type { DeploymentCreate, DeploymentPatch } from '../../src/contract/deployment.ts'
import type { Dialect } from '../../src/contract/dialects.ts'
import {
  deployment,
  DEPLOYMENT_ID,
  DEPLOYMENT_PATH,
  failureOf,
  revision,
  REVISION_ID,
  testTransport,
  unaborted,
} from './support/fixtures.ts'
import { allowOnlyMocks, HOST } from './support/mocks.ts'
import { virtualEffects } from './support/virtual-effects.ts'

allowOnlyMocks()

function setUp({ dialect = 'spec' as Dialect } = {}) {
  const effects = virtualEffects()
  const events: RetryEvent[] = []
  const onRetry = (event: RetryEvent) => void events.push(event)
  const plane = createControlPlane({ transport: testTransport({ baseUrl: HOST, effects }), dialect, effects, onRetry })
  return { plane, events, effects }
}

const reset = () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
const list = (found: unknown[]) =>
  nock(HOST)
    .get('/v2/deployments')
    .query({ limit: 100, offset: 0, name_contains: 'my-agent' })
    .reply(200, { resources: found, offset: 1 })

describe('creating a deployment', () => {
  const body: DeploymentCreate = {
    name: 'my-agent',
    source: 'git_host',
    source_config: { repo_url: 'https://example.com/org/repo', build_on_push: false },
    source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' },
    secrets: [{ name: 'TOKEN', value: 'a-secret-value' }],
  }
  const post = () => nock(HOST).post('/v2/deployments')
  const create = (dialect?: Dialect) => {
    const { plane, events, effects } = setUp(dialect === undefined ? {} : { dialect })
    return { pending: plane.createDeployment(body, unaborted()), events, effects }
  }

  it('sends the contract names', async () => {
    nock(HOST)
      .post('/v2/deployments', JSON.parse(JSON.stringify(body)))
      .reply(201, deployment())
    expect(await create('spec').pending).toMatchObject({
      deployment: { id: DEPLOYMENT_ID, source: 'git_host' },
      recovered: false,
    })
  })

  it('sends the vendor names to the vendor', async () => {
    const sent = {
      ...body,
      source: 'github',
      source_revision_config: { repo_ref: 'main', langgraph_config_path: 'langgraph.json' },
    }
    nock(HOST)
      .post('/v2/deployments', JSON.parse(JSON.stringify(sent)))
      .reply(201, deployment({ source: 'github' }))
    expect((await create('vendor').pending).deployment.source).toBe('git_host')
  })

  it.each([400, 401, 403, 409, 422])('is never repeated after a definite %i', async (status) => {
    post().reply(status, { detail: 'a-secret-value is no good' })
    const failure = await failureOf(create().pending)
    expect(failure).toMatchObject({ kind: 'http', status, attempts: 1, ambiguous: false, detail: '*** is no good' })
  })

  const lost: [string, () => unknown][] = [
    ['a connection that broke', () => post().replyWithError(reset())],
    ['a server error', () => post().reply(502, '<html>')],
    ['an empty answer', () => post().reply(200, '')],
    ['an answer without an id', () => post().reply(201, { name: 'my-agent' })],
  ]
  it.each(lost)('adopts what was made, after %s', async (_what, first) => {
    first()
    list([deployment({ id: 'other', name: 'my-agent-2' }), deployment()])
    const { pending, events } = create()
    expect(await pending).toMatchObject({ deployment: { id: DEPLOYMENT_ID }, recovered: true })
    expect(events).toHaveLength(1)
    expect(events[0]).toMatchObject({ attempt: 1, waitMs: 1500, method: 'POST', path: '/v2/deployments' })
    expect(events[0]?.reason).toContain('; looking whether it was carried out')
  })

  it.each(lost)('is repeated once when nothing was made, after %s', async (_what, first) => {
    first()
    list([])
    post().reply(201, deployment())
    const { pending, effects } = create()
    expect(await pending).toMatchObject({ recovered: false })
    expect(effects.sleeps).toEqual([1500])
  })

  it('is not repeated a second time', async () => {
    post().reply(500)
    list([])
    post().reply(504, { detail: 'slow' })
    list([])
    const failure = await failureOf(create().pending)
    expect(failure).toMatchObject({ status: 504, attempts: 2, ambiguous: true })
    expect(failure.message).toBe('POST /v2/deployments answered 504 Gateway Timeout (tried 2 times): slow')
  })

  it('adopts what the first sending made late, when the second meets it', async () => {
    post().reply(504)
    list([])
    post().reply(409, { detail: 'There already exists one.' })
    list([deployment()])
    expect(await create().pending).toMatchObject({ deployment: { id: DEPLOYMENT_ID }, recovered: true })
  })

  it('reports a conflict of the second sending that is not with the first', async () => {
    post().reply(504)
    list([])
    post().reply(409, { detail: 'A tracing project of that name exists.' })
    list([])
    expect(await failureOf(create().pending)).toMatchObject({ status: 409, detail: 'A tracing project of that name exists.' })
  })

  it.each([
    { source: 'external_docker' },
    { source_revision_config: { repo_ref: 'other' } },
    { source_revision_config: { repo_ref: 'main', graph_config_path: 'other.json' } },
  ])('does not adopt a deployment that somebody else made meanwhile: %j', async (changes) => {
    post().reply(502)
    list([deployment(changes)])
    const failure = await failureOf(create().pending)
    expect(failure).toMatchObject({ kind: 'http', status: 502, ambiguous: true })
    expect(failure.message).toContain(`a deployment of that name exists now (${DEPLOYMENT_ID}), but with another source`)
  })

  it('reports the first failure when the look-up fails as well', async () => {
    post().reply(502, { detail: 'bad gateway' })
    nock(HOST).get('/v2/deployments').query(true).reply(403, { detail: 'no' })
    const failure = await failureOf(create().pending)
    expect(failure).toMatchObject({ kind: 'http', status: 502, method: 'POST', ambiguous: true })
    expect(failure.message).toContain(
      'could not be found out whether it was carried out (GET /v2/deployments answered 403 Forbidden: no)',
    )
  })

  it('stops looking when it is cancelled', async () => {
    post().reply(502)
    const { effects } = setUp()
    const controller = new AbortController()
    const plane = createControlPlane({
      transport: testTransport({ baseUrl: HOST, effects }),
      dialect: 'spec',
      effects,
      onRetry: () => controller.abort(),
    })
    expect(await failureOf(plane.createDeployment(body, controller.signal))).toMatchObject({ kind: 'cancelled', ambiguous: true })
  })

  it('says so when it was cancelled without an error', async () => {
    post().reply(502)
    const controller = new AbortController()
    const effects = virtualEffects()
    const plane = createControlPlane({
      transport: testTransport({ baseUrl: HOST, effects }),
      dialect: 'spec',
      effects,
      onRetry: () => controller.abort('stop'),
    })
    const failure = await failureOf(plane.createDeployment(body, controller.signal))
    expect(failure).toMatchObject({
      kind: 'cancelled',
      summary: 'answered 502 Bad Gateway, and it could not be found out whether it was carried out (the look-up was cancelled)',
    })
  })

  it('does not look after a definite conflict', async () => {
    post().reply(409, { detail: 'There already exists one.' })
    const { pending, events } = create()
    expect((await failureOf(pending)).message).toBe('POST /v2/deployments answered 409 Conflict: There already exists one.')
    expect(events).toEqual([])
  })

  it('does not look once more when the second sending is refused', async () => {
    post().reply(504)
    list([])
    post().reply(400, { detail: 'no' })
    const { pending, events } = create()
    expect((await failureOf(pending)).message).toBe('POST /v2/deployments answered 400 Bad Request (tried 2 times): no')
    expect(events).toHaveLength(1)
  })

  it('does not look when it was cancelled itself', async () => {
    const { plane, events } = setUp()
    const controller = new AbortController()
    post().reply(201, () => {
      controller.abort()
      return deployment()
    })
    expect(await failureOf(plane.createDeployment(body, controller.signal))).toMatchObject({ kind: 'cancelled', ambiguous: true })
    expect(events).toEqual([])
  })

  it('passes on errors that are no failures of a request', async () => {
    const effects = virtualEffects()
    const transport = { ...testTransport({ baseUrl: HOST }), request: () => Promise.reject(new TypeError('a mistake')) }
    await expect(createControlPlane({ transport, dialect: 'spec', effects }).createDeployment(body, unaborted())).rejects.toThrow(
      new TypeError('a mistake'),
    )
  })
})

describe('changing a deployment', () => {
  const previous = REVISION_ID
  const body: DeploymentPatch = { source_revision_config: { repo_ref: 'v2', graph_config_path: null } }
  const patch = () => nock(HOST).patch(DEPLOYMENT_PATH)
  const revisions = (...listed: Record<string, unknown>[]) =>
    nock(HOST)
      .get(`${DEPLOYMENT_PATH}/revisions`)
      .query({ limit: 100, offset: 0 })
      .reply(200, { resources: listed, offset: listed.length })
  const change = (changes: DeploymentPatch = body, previousLatestRevisionId: string | null = previous) =>
    setUp().plane.patchDeployment({ id: DEPLOYMENT_ID, body: changes, previousLatestRevisionId, signal: unaborted() })
  const made = (id: string, repo_ref: string, created_at: string) =>
    revision({ id, created_at, source_revision_config: { repo_ref, graph_config_path: 'langgraph.json' } })
  const before = made(previous, 'v1', '2026-01-01T00:00:00Z')

  it('tells the revision that it made', async () => {
    nock(HOST)
      .patch(DEPLOYMENT_PATH, { source_revision_config: { repo_ref: 'v2', graph_config_path: null } })
      .reply(200, deployment({ latest_revision_id: 'new' }))
    expect(await change()).toMatchObject({ revisionId: 'new', recovered: false })
  })

  it('tells that it made none', async () => {
    patch().reply(200, deployment())
    expect((await change({ source_config: { build_on_push: true } })).revisionId).toBeNull()
  })

  it('sends the vendor names to the vendor', async () => {
    nock(HOST)
      .patch(DEPLOYMENT_PATH, { revision_source: 'github', source_revision_config: { langgraph_config_path: 'a.json' } })
      .reply(200, deployment())
    const vendor = { revision_source: 'git_host', source_revision_config: { graph_config_path: 'a.json' } } as const
    const { plane } = setUp({ dialect: 'vendor' })
    const changed = plane.patchDeployment({
      id: DEPLOYMENT_ID,
      body: vendor,
      previousLatestRevisionId: null,
      signal: unaborted(),
    })
    expect(await changed).toMatchObject({ revisionId: REVISION_ID })
  })

  it.each([400, 404, 409, 422])('is never repeated after a definite %i', async (status) => {
    patch().reply(status, { detail: 'no' })
    expect(await failureOf(change())).toMatchObject({ status, attempts: 1 })
  })

  it('adopts the revision that it made, after its answer was lost', async () => {
    patch().replyWithError(reset())
    revisions(made('pushed', 'main', '2026-01-03T00:00:00Z'), made('ours', 'v2', '2026-01-02T00:00:00Z'), before)
    nock(HOST)
      .get(DEPLOYMENT_PATH)
      .reply(200, deployment({ latest_revision_id: 'pushed' }))
    expect(await change()).toMatchObject({ revisionId: 'ours', recovered: true, deployment: { latest_revision_id: 'pushed' } })
  })

  it('finds it in a list of any order', async () => {
    patch().reply(503)
    revisions(made('older', 'v2', '2025-12-01T00:00:00Z'), before, made('ours', 'v2', '2026-01-02T00:00:00Z'))
    nock(HOST).get(DEPLOYMENT_PATH).reply(200, deployment())
    expect((await change()).revisionId).toBe('ours')
  })

  it('takes an image that came back with its digest for what it sent', async () => {
    patch().reply(503)
    const image = { repo_ref: null, graph_config_path: null, image_uri: `agent:2@sha256:${'0'.repeat(64)}` }
    revisions(revision({ id: 'ours', created_at: '2026-01-02T00:00:00Z', source_revision_config: image }), before)
    nock(HOST).get(DEPLOYMENT_PATH).reply(200, deployment())
    expect((await change({ source_revision_config: { image_uri: 'agent:2' } })).revisionId).toBe('ours')
  })

  it('takes the order of the list where a time is missing', async () => {
    patch().reply(503)
    revisions(revision({ id: 'ours', created_at: null, source_revision_config: { repo_ref: 'v2' } }), before)
    nock(HOST).get(DEPLOYMENT_PATH).reply(200, deployment())
    expect((await change()).revisionId).toBe('ours')
  })

  it('is repeated once when no newer revision is its own', async () => {
    patch().reply(502)
    revisions(made('pushed', 'main', '2026-01-03T00:00:00Z'), before, made('older', 'v2', '2025-12-01T00:00:00Z'))
    patch().reply(200, deployment({ latest_revision_id: 'new' }))
    expect(await change()).toMatchObject({ revisionId: 'new', recovered: false })
  })

  it('takes any revision as newer when there was none before', async () => {
    patch().reply(502)
    revisions(made('ours', 'v2', '2026-01-03T00:00:00Z'))
    nock(HOST).get(DEPLOYMENT_PATH).reply(200, deployment())
    expect((await change(body, null)).revisionId).toBe('ours')
  })

  it('does not guess when the previous revision is not in the list', async () => {
    patch().reply(502)
    revisions(made('other', 'v2', '2026-01-03T00:00:00Z'))
    const failure = await failureOf(change())
    expect(failure).toMatchObject({ status: 502, ambiguous: true })
    expect(failure.message).toContain(`the revision ${previous}, which came before, is not in the list`)
  })

  it.each<DeploymentPatch>([
    { source_config: { resource_spec: { cpu: 1 } } },
    { source_config: { install_command: 'npm ci' } },
    { source_config: { build_command: 'make' } },
    { secrets: [{ name: 'A', value: 'a' }] },
    { secret_references: [] },
    { source_revision_config: { graph_config_path: 'langgraph.json' } },
  ])('looks for the revision after %j', async (changes) => {
    patch().reply(502)
    revisions(made('ours', 'v1', '2026-01-03T00:00:00Z'), before)
    nock(HOST).get(DEPLOYMENT_PATH).reply(200, deployment())
    expect((await change(changes)).revisionId).toBe('ours')
  })

  it('takes a newer revision that does not say what it was made from', async () => {
    patch().reply(502)
    revisions(revision({ id: 'ours', created_at: '2026-02-01T00:00:00Z', source_revision_config: null }), before)
    nock(HOST).get(DEPLOYMENT_PATH).reply(200, deployment())
    expect((await change()).revisionId).toBe('ours')
  })

  it('compares the image', async () => {
    patch().reply(502)
    revisions(
      revision({ id: 'other', created_at: '2026-02-01T00:00:00Z', source_revision_config: { image_uri: 'agent:1' } }),
      before,
    )
    patch().reply(200, deployment({ latest_revision_id: 'new' }))
    expect((await change({ source_revision_config: { image_uri: 'agent:2' } })).revisionId).toBe('new')
  })

  it.each<DeploymentPatch>([
    { source_config: { build_on_push: true } },
    { display_name: 'x' },
    { secrets: [] },
    { source_revision_config: { repo_ref: null } },
  ])('is simply repeated where it makes no revision: %j', async (changes) => {
    patch().reply(502)
    patch().reply(200, deployment())
    expect(await change(changes)).toMatchObject({ revisionId: null, recovered: false })
  })
})

describe('the revisions after another', () => {
  const at = (id: string, created_at: string | null) => revisionAnswerSchema.parse(revision({ id, created_at }))

  it('are told by their times only where each has one', () => {
    const first = at('first', '2026-01-01T00:00:00Z')
    const second = at('second', '2026-01-02T00:00:00Z')
    const ids = (revisions: RevisionAnswer[]) => newerRevisions(revisions, 'second')?.map(({ id }) => id)
    expect(ids([first, second])).toEqual([])
    expect(ids([first, second, at('undated', null)])).toEqual(['first'])
  })
})

describe('what came back', () => {
  const of = (repo_ref: string) => revisionAnswerSchema.parse(revision({ source_revision_config: { repo_ref } }))

  it('is another branch, though an image of that name would be the same', () => {
    expect(matchesSent(of('v2@x'), { source_revision_config: { repo_ref: 'v2' } })).toBe(false)
    expect(matchesSent(of('v2'), { source_revision_config: { repo_ref: 'v2' } })).toBe(true)
  })
})
