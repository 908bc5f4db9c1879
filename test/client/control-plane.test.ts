import nock from 'nock'
import { describe, expect, it } from 'vitest'
import { createControlPlane } from '../../src/client/control-plane.ts'
import type { RetryEvent } from '../../src/client/retry.ts'
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

const REVISION = `${DEPLOYMENT_PATH}/revisions/${REVISION_ID}`
const ids = { deploymentId: DEPLOYMENT_ID, revisionId: REVISION_ID }

allowOnlyMocks()

function controlPlane({ dialect = 'spec' as Dialect, events = [] as RetryEvent[] } = {}) {
  const effects = virtualEffects()
  const onRetry = (event: RetryEvent) => void events.push(event)
  return createControlPlane({ transport: testTransport({ baseUrl: HOST, effects, onRetry }), dialect, effects, onRetry })
}

/** A control plane whose every page is full and followed by another. */
function endlessPlane(resource: Record<string, unknown>) {
  const resources = Array.from({ length: 100 }, () => resource)
  const transport = testTransport({ baseUrl: HOST })
  transport.request = (async ({ query }: { query: { offset: number } }) => ({ body: page(resources, query.offset + 1) })) as never
  return createControlPlane({ transport, dialect: 'spec', effects: virtualEffects() })
}

const page = (resources: unknown[], offset = resources.length) => ({ resources, offset })
const many = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => deployment({ id: `d-${from + index}`, name: `my-agent-${from + index}` }))

describe('deployments', () => {
  it('are listed page by page', async () => {
    nock(HOST)
      .get('/v2/deployments')
      .query({ limit: 100, offset: 0, name_contains: 'my' })
      .reply(200, page(many(100), 100))
      .get('/v2/deployments')
      .query({ limit: 100, offset: 100, name_contains: 'my' })
      .reply(200, page(many(2, 100), 200))
    const listed = await controlPlane().listDeployments({ nameContains: 'my', signal: unaborted() })
    expect(listed.map(({ id }) => id)).toEqual(Array.from({ length: 102 }, (_, index) => `d-${index}`))
  })

  it('are listed without a filter, too', async () => {
    nock(HOST).get('/v2/deployments').query({ limit: 100, offset: 0 }).reply(200, page([]))
    expect(await controlPlane().listDeployments({ signal: unaborted() })).toEqual([])
  })

  it('are refused when the list never ends', async () => {
    const failure = await failureOf(endlessPlane(deployment()).listDeployments({ signal: unaborted() }))
    expect(failure).toMatchObject({ kind: 'protocol', code: 'endless-list', path: '/v2/deployments', ambiguous: false })
    expect(failure.message).toBe('GET /v2/deployments gave page after page without an end')
  })

  it.each([404, 405])('cannot be found where the control plane has no list (%i)', async (status) => {
    nock(HOST).get('/v2/deployments').query(true).reply(status, { detail: 'Not Found' })
    const failure = await failureOf(controlPlane().findDeploymentByName('x', unaborted()))
    expect(failure.kind).toBe('unsupported')
    expect(failure.message).toBe(
      `GET /v2/deployments answered ${status}: this control plane has no list of deployments at this address`,
    )
  })

  it('are found by their exact name, on whatever page', async () => {
    const wanted = deployment({ id: 'wanted', name: 'my-agent' })
    nock(HOST)
      .get('/v2/deployments')
      .query({ limit: 100, offset: 0, name_contains: 'my-agent' })
      .reply(200, page(many(100), 100))
      .get('/v2/deployments')
      .query({ limit: 100, offset: 100, name_contains: 'my-agent' })
      .reply(200, page([wanted, wanted], 102))
    expect((await controlPlane().findDeploymentByName('my-agent', unaborted()))?.id).toBe('wanted')
  })

  it('are not found by a part of their name', async () => {
    nock(HOST)
      .get('/v2/deployments')
      .query(true)
      .reply(200, page(many(3)))
    expect(await controlPlane().findDeploymentByName('my-agent', unaborted())).toBeNull()
  })

  it('of the same name are an error that names both', async () => {
    nock(HOST)
      .get('/v2/deployments')
      .query(true)
      .reply(200, page([deployment({ id: 'a' }), deployment({ id: 'b' })]))
    await expect(controlPlane().findDeploymentByName('my-agent', unaborted())).rejects.toMatchObject({
      name: 'DuplicateNameError',
      deploymentName: 'my-agent',
      ids: ['a', 'b'],
      message: "2 deployments are named 'my-agent': a, b; name the one that is meant by its id",
    })
  })

  it('are read in either dialect', async () => {
    const source_revision_config = { repo_ref: 'main', langgraph_config_path: 'x.json' }
    nock(HOST)
      .get(DEPLOYMENT_PATH)
      .reply(200, deployment({ source: 'github', source_revision_config, status: 'Ready', new_field: 1 }))
    expect(await controlPlane().getDeployment(DEPLOYMENT_ID, unaborted())).toMatchObject({
      source: 'git_host',
      status: 'READY',
      source_revision_config: { graph_config_path: 'x.json', image_uri: null },
      new_field: 1,
    })
  })

  it('are asked for by an encoded id, and never by none', async () => {
    nock(HOST).get('/v2/deployments/a%2Fb%3Fc').reply(200, deployment())
    await controlPlane().getDeployment('a/b?c', unaborted())
    for (const id of ['', '.', '..']) {
      await expect(controlPlane().getDeployment(id, unaborted())).rejects.toThrow(
        `an id in the path /v2/deployments/${id} is '${id}'`,
      )
    }
  })

  it('that are missing are a plain refusal', async () => {
    nock(HOST)
      .get(DEPLOYMENT_PATH)
      .reply(404, { detail: `Deployment ID ${DEPLOYMENT_ID} not found.` })
    const failure = await failureOf(controlPlane().getDeployment(DEPLOYMENT_ID, unaborted()))
    expect(failure).toMatchObject({ kind: 'http', status: 404, detail: `Deployment ID ${DEPLOYMENT_ID} not found.` })
  })
})

