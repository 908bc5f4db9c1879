import nock from 'nock'
import { describe, expect, it } from 'vitest'
import { createControlPlane } from '../../src/client/control-plane.ts'
import type { RequestOptions } from '../../src/client/transport.ts'
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

const SOURCE_ID = 'abcdef00-3333-4333-8333-333333333333'
const REDEPLOY = `${DEPLOYMENT_PATH}/revisions/${SOURCE_ID}/redeploy`

allowOnlyMocks()

function controlPlane() {
  const effects = virtualEffects()
  return createControlPlane({ transport: testTransport({ baseUrl: HOST, effects }), dialect: 'spec', effects })
}

describe('redeploying a revision', () => {
  const redeploy = () =>
    controlPlane().redeployRevision({
      deploymentId: DEPLOYMENT_ID,
      revisionId: SOURCE_ID,
      previousLatestRevisionId: REVISION_ID,
      signal: unaborted(),
    })
  const post = () => nock(HOST).post(REDEPLOY)
  const config = (repo_commit_sha: string | null, changes: Record<string, unknown> = {}) => ({
    repo_ref: 'main',
    graph_config_path: 'langgraph.json',
    image_uri: null,
    repo_commit_sha,
    ...changes,
  })
  const made = (id: string, second: number, source_revision_config: unknown) =>
    revision({ id, created_at: `2026-01-01T00:00:0${second}Z`, source_revision_config })
  const listed = (...resources: Record<string, unknown>[]) =>
    nock(HOST)
      .get(`${DEPLOYMENT_PATH}/revisions`)
      .query({ limit: 100, offset: 0 })
      .reply(200, { resources, offset: resources.length })
  const [A, B] = ['a'.repeat(40), 'b'.repeat(40)]
  const previous = made(REVISION_ID, 2, config(B))

  it('tells the new revision', async () => {
    post().reply(200, deployment({ latest_revision_id: 'new' }))
    expect(await redeploy()).toMatchObject({ revisionId: 'new', recovered: false })
  })

  it.each([404, 405])('is unsupported where there is no such route (%i)', async (status) => {
    post().reply(status, { detail: 'Not Found' })
    expect(await failureOf(redeploy())).toMatchObject({ kind: 'unsupported', attempts: 1 })
  })

  it('is not repeated after a refusal', async () => {
    post().reply(400, { detail: 'only the latest revision' })
    expect(await failureOf(redeploy())).toMatchObject({ kind: 'http', status: 400, attempts: 1 })
  })

  it('finds what it made when its answer was lost, and takes no other for it', async () => {
    post().replyWithError(Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }))
    listed(made('pushed', 4, config(B)), made('ours', 3, config(null)), previous, made(SOURCE_ID, 1, config(A)))
    nock(HOST).get(DEPLOYMENT_PATH).reply(200, deployment())
    expect(await redeploy()).toMatchObject({ revisionId: 'ours', recovered: true })
  })

  it('is asked for once more when it was not carried out', async () => {
    post().reply(503)
    listed(previous, made(SOURCE_ID, 1, config(A)))
    post().reply(200, deployment({ latest_revision_id: 'new' }))
    expect(await redeploy()).toMatchObject({ revisionId: 'new', recovered: false })
  })

  it('tells that it made none', async () => {
    post().reply(200, deployment({ latest_revision_id: REVISION_ID }))
    expect(await redeploy()).toMatchObject({ revisionId: null, recovered: false })
  })

  it('says what is missing: the way to do it, or the revision', async () => {
    post().reply(404, { detail: 'Not Found' })
    expect((await failureOf(redeploy())).message).toBe(
      `POST ${REDEPLOY} answered 404: this control plane has no way to redeploy a revision`,
    )
    for (const id of [DEPLOYMENT_ID, SOURCE_ID]) {
      post().reply(404, { detail: `ID ${id} not found` })
      expect(await failureOf(redeploy())).toMatchObject({ kind: 'http', status: 404, detail: `ID ${id} not found` })
    }
  })

  it.each([
    ['the latest one from before', [made('new', 3, config(A)), made(SOURCE_ID, 1, config(A))]],
    ['the one that is redeployed', [made('new', 3, config(A)), previous]],
  ])('does not guess when the list lacks %s', async (_what, resources) => {
    post().reply(503)
    listed(...resources)
    const failure = await failureOf(redeploy())
    expect(failure).toMatchObject({ kind: 'http', status: 503, ambiguous: true })
    expect(failure.summary).toBe('answered 503 Service Unavailable; the revisions from before are not all in the list')
  })

  it.each([
    ['the same commit', config(A), config(A)],
    ['a commit where that of the source is not known', config(B), config(null)],
    ['no commit yet', config(null), config(A)],
  ])('takes a new revision of %s for its own', async (_what, ours, source) => {
    post().reply(503)
    listed(made('ours', 3, ours), previous, made(SOURCE_ID, 1, source))
    nock(HOST).get(DEPLOYMENT_PATH).reply(200, deployment())
    expect(await redeploy()).toMatchObject({ revisionId: 'ours', recovered: true, deployment: { id: DEPLOYMENT_ID } })
  })

  it.each([
    ['commit', config(B)],
    ['branch', config(A, { repo_ref: 'other' })],
    ['configuration', config(A, { graph_config_path: 'other.json' })],
    ['image', config(A, { image_uri: 'agent:2' })],
  ])('does not take a new revision of another %s for its own', async (_what, other) => {
    post().reply(503)
    listed(made('other', 3, other), previous, made(SOURCE_ID, 1, config(A)))
    post().reply(200, deployment({ latest_revision_id: 'new' }))
    expect(await redeploy()).toMatchObject({ revisionId: 'new', recovered: false })
  })
})

