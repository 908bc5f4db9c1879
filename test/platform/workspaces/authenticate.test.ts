import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../../src/platform/database/schema.ts'
import { createAuthenticate, hashApiKey } from '../../../src/platform/workspaces/authenticate.ts'
import { create, createControlPlane, gitDeployment } from '../support/control-plane.ts'
import { createWorkspace, startTestDatabase, type TestDatabase, type TestWorkspace } from '../support/database.ts'

let database: TestDatabase
let mine: TestWorkspace
let theirs: TestWorkspace

beforeAll(async () => {
  database = await startTestDatabase()
  mine = await createWorkspace(database.db, 'plus')
  theirs = await createWorkspace(database.db)
})
afterAll(() => database.stop())

/** Reads headers as a server does, names in any letter case. */
const reader = (headers: Record<string, string>) => (name: string) => new Headers(headers).get(name)

/** The database, with its queries counted. */
function counting(db: Database): { db: Database; queries: () => number } {
  let count = 0
  return {
    db: db.withPlugin({
      transformQuery: ({ node }) => {
        count += 1
        return node
      },
      transformResult: async ({ result }) => result,
    }),
    queries: () => count,
  }
}

describe('who asks', () => {
  const refused = async (headers: Record<string, string>) =>
    createAuthenticate(database.db)(reader(headers)).then(
      () => 'let in',
      (error: { status: number; message: string }) => `${error.status} ${error.message}`,
    )

  it.each(['X-Api-Key', 'x-api-key', 'X-API-KEY', 'X-API-Key'])('is known by the key in %s', async (name) => {
    expect(await createAuthenticate(database.db)(reader({ [name]: mine.key }))).toEqual({ workspaceId: mine.id, plan: 'plus', scope: 'full' })
  })

  it.each([['Bearer'], ['bearer'], ['BEARER']])('is known by the key as a %s token', async (scheme) => {
    expect(await createAuthenticate(database.db)(reader({ authorization: `${scheme} ${mine.key}` }))).toMatchObject({ workspaceId: mine.id })
    expect(await createAuthenticate(database.db)(reader({ 'x-api-key': '', authorization: `${scheme} ${mine.key}` }))).toMatchObject({
      workspaceId: mine.id,
    })
  })

  it('may name the own workspace, and no other', async () => {
    const authenticate = createAuthenticate(database.db)
    for (const id of [mine.id, mine.id.toUpperCase()]) {
      expect(await authenticate(reader({ 'X-Api-Key': mine.key, 'x-tenant-id': id }))).toMatchObject({ workspaceId: mine.id })
    }
    for (const id of [theirs.id, 'nonsense', '11111111-1111-1111-1111-111111111111']) {
      expect(await refused({ 'X-Api-Key': mine.key, 'X-Tenant-ID': id })).toBe(
        '403 The API key does not belong to the workspace in the X-Tenant-Id header.',
      )
    }
  })

  it('is nobody without a key that is known', async () => {
    expect(await refused({})).toBe('401 No API key: send it in the X-Api-Key header.')
    expect(await refused({ 'X-Tenant-Id': mine.id })).toBe('401 No API key: send it in the X-Api-Key header.')
    for (const headers of [
      { 'X-Api-Key': `${mine.key}x` },
      { 'X-Api-Key': mine.key.toLowerCase() },
      { 'X-Api-Key': 'k'.repeat(5000) },
      { 'X-Api-Key': `wrong`, authorization: `Bearer ${mine.key}` },
      { 'X-Api-Key': `${mine.key}, ${theirs.key}` },
    ]) {
      expect(await refused(headers)).toBe('401 The API key is not valid here.')
    }
    expect(await refused({ authorization: `Basic ${mine.key}` })).toBe('401 No API key: send it in the X-Api-Key header.')
  })
})

describe('what is remembered of keys', () => {
  it('spares the database the traffic of agents, not the truth about new keys', async () => {
    let now = 0
    const { db, queries } = counting(database.db)
    const authenticate = createAuthenticate(db, { now: () => now })
    const knock = (key: string) => authenticate(reader({ 'X-Api-Key': key })).catch((error: Error) => error)
    for (let count = 0; count < 50; count += 1) await knock(mine.key)
    expect(queries()).toBe(1)
    const later = `das_${'later'.repeat(8)}`
    expect(await knock(later)).toMatchObject({ status: 401 })
    await database.db
      .insertInto('api_keys')
      .values({ id: '6f1fdc0e-2a1c-4a63-9d1b-0e9f6ad0a001', workspace_id: mine.id, key_hash: hashApiKey(later) })
      .execute()
    now = 1000
    expect(await knock(later)).toMatchObject({ workspaceId: mine.id })
  })
})

describe("another workspace's ids", () => {
  it('are not found on any route, and never forbidden', async () => {
    const plane = createControlPlane({ db: database.db })
    const deployment = await create(plane.as(theirs.key), gitDeployment('theirs'))
    const id = deployment.id
    const revision = `/v2/deployments/${id}/revisions/${deployment.latest_revision_id}`
    const body = {}
    const requests = [
      { path: `/v2/deployments/${id}` },
      { method: 'PATCH', path: `/v2/deployments/${id}`, body: { source_revision_config: { repo_ref: 'x' } } },
      { method: 'DELETE', path: `/v2/deployments/${id}` },
      { method: 'DELETE', path: `/v2/deployments?deployment_ids=${id}` },
      { path: `/v2/deployments/${id}/revisions` },
      { method: 'POST', path: `/v2/deployments/${id}/revisions`, body },
      { path: revision },
      { method: 'POST', path: `${revision}/redeploy` },
      { method: 'POST', path: `${revision}/interruption` },
      { path: `${revision}/logs?type=build` },
      { method: 'POST', path: `/v1/projects/${id}/deploy_logs`, body },
      { method: 'POST', path: `/v1/projects/${id}/revisions/${deployment.latest_revision_id}/build_logs`, body },
      { method: 'POST', path: `/v1/projects/${id}/revisions/${deployment.latest_revision_id}/deploy_logs`, body },
      { method: 'POST', path: `/v2/deployments/${id}/push-token` },
      { method: 'POST', path: `/v2/deployments/${id}/upload-url` },
    ]
    for (const request of requests) {
      const seen = await plane.as(mine.key)(request)
      expect([request.path, seen.status, seen.body]).toEqual([request.path, 404, { detail: `Deployment ID ${id} not found.` }])
    }
    expect((await plane.as(mine.key)({ path: `/v2/deployments?deployment_ids=${id}` })).body.resources).toEqual([])
    expect((await plane.as(theirs.key)({ path: `/v2/deployments/${id}` })).body).toEqual(deployment)

    // Nor through a deployment of one's own.
    const own = await create(plane.as(mine.key), gitDeployment('own'))
    for (const end of ['', '/logs?type=build']) {
      const seen = await plane.as(mine.key)({ path: `/v2/deployments/${own.id}/revisions/${deployment.latest_revision_id}${end}` })
      expect(seen.body).toEqual({ detail: `Revision ID ${deployment.latest_revision_id} not found.` })
    }
  })

  it('do not come before the key', async () => {
    const plane = createControlPlane({ db: database.db })
    const seen = await plane.ask({ path: '/v2/deployments/not-an-id?limit=0' })
    expect(seen.status).toBe(401)
    expect(seen.headers.get('WWW-Authenticate')).toBe('Bearer')
  })
})
