import { afterEach, describe, expect, it } from 'vitest'
import { deploymentSchema, deploymentsListSchema } from '../../src/contract/deployment.ts'
import { revisionSchema, revisionsListSchema } from '../../src/contract/revision.ts'
import { startControlPlaneDouble } from './control-plane-double.ts'
import type { ControlPlaneDouble, DoubleOptions } from './control-plane-model.ts'

const doubles: ControlPlaneDouble[] = []

async function start(options?: DoubleOptions): Promise<ControlPlaneDouble> {
  const double = await startControlPlaneDouble(options)
  doubles.push(double)
  return double
}

afterEach(() => Promise.all(doubles.splice(0).map((double) => double.stop())))

type Call = { key?: string; tenant?: string; method?: string; body?: unknown }

async function call(double: ControlPlaneDouble, path: string, { key, tenant, method, body }: Call = {}) {
  const response = await fetch(`${double.url}${path}`, {
    method: method ?? 'GET',
    headers: { 'x-api-key': key ?? double.apiKey, ...(tenant === undefined ? {} : { 'x-tenant-id': tenant }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}

const CREATE = {
  name: 'echo', source: 'git_host', secrets: [{ name: 'A', value: 'secret' }],
  source_config: { repo_url: 'https://github.com/acme/agents', build_on_push: false },
  source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' },
}

async function created(double: ControlPlaneDouble, body: unknown = CREATE) {
  const answer = await call(double, '/v2/deployments', { method: 'POST', body })
  expect(answer.status).toBe(201)
  return answer.body
}

describe('the contract', () => {
  it('creates, reads, lists, patches and deletes in the words of the contract', async () => {
    const double = await start()
    const deployment = deploymentSchema.parse(await created(double))
    expect(deployment).toMatchObject({ name: 'echo', active_revision_id: null, secrets: [{ name: 'A', value: '' }] })
    const path = `/v2/deployments/${deployment.id}`
    deploymentsListSchema.parse((await call(double, '/v2/deployments?name_contains=ech')).body)
    const revision = revisionSchema.parse((await call(double, `${path}/revisions/${deployment.latest_revision_id}`)).body)
    expect(revision.source_revision_config).toMatchObject({ repo_ref: 'main', graph_config_path: 'langgraph.json' })

    const unchanged = await call(double, path, { method: 'PATCH', body: { source_config: { build_on_push: true } } })
    expect(unchanged.body.latest_revision_id).toBe(deployment.latest_revision_id)
    const changed = await call(double, path, { method: 'PATCH', body: { source_revision_config: { repo_ref: 'next' } } })
    expect(changed.body.latest_revision_id).not.toBe(deployment.latest_revision_id)
    const revisions = revisionsListSchema.parse((await call(double, `${path}/revisions`)).body)
    expect(revisions.resources.map(({ id }) => id)).toEqual([changed.body.latest_revision_id, deployment.latest_revision_id])

    expect((await call(double, path, { method: 'DELETE' })).status).toBe(204)
    expect(await call(double, path)).toMatchObject({ status: 404, body: { detail: `Deployment ID ${deployment.id} not found.` } })
    const sent = { source_config: { build_on_push: true } }
    expect(double.requestsOf('PATCH')).toMatchObject([{ status: 200, body: sent }, { status: 200 }])
  })

  it('pages, and can be stuck on a page or never come to an end', async () => {
    const double = await start()
    for (const name of ['a', 'b', 'c']) double.addDeployment({ name })
    const page = await call(double, '/v2/deployments?limit=2&offset=2')
    expect(page.body).toMatchObject({ resources: [{ name: 'c' }], offset: 3 })
    const [stuck, endless] = [await start({ pages: 'stuck' }), await start({ pages: 'endless' })]
    for (const double of [stuck, endless]) for (const name of ['a', 'b']) double.addDeployment({ name })
    const resources = [{ name: 'a' }, { name: 'b' }]
    expect((await call(stuck, '/v2/deployments?limit=2&offset=2')).body).toMatchObject({ resources, offset: 2 })
    expect((await call(endless, '/v2/deployments?limit=2&offset=2')).body).toMatchObject({ resources, offset: 4 })
  })

  it.each([
    ['an unknown key', { key: 'wrong' }, '/v2/deployments', 401],
    ['another workspace', { tenant: '11111111-1111-4111-8111-111111111111' }, '/v2/deployments', 403],
    ['an id that is none', {}, '/v2/deployments/abc', 422],
    ['an unknown field', { method: 'POST', body: { ...CREATE, extra: 1 } }, '/v2/deployments', 422],
    ['the other dialect', { method: 'POST', body: { ...CREATE, source: 'github' } }, '/v2/deployments', 422],
    ['a missing field', { method: 'POST', body: { ...CREATE, secrets: undefined } }, '/v2/deployments', 422],
    ['a limit beyond the bound', {}, '/v2/deployments?limit=101', 422],
  ])('refuses %s', async (_, options: Call, path, status) => {
    const answer = await call(await start(), path, options)
    expect(answer.status).toBe(status)
    const fault = { loc: expect.any(Array), msg: expect.any(String), type: expect.any(String) }
    expect(answer.body.detail).toEqual(status === 422 ? [fault] : expect.any(String))
  })

  it('refuses a name twice, fixed fields, and a tag with build_on_push', async () => {
    const double = await start()
    const { id } = await created(double)
    expect((await call(double, '/v2/deployments', { method: 'POST', body: CREATE })).status).toBe(409)
    const patch = (body: unknown) => call(double, `/v2/deployments/${id}`, { method: 'PATCH', body })
    expect((await patch({ source_config: { repo_url: 'https://elsewhere.test' } })).status).toBe(422)
    const contradiction = { source_config: { build_on_push: true }, source_revision_config: { repo_ref: 'refs/tags/v1' } }
    expect((await patch(contradiction)).status).toBe(400)
  })

  it('keeps workspaces apart', async () => {
    const double = await start()
    double.addWorkspace('other-key', '22222222-2222-4222-8222-222222222222')
    const { id } = await created(double)
    expect((await call(double, `/v2/deployments/${id}`, { key: 'other-key' })).status).toBe(404)
    expect((await call(double, '/v2/deployments', { key: 'other-key' })).body.resources).toEqual([])
  })

  it('speaks the vendor dialect, with a prefix and without routes', async () => {
    const more = { address: 'custom_url', echoSecrets: true, without: ['logs'] } as const
    const double = await start({ dialect: 'vendor', prefix: '/api-host', ...more })
    const config = { repo_ref: 'main', langgraph_config_path: 'langgraph.json' }
    const body = { ...CREATE, source: 'github', source_revision_config: config }
    const deployment = await created(double, body)
    expect(deployment).toMatchObject({
      source: 'github', url: null, source_revision_config: { langgraph_config_path: 'langgraph.json' },
      source_config: { custom_url: expect.stringContaining('/agents/echo') }, secrets: [{ name: 'A', value: 'secret' }],
    })
    const logs = `/v2/deployments/${deployment.id}/revisions/${deployment.latest_revision_id}/logs?type=build`
    expect((await call(double, logs)).status).toBe(404)
  })
})

describe('scripts', () => {
  it('moves one status a poll, by polls or by time', async () => {
    const double = await start()
    const script = [['QUEUED'], ['BUILDING', { polls: 2 }], ['BUILD_FAILED', { message: 'npm failed' }]] as const
    double.scriptNext(script, { build: [{ message: 'oh' }] })
    const { id, latest_revision_id: revision } = await created(double)
    const read = async () => (await call(double, `/v2/deployments/${id}/revisions/${revision}`)).body
    const statuses = [await read(), await read(), await read(), await read()]
    expect(statuses.map(({ status }) => status)).toEqual(['QUEUED', 'BUILDING', 'BUILD_FAILED', 'BUILD_FAILED'])
    expect(statuses[2].status_message).toBe('npm failed')
    const logs = await call(double, `/v2/deployments/${id}/revisions/${revision}/logs?type=build&order=desc&limit=1`)
    expect(logs.body).toMatchObject({ logs: [{ message: 'oh' }], next_offset: null })
  })

  it('activates what was deployed, and interrupts what was not', async () => {
    const double = await start({ script: [['BUILDING'], ['DEPLOYED', { ms: 30 }]] })
    const { id, latest_revision_id: first } = await created(double)
    await new Promise((resolve) => setTimeout(resolve, 40))
    expect((await call(double, `/v2/deployments/${id}/revisions/${first}`)).body.status).toBe('DEPLOYED')
    expect((await call(double, `/v2/deployments/${id}`)).body).toMatchObject({ active_revision_id: first, status: 'READY' })
    double.scriptNext([['BUILDING']])
    const body = { source_revision_config: { repo_ref: 'x' } }
    const patched = await call(double, `/v2/deployments/${id}`, { method: 'PATCH', body })
    const second = patched.body.latest_revision_id
    await call(double, `/v2/deployments/${id}/revisions/${second}/interruption`, { method: 'POST' })
    expect((await call(double, `/v2/deployments/${id}/revisions/${second}`)).body.status).toBe('INTERRUPTED')
    expect((await call(double, `/v2/deployments/${id}`)).body.active_revision_id).toBe(first)
  })
})
