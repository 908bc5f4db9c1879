import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Deployment } from '../../../src/contract/deployment.ts'
import { controlPlaneRoutes } from '../../../src/platform/control-plane/routes/routes.ts'
import type { DeploymentContext } from '../../../src/platform/control-plane/deployments.ts'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { type Ask, create, createControlPlane, gitDeployment, imageDeployment, type TestControlPlane } from '../support/control-plane.ts'
import { createWorkspace, startTestDatabase, type TestDatabase, type TestWorkspace } from '../support/database.ts'

/** In every text of the other workspace: no answer may ever hold it. */
const MARK = 'zebra'

let database: TestDatabase
let plane: TestControlPlane
let mine: TestWorkspace
let theirs: TestWorkspace
let own: Deployment[]
let others: Deployment[]

beforeAll(async () => {
  database = await startTestDatabase()
  plane = createControlPlane({ db: database.db })
  mine = await createWorkspace(database.db)
  theirs = await createWorkspace(database.db)
  const secrets = [{ name: `${MARK}_NAME`, value: `${MARK}-value` }]
  own = [await create(plane.as(mine.key), gitDeployment('own-git')), await create(plane.as(mine.key), imageDeployment('own-image'))]
  others = [
    await create(plane.as(theirs.key), gitDeployment(`${MARK}-git`, { secrets, source_revision_config: { repo_ref: MARK } })),
    await create(plane.as(theirs.key), imageDeployment(`${MARK}-image`, { secrets, display_name: MARK })),
  ]
  const lines = others.map(({ latest_revision_id }) => ({
    revision_id: latest_revision_id as string,
    type: 'build' as const,
    level: 'INFO' as const,
    message: MARK,
    at: new Date(),
  }))
  await database.db.insertInto('revision_logs').values(lines).execute()
})
afterAll(() => database.stop())

/** Everything that the other workspace has. */
async function snapshot(): Promise<unknown> {
  const { db } = database
  const deployments = await db.selectFrom('deployments').selectAll().where('workspace_id', '=', theirs.id).orderBy('id').execute()
  const ids = deployments.map(({ id }) => id)
  const revisions = await db.selectFrom('revisions').selectAll().where('deployment_id', 'in', ids).orderBy('number').execute()
  return { deployments, revisions }
}

const oddText = fc.oneof(
  fc.constantFrom('', ' ', '0', '-1', 'null', 'true', '1e9', '%', '..', '../..', "' or 1=1 --", '\0', '\ud800', '😀', '__proto__', 'constructor', '{}'),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.string({ maxLength: 30 }),
  fc.string({ minLength: 1000, maxLength: 5000 }),
)
const anyId = () =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...[...own, ...others].flatMap(({ id, latest_revision_id }) => [id, latest_revision_id as string])) },
    { weight: 1, arbitrary: fc.uuid() },
    { weight: 1, arbitrary: oddText.filter((text) => text !== '' && text.isWellFormed()) },
  )

const queryNames = [
  'limit', 'offset', 'status', 'remote_reconciled', 'name_contains', 'name', 'deployment_ids', 'deployment_type', 'image_version',
  'tag_value_ids', 'delete_tracing_project', 'type', 'order', 'level', 'query', 'start_time', 'end_time', '__proto__',
]
const queryValue = fc.oneof(
  fc.constantFrom('1', '100', '0', '2147483647', 'DEPLOYED', 'READY', 'true', 'build', 'deploy', 'desc', 'own', MARK),
  fc.constantFrom('2026-01-01T00:00:00Z', '0000-01-01T00:00:00', '9999-12-31T23:59:59.999999+14:00'),
  oddText.filter((text) => text.isWellFormed()),
)
const query = fc.array(fc.tuple(fc.constantFrom(...queryNames), queryValue), { maxLength: 4 })

/** A valid body with some of its parts, at any depth, replaced by anything. */
const mutated = fc
  .tuple(
    fc.constantFrom<Record<string, unknown>>(
      gitDeployment('fuzz', { secrets: [{ name: 'A', value: 'b' }] }),
      imageDeployment('fuzz-image', { source_config: { resource_spec: { cpu: 1, labels: { a: 'b' } } } }),
      { source_config: { build_on_push: true }, source_revision_config: { repo_ref: 'main' } },
      { limit: 5, order: 'asc', offset: '1' },
    ),
    fc.array(fc.tuple(fc.nat(), fc.oneof(oddText, fc.jsonValue(), fc.double(), fc.constant(undefined))), { maxLength: 3 }),
  )
  .map(([body, changes]) => {
    const copy = structuredClone(body)
    for (const [at, value] of changes) {
      const places: { holder: Record<string, unknown>; key: string }[] = []
      const collect = (holder: Record<string, unknown>) => {
        for (const key of Object.keys(holder)) {
          places.push({ holder, key })
          if (typeof holder[key] === 'object' && holder[key] !== null) collect(holder[key] as Record<string, unknown>)
        }
      }
      collect(copy)
      const place = places[at % Math.max(1, places.length)]
      if (place !== undefined) place.holder[place.key] = value
    }
    return JSON.stringify(copy)
  })