describe('deleting a deployment', () => {
  const remove = () =>
    controlPlane().deleteDeployment({ id: DEPLOYMENT_ID, deleteTracingProject: true, timeoutMs: 1000, signal: unaborted() })

  it('asks for the tracing project as well', async () => {
    nock(HOST).delete(DEPLOYMENT_PATH).query({ delete_tracing_project: 'true' }).reply(204)
    expect(await remove()).toEqual({ alreadyGone: false })
  })

  it('is done when it is already gone', async () => {
    nock(HOST)
      .delete(DEPLOYMENT_PATH)
      .query(true)
      .reply(404, { detail: `Deployment ID ${DEPLOYMENT_ID.toUpperCase()} not found.` })
    expect(await remove()).toEqual({ alreadyGone: true })
  })

  it('is tried again freely', async () => {
    nock(HOST)
      .delete(DEPLOYMENT_PATH)
      .query(true)
      .replyWithError(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
      .delete(DEPLOYMENT_PATH)
      .query(true)
      .reply(404, { detail: `Deployment ID ${DEPLOYMENT_ID} not found.` })
    expect(await remove()).toEqual({ alreadyGone: true })
  })

  it.each([
    [404, { detail: 'Not Found' }],
    [404, ''],
    [405, { detail: 'Method Not Allowed' }],
  ])('is not done where the control plane cannot: %i %j', async (status, body) => {
    nock(HOST).delete(DEPLOYMENT_PATH).query(true).reply(status, body)
    const failure = await failureOf(remove())
    expect(failure).toMatchObject({ kind: 'unsupported', status })
    expect(failure.message).toContain('this control plane has no way to delete a deployment')
  })
})

describe('revisions', () => {
  it('are listed by status, and no more than asked for', async () => {
    const list = `${DEPLOYMENT_PATH}/revisions`
    nock(HOST)
      .get(list)
      .query({ limit: 2, offset: 0, status: 'DEPLOYED,SKIPPED' })
      .reply(200, page([revision(), revision({ id: 'r2' })], 2))
    const listed = await controlPlane().listRevisions({
      deploymentId: DEPLOYMENT_ID,
      status: ['DEPLOYED', 'SKIPPED'],
      max: 2,
      signal: unaborted(),
    })
    expect(listed.map(({ id }) => id)).toEqual([REVISION_ID, 'r2'])
  })

  it('that never end are refused', async () => {
    const failure = await failureOf(endlessPlane(revision()).listRevisions({ deploymentId: DEPLOYMENT_ID, signal: unaborted() }))
    expect(failure).toMatchObject({ kind: 'protocol', code: 'endless-list', path: `${DEPLOYMENT_PATH}/revisions` })
  })

  it('are read with any status', async () => {
    nock(HOST)
      .get(REVISION)
      .reply(200, revision({ status: 'brand_new', status_message: 'why' }))
    expect(await controlPlane().getRevision({ ...ids, signal: unaborted() })).toMatchObject({
      status: 'BRAND_NEW',
      status_message: 'why',
    })
  })

  it.each([
    [200, {}],
    [202, ''],
    [204, ''],
  ])('are interrupted (%i)', async (status, body) => {
    nock(HOST).post(`${REVISION}/interruption`).reply(status, body)
    expect(await controlPlane().interruptRevision({ ...ids, timeoutMs: 2000, signal: unaborted() })).toBeUndefined()
  })

  it('are not interrupted where the control plane cannot', async () => {
    nock(HOST).post(`${REVISION}/interruption`).reply(404, { detail: 'Not Found' })
    const failure = await failureOf(controlPlane().interruptRevision({ ...ids, signal: unaborted() }))
    expect(failure.kind).toBe('unsupported')
    expect(failure.message).toContain('this control plane has no way to interrupt a revision')
  })

  it.each([DEPLOYMENT_ID, REVISION_ID])('that are missing are not taken for a missing route (%s)', async (id) => {
    nock(HOST)
      .post(`${REVISION}/interruption`)
      .reply(404, { detail: `ID ${id} not found.` })
    expect(await failureOf(controlPlane().interruptRevision({ ...ids, signal: unaborted() }))).toMatchObject({
      kind: 'http',
      status: 404,
    })
  })
})

describe('an operation that not every control plane has', () => {
  it('passes on what is no failure of a request', async () => {
    await expect(controlPlane().deleteDeployment({ id: '', deleteTracingProject: false, signal: unaborted() })).rejects.toThrow(
      "an id in the path /v2/deployments/ is ''",
    )
  })
})

describe('logs', () => {
  const LOGS = `${REVISION}/logs`
  const LEGACY = `/v1/projects/${DEPLOYMENT_ID}/revisions/${REVISION_ID}`
  const ask = { ...ids, type: 'build', limit: 30, order: 'desc', signal: unaborted() } as const

  it('are read at the route of today', async () => {
    nock(HOST)
      .get(LOGS)
      .query({ type: 'build', limit: 30, order: 'desc' })
      .reply(200, {
        logs: [
          { id: '1', message: 'npm ERR!', level: 'error', timestamp: 1_767_225_600_000, extra: true },
          { message: 'two', timestamp: '2026-01-01T00:00:01Z' },
          'three',
        ],
        next_offset: 'abc',
      })
    expect(await controlPlane().revisionLogs(ask)).toEqual({
      entries: [
        { id: '1', message: 'npm ERR!', level: 'ERROR', timestamp: 1_767_225_600_000, extra: true },
        { message: 'two', level: null, timestamp: 1_767_225_601_000 },
        { message: 'three', level: null, timestamp: null },
      ],
      nextOffset: 'abc',
    })
  })

  it.each([404, 405])('are read at the route before it where that is missing (%i), at once the second time', async (status) => {
    const answer = { logs: [{ message: 'old' }], next_offset: null }
    nock(HOST).get(LOGS).query(true).reply(status, { detail: 'Not Found' })
    nock(HOST).post(`${LEGACY}/build_logs`, { order: 'desc', limit: 30 }).reply(503)
    nock(HOST).post(`${LEGACY}/build_logs`, { order: 'desc', limit: 30 }).reply(200, answer)
    nock(HOST).post(`${LEGACY}/deploy_logs`, { order: 'asc', limit: 1000, offset: 'o' }).reply(200, answer)
    const plane = controlPlane()
    expect((await plane.revisionLogs(ask)).entries[0]?.message).toBe('old')
    const more = { ...ask, type: 'deploy', order: 'asc', limit: 5000, offset: 'o', timeoutMs: 5000 } as const
    expect((await plane.revisionLogs(more)).nextOffset).toBeNull()
  })

  it('are not there where both routes are missing', async () => {
    nock(HOST).get(LOGS).query(true).reply(404, { detail: 'Not Found' }).post(`${LEGACY}/build_logs`).reply(404, 'nothing')
    const failure = await failureOf(controlPlane().revisionLogs(ask))
    expect(failure.kind).toBe('unsupported')
    expect(failure.message).toContain('this control plane has no logs of revisions')
  })

  it('of a missing revision are a plain refusal', async () => {
    nock(HOST)
      .get(LOGS)
      .query(true)
      .reply(404, { detail: `Revision ID ${REVISION_ID} not found.` })
    expect(await failureOf(controlPlane().revisionLogs(ask))).toMatchObject({ kind: 'http', status: 404 })
  })

  it('ask for at least one line', async () => {
    nock(HOST).get(LOGS).query({ type: 'build', limit: 1, order: 'desc' }).reply(200, { logs: [] })
    expect(await controlPlane().revisionLogs({ ...ask, limit: 0 })).toEqual({ entries: [], nextOffset: null })
  })
})