describe('deleting a deployment', () => {
  const remove = () => controlPlane().deleteDeployment({ id: DEPLOYMENT_ID, deleteTracingProject: false, signal: unaborted() })

  it('is done when the service answers without words', async () => {
    nock(HOST).delete(DEPLOYMENT_PATH).query({ delete_tracing_project: 'false' }).reply(202, '')
    expect(await remove()).toEqual({ alreadyGone: false })
  })

  it('is not done when it is refused', async () => {
    nock(HOST)
      .delete(DEPLOYMENT_PATH)
      .query(true)
      .reply(403, { detail: `${DEPLOYMENT_ID} is not yours` })
    expect(await failureOf(remove())).toMatchObject({ kind: 'http', status: 403 })
  })
})

describe('a read', () => {
  const ids = { deploymentId: DEPLOYMENT_ID, revisionId: REVISION_ID }
  type Plane = ReturnType<typeof controlPlane>
  it.each<[string, string, unknown, (plane: Plane) => Promise<unknown>]>([
    ['deployments', '/v2/deployments', { resources: [], offset: 0 }, (plane) => plane.listDeployments({ signal: unaborted() })],
    ['a deployment', DEPLOYMENT_PATH, deployment(), (plane) => plane.getDeployment(DEPLOYMENT_ID, unaborted())],
    [
      'revisions',
      `${DEPLOYMENT_PATH}/revisions`,
      { resources: [], offset: 0 },
      (plane) => plane.listRevisions({ deploymentId: DEPLOYMENT_ID, signal: unaborted() }),
    ],
    [
      'a revision',
      `${DEPLOYMENT_PATH}/revisions/${REVISION_ID}`,
      revision(),
      (plane) => plane.getRevision({ ...ids, signal: unaborted() }),
    ],
    [
      'logs',
      `${DEPLOYMENT_PATH}/revisions/${REVISION_ID}/logs`,
      { logs: [] },
      (plane) => plane.revisionLogs({ ...ids, type: 'build', limit: 1, order: 'asc', signal: unaborted() }),
    ],
  ])('of %s is repeated after a server error', async (_what, path, body, read) => {
    nock(HOST)
      .get(path)
      .query(true)
      .reply(503)
      .get(path)
      .query(true)
      .reply(200, body as nock.Body)
    await expect(read(controlPlane())).resolves.toBeDefined()
  })
})

describe('the time that an operation is given', () => {
  const ids = { deploymentId: DEPLOYMENT_ID, revisionId: REVISION_ID }

  /** The time of each request that the operations make. */
  async function timesOf(timeoutMs: number | undefined): Promise<(number | undefined)[]> {
    const asked: RequestOptions<unknown>[] = []
    const transport = testTransport({ baseUrl: HOST })
    transport.request = (async (options: RequestOptions<unknown>) => {
      asked.push(options)
      return { body: { logs: [], next_offset: null } }
    }) as never
    const plane = createControlPlane({ transport, dialect: 'spec', effects: virtualEffects() })
    const time = { ...(timeoutMs === undefined ? {} : { timeoutMs }), signal: unaborted() }
    await plane.deleteDeployment({ id: DEPLOYMENT_ID, deleteTracingProject: true, ...time })
    await plane.interruptRevision({ ...ids, ...time })
    await plane.revisionLogs({ ...ids, type: 'deploy', limit: 1, order: 'desc', ...time })
    return asked.map((options) => options.timeoutMs)
  }

  it('is that of its request', async () => {
    expect(await timesOf(1234)).toEqual([1234, 1234, 1234])
  })

  it('is the usual one when nothing is said', async () => {
    expect(await timesOf(undefined)).toEqual([undefined, undefined, undefined])
  })
})