const body = fc.oneof(
  { weight: 4, arbitrary: mutated },
  { weight: 2, arbitrary: fc.json({ maxDepth: 5 }) },
  { weight: 1, arbitrary: oddText },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 50 }) as fc.Arbitrary<Uint8Array<ArrayBuffer>> },
)
const headerValue = fc.stringMatching(/^[\x21-\x7e]{0,40}$/)
const headers = fc.dictionary(
  fc.constantFrom('X-Tenant-Id', 'Content-Type', 'Accept', 'Host', 'X-Forwarded-Host', 'Content-Encoding', 'Authorization', 'Range', 'X-Odd'),
  headerValue,
  { maxKeys: 2 },
)
const templates = controlPlaneRoutes({} as DeploymentContext).map(({ definition }) => definition)

const request = () =>
  fc
    .record({
      template: fc.constantFrom(...templates),
      ids: fc.array(anyId(), { minLength: 2, maxLength: 2 }),
      method: fc.option(fc.constantFrom('GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD', 'OPTIONS'), { freq: 6 }),
      query: fc.option(query),
      body: fc.option(body, { freq: 4 }),
      headers: fc.option(headers, { freq: 3 }),
    })
    .map(({ template, ids, method, query, body, headers }): Ask => {
      const path = template.path.replace('{deployment_id}', encodeURIComponent(ids[0] ?? '')).replace('{revision_id}', encodeURIComponent(ids[1] ?? ''))
      const search = new URLSearchParams(query ?? []).toString()
      const verb = method ?? template.method.toUpperCase()
      return {
        method: verb,
        path: search === '' ? path : `${path}?${search}`,
        headers: headers ?? {},
        ...(body === null || verb === 'GET' || verb === 'HEAD' ? {} : { raw: body }),
      }
    })

describe('any request at all', () => {
  it('is answered soon, never with a 500, never with data of another workspace, always as described', async ({ skip }) => {
    skip(CLUSTERED, 'where queues run, they change the rows that are compared')
    const before = await snapshot()
    const statuses = new Set<number>()
    await fc.assert(
      fc.asyncProperty(request(), async (one) => {
        const begin = performance.now()
        const seen = await plane.ask({ ...one, key: mine.key })
        const took = performance.now() - begin
        statuses.add(seen.status)
        expect(seen.status).toBeLessThan(500)
        expect(took).toBeLessThan(5000)
        // What was asked may be said back; what was stored may not.
        if (!`${one.path}${String(one.raw)}`.includes(MARK)) {
          expect(JSON.stringify(seen.body ?? null)).not.toContain(MARK)
        }
        expect(JSON.stringify(seen.body ?? null)).not.toContain(`"tenant_id":"${theirs.id}"`)
      }),
      { numRuns: 1000, interruptAfterTimeLimit: 30_000 },
    )
    expect(await snapshot()).toEqual(before)
    // The generator reaches the handlers, not only their doors.
    for (const status of [200, 404, 405, 422]) expect(statuses).toContain(status)
  })

  it('without a key is refused before anything is read', async () => {
    await fc.assert(
      fc.asyncProperty(request(), async (one) => {
        const { Authorization: _, ...rest } = one.headers ?? {}
        const seen = await plane.ask({ ...one, headers: rest })
        expect([401, 404, 405, 204]).toContain(seen.status)
        if (seen.status === 404) expect(seen.body?.detail ?? 'Not Found').toBe('Not Found')
      }),
      { numRuns: 300 },
    )
  })
})

describe('a list, while nothing changes', () => {
  it('gives every resource exactly once, whatever the pages, in one order', async () => {
    const workspace = await createWorkspace(database.db)
    const ask = plane.as(workspace.key)
    const made: string[] = []
    for (let index = 0; index < 23; index += 1) made.unshift((await create(ask, gitDeployment(`page-${index}`))).id)
    // Some at the very same moment.
    await database.db.updateTable('deployments').set({ created_at: new Date() }).where('id', 'in', made.slice(5, 12)).execute()
    const first = made[0] as string
    for (let index = 0; index < 22; index += 1) await ask({ method: 'POST', path: `/v2/deployments/${first}/revisions`, body: {} })

    for (const path of ['/v2/deployments', `/v2/deployments/${first}/revisions`]) {
      const idsOf = async (limit: number, offset: number) => {
        const { body: page } = await ask({ path: `${path}?limit=${limit}&offset=${offset}` })
        return { ids: page.resources.map(({ id }: { id: string }) => id) as string[], next: page.offset as number }
      }
      const all = (await idsOf(100, 0)).ids
      expect(new Set(all).size).toBe(23)
      if (path === '/v2/deployments') expect(new Set(all)).toEqual(new Set(made))
      await fc.assert(
        fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 }), fc.nat({ max: 30 }), async (limits, start) => {
          const seen: string[] = []
          let offset = start
          for (let page = 0; ; page += 1) {
            const { ids, next } = await idsOf(limits[page % limits.length] as number, offset)
            expect(next).toBe(offset + ids.length)
            if (ids.length === 0) break
            seen.push(...ids)
            offset = next
          }
          expect(seen).toEqual(all.slice(start))
        }),
        { numRuns: 25 },
      )
    }
  })
})
