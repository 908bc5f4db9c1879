import { beforeEach, describe, expect, it } from 'vitest'
import type { Deployment } from '../../../src/contract/deployment.ts'
import { REVISION_STATUSES, type RevisionStatus } from '../../../src/contract/status.ts'
import { create, gitDeployment, imageDeployment } from '../support/control-plane.ts'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { NOBODY, setPlaneScene } from './support/scene.ts'

const scene = setPlaneScene()
const { ask } = scene
let deployment: Deployment

beforeEach(async () => {
  deployment = await create(ask, gitDeployment('agent'))
})

const list = async (query = '') => (await ask({ path: `/v2/deployments/${deployment.id}/revisions?${query}` })).body
const ids = async (query = ''): Promise<string[]> => (await list(query)).resources.map(({ id }: { id: string }) => id)
const act = (revisionId: string, action: string) =>
  ask({ method: 'POST', path: `/v2/deployments/${deployment.id}/revisions/${revisionId}/${action}` })
const make = async (body?: unknown) => ask({ method: 'POST', path: `/v2/deployments/${deployment.id}/revisions`, ...(body === undefined ? {} : { body }) })

/** Puts a revision where the queue would have brought it. */
async function put(id: string, status: RevisionStatus, set: Record<string, unknown> = {}): Promise<void> {
  await scene.database.db.updateTable('revisions').set({ status, ...set }).where('id', '=', id).execute()
}

describe('listing revisions', () => {
  it('gives the newest first, in pages whose offset leads to the next one', async () => {
    const made = [deployment.latest_revision_id as string]
    for (let count = 0; count < 4; count += 1) made.unshift((await make()).body.id)
    expect(await ids()).toEqual(made)
    expect(await list('limit=2')).toMatchObject({ offset: 2, resources: [{ id: made[0] }, { id: made[1] }] })
    expect(await list('limit=2&offset=4')).toMatchObject({ offset: 5, resources: [{ id: made[4] }] })
    expect(await list('offset=5')).toEqual({ resources: [], offset: 5 })
  })

  it('gives twenty when no limit is given', async () => {
    for (let count = 0; count < 20; count += 1) await make()
    expect(await list()).toMatchObject({ offset: 20, resources: { length: 20 } })
    expect(await list('offset=20')).toMatchObject({ offset: 21, resources: { length: 1 } })
  })

  it('filters by one status or several, with commas between', async () => {
    const [failed, skipped, stopped] = [deployment.latest_revision_id as string, (await make()).body.id, (await make()).body.id]
    await put(failed, 'BUILD_FAILED')
    await put(skipped, 'SKIPPED')
    await put(stopped, 'INTERRUPTED')
    expect(await ids('status=BUILD_FAILED')).toEqual([failed])
    expect(await ids('status=SKIPPED,BUILD_FAILED')).toEqual([skipped, failed])
    expect(await ids('status=INTERRUPTED,')).toEqual([stopped])
    expect(await ids('status=')).toHaveLength(3)
    expect(await ids(`status=${REVISION_STATUSES.join(',')}`)).toHaveLength(3)
    expect(await ids('status=DEPLOYED')).toEqual([])
  })

  it.each(['GONE', 'deployed', 'DEPLOYED,GONE', 'DEPLOYED;SKIPPED'])('refuses the status %s, and lists the valid ones', async (status) => {
    const seen = await ask({ path: `/v2/deployments/${deployment.id}/revisions?status=${encodeURIComponent(status)}` })
    expect(seen.status).toBe(422)
    expect(seen.body.detail).toEqual([
      {
        loc: ['query', 'status'],
        msg:
          "Input should be 'CREATING', 'QUEUED', 'AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING', 'CREATE_FAILED', " +
          "'BUILD_FAILED', 'DEPLOY_FAILED', 'DEPLOYED', 'SKIPPED', 'INTERRUPTED' or 'UNKNOWN', or several of them with commas between",
        type: 'enum',
      },
    ])
  })

  it('filters by what the runtime has taken over', async () => {
    const [first, second] = [deployment.latest_revision_id as string, (await make()).body.id]
    await put(first, 'DEPLOYED', { remote_reconciled: true })
    expect(await ids('remote_reconciled=true')).toEqual([first])
    expect(await ids('remote_reconciled=false')).toEqual([second])
    expect(await ids('remote_reconciled=')).toEqual([second, first])
  })

  it.each([
    ['limit=0', 'limit', 'greater_than_equal'],
    ['limit=101', 'limit', 'less_than_equal'],
    ['limit=x', 'limit', 'int_parsing'],
    ['offset=-1', 'offset', 'greater_than_equal'],
    ['remote_reconciled=2', 'remote_reconciled', 'bool_parsing'],
  ])('refuses %s', async (query, field, type) => {
    const seen = await ask({ path: `/v2/deployments/${deployment.id}/revisions?${query}` })
    expect(seen.status).toBe(422)
    expect(seen.body.detail).toEqual([{ loc: ['query', field], msg: expect.any(String), type }])
  })

  it('lists the faults of path and query together', async () => {
    const seen = await ask({ path: '/v2/deployments/none/revisions?limit=0&offset=x&status=NEW' })
    expect(seen.body.detail.map(({ loc }: { loc: unknown[] }) => loc.join('.')).toSorted()).toEqual([
      'path.deployment_id',
      'query.limit',
      'query.offset',
      'query.status',
    ])
  })

  it('is 404 with a sentence for a deployment that nobody has', async () => {
    const seen = await ask({ path: `/v2/deployments/${NOBODY}/revisions` })
    expect(seen).toMatchObject({ status: 404, body: { detail: `Deployment ID ${NOBODY} not found.` } })
  })
})

describe('reading a revision', () => {
  it('gives its fields, read-only ones included', async () => {
    const { body } = await ask({ path: `/v2/deployments/${deployment.id}/revisions/${deployment.latest_revision_id}` })
    expect(Object.keys(body).toSorted()).toEqual(
      ['created_at', 'id', 'source', 'source_revision_config', 'status', 'status_message', 'updated_at'].toSorted(),
    )
    expect(Object.keys(body.source_revision_config).toSorted()).toEqual(['graph_config_path', 'image_uri', 'repo_commit_sha', 'repo_ref'])
  })

  it('is 404 for one of another deployment, or of none', async () => {
    const other = await create(ask, gitDeployment('other'))
    for (const id of [other.latest_revision_id, NOBODY]) {
      const seen = await ask({ path: `/v2/deployments/${deployment.id}/revisions/${id}` })
      expect(seen).toMatchObject({ status: 404, body: { detail: `Revision ID ${id} not found.` } })
    }
  })
})

describe('making a revision', () => {
  it('answers 201 with it, whether a field changed or not, with or without a body', async () => {
    for (const body of [undefined, {}, { source_revision_config: { repo_ref: 'next' } }, { secrets: [{ name: 'A', value: 'bbbb' }] }]) {
      const seen = await make(body)
      expect(seen).toMatchObject({ status: 201, body: { status: 'CREATING' } })
      const { body: now } = await ask({ path: `/v2/deployments/${deployment.id}` })
      expect(now.latest_revision_id).toBe(seen.body.id)
    }
    expect((await ask({ path: `/v2/deployments/${deployment.id}` })).body.secrets).toEqual([{ name: 'A', value: '' }])
  })

  it('obeys the rules of a change', async () => {
    expect((await make({ source_revision_config: { image_uri: 'a/b' } })).status).toBe(400)
    expect((await make({ source_config: { deployment_type: 'dev' } })).status).toBe(400)
    expect((await make({ source: 'git_host' })).body.detail[0]).toMatchObject({ loc: ['body', 'source'], type: 'extra_forbidden' })
    expect(await ids()).toHaveLength(1)
  })

  it('answers each of many that come together with its own', async () => {
    const seen = await Promise.all(Array.from({ length: 6 }, () => make()))
    expect(new Set(seen.map(({ body }) => body.id)).size).toBe(6)
    expect(new Set(await ids())).toEqual(new Set([deployment.latest_revision_id, ...seen.map(({ body }) => body.id)]))
  })
})

describe('redeploying a revision', () => {
  it('makes a new one from the same source and environment, and answers with the deployment', async () => {
    const first = deployment.latest_revision_id as string
    await make({ source_revision_config: { repo_ref: 'next' }, secrets: [{ name: 'NEW', value: 'nnnn' }] })
    await put(first, 'DEPLOYED', { repo_commit_sha: 'c0ffee', built: JSON.stringify({ directory: '/tmp/x' }) })
    const seen = await act(first, 'redeploy')
    expect(seen.status).toBe(200)
    expect(seen.body.latest_revision_id).not.toBe(first)
    expect(seen.body.source_revision_config).toMatchObject({ repo_ref: 'main', repo_commit_sha: 'c0ffee' })
    expect(seen.body.secrets).toEqual([])
    expect(await ids()).toHaveLength(3)
  })

  // Where queues run, nothing stays CREATING.
  const others = REVISION_STATUSES.filter((status) => status !== 'DEPLOYED' && !(CLUSTERED && status === 'CREATING'))
  it.each(others)('refuses one that is %s', async (status) => {
    const id = deployment.latest_revision_id as string
    await put(id, status)
    const seen = await act(id, 'redeploy')
    expect(seen).toMatchObject({
      status: 400,
      body: { detail: `Revision ID ${id} is ${status}: only a DEPLOYED revision can be redeployed.` },
    })
  })

  it('is 404 for one that there is not', async () => {
    expect((await act(NOBODY, 'redeploy')).body).toEqual({ detail: `Revision ID ${NOBODY} not found.` })
  })
})

describe('interrupting a revision', () => {
  it.each(['CREATING', 'QUEUED', 'AWAITING_BUILD', 'AWAITING_DEPLOY'] as const)('ends one that is %s at once', async (status) => {
    const id = deployment.latest_revision_id as string
    await put(id, status)
    const seen = await act(id, 'interruption')
    expect(seen).toMatchObject({ status: 202, body: { status: 'INTERRUPTED', status_message: 'interrupted by a user' } })
  })

  it.each(['BUILDING', 'DEPLOYING'] as const)('notes the wish for one that is %s', async (status) => {
    const id = deployment.latest_revision_id as string
    await put(id, status)
    expect(await act(id, 'interruption')).toMatchObject({ status: 202, body: { status } })
    const row = await scene.database.db.selectFrom('revisions').select('interrupt_requested_at').where('id', '=', id).executeTakeFirstOrThrow()
    expect(row.interrupt_requested_at).not.toBeNull()
  })

  it.each(['DEPLOYED', 'CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED', 'SKIPPED', 'INTERRUPTED'] as const)(
    'is a conflict for one that is %s',
    async (status) => {
      const id = deployment.latest_revision_id as string
      await put(id, status)
      expect(await act(id, 'interruption')).toMatchObject({
        status: 409,
        body: { detail: `Revision ID ${id} is ${status} already: there is nothing to interrupt.` },
      })
    },
  )

  it('lets the next in the queue move on', async () => {
    const first = deployment.latest_revision_id as string
    const second = (await make()).body.id
    await put(first, 'AWAITING_BUILD')
    await put(second, 'QUEUED')
    await act(first, 'interruption')
    expect((await ask({ path: `/v2/deployments/${deployment.id}/revisions/${second}` })).body.status).toBe('AWAITING_BUILD')
  })
})

describe('logs of a revision', () => {
  const log = async (query: string) => ask({ path: `/v2/deployments/${deployment.id}/revisions/${deployment.latest_revision_id}/logs?${query}` })
  const messages = async (query: string): Promise<string[]> => (await log(query)).body.logs.map(({ message }: { message: string }) => message)

  beforeEach(async () => {
    const lines = Array.from({ length: 7 }, (_, index) => ({
      revision_id: deployment.latest_revision_id as string,
      type: 'build' as const,
      level: index === 6 ? ('ERROR' as const) : ('INFO' as const),
      message: `line ${index}`,
      at: new Date(Date.UTC(2026, 10, 20, 12, 0, index)),
    }))
    await scene.database.db.insertInto('revision_logs').values(lines).execute()
    const deploy = { ...lines[0]!, type: 'deploy' as const, message: 'started' }
    await scene.database.db.insertInto('revision_logs').values(deploy).execute()
  })

  it('are read by type, in either order, page by page', async () => {
    expect(await messages('type=build')).toEqual(['line 0', 'line 1', 'line 2', 'line 3', 'line 4', 'line 5', 'line 6'])
    expect(await messages('type=deploy')).toEqual(['started'])
    for (const order of ['asc', 'desc']) {
      const seen: string[] = []
      let offset = ''
      for (let page = 0; page < 4; page += 1) {
        const { body } = await log(`type=build&order=${order}&limit=3&offset=${offset}`)
        seen.push(...body.logs.map(({ message }: { message: string }) => message))
        offset = body.next_offset ?? 'end'
        if (offset === 'end') break
      }
      const all = await messages('type=build')
      expect(seen).toEqual(order === 'asc' ? all : all.toReversed())
    }
  })

  it('are filtered by level, text and time', async () => {
    expect(await messages('type=build&level=ERROR')).toEqual(['line 6'])
    expect(await messages('type=build&query=LINE%203')).toEqual(['line 3'])
    expect(await messages('type=build&start_time=2026-11-20T12:00:05Z')).toEqual(['line 5', 'line 6'])
    expect(await messages('type=build&end_time=2026-11-20T12:00:01')).toEqual(['line 0'])
    expect(await messages('type=build&start_time=2026-11-20T13:00:05%2B01:00')).toEqual(['line 5', 'line 6'])
  })

  it.each([
    ['', 'type', 'missing'],
    ['type=x', 'type', 'enum'],
    ['type=build&limit=0', 'limit', 'greater_than_equal'],
    ['type=build&limit=1001', 'limit', 'less_than_equal'],
    ['type=build&limit=many', 'limit', 'int_parsing'],
    ['type=build&offset=last', 'offset', 'string_pattern_mismatch'],
    ['type=build&order=up', 'order', 'enum'],
    ['type=build&level=LOUD', 'level', 'enum'],
    ['type=build&start_time=yesterday', 'start_time', 'datetime_parsing'],
  ])('refuse %j', async (query, field, type) => {
    const seen = await log(query)
    expect(seen.status).toBe(422)
    expect(seen.body.detail).toMatchObject([{ loc: ['query', field], type }])
  })

  it('are read in the older form too, of the deployment as a whole from the revision that serves', async () => {
    const base = `/v1/projects/${deployment.id}`
    const older = async (path: string, body?: unknown) => ask({ method: 'POST', path: base + path, ...(body === undefined ? {} : { body }) })
    const revision = `/revisions/${deployment.latest_revision_id}`
    expect((await older(`${revision}/build_logs`, { limit: 2, order: 'desc' })).body.logs).toMatchObject([{ message: 'line 6' }, { message: 'line 5' }])
    expect((await older(`${revision}/deploy_logs`)).body.logs).toMatchObject([{ message: 'started' }])
    expect((await older('/deploy_logs', { limit: null })).body.logs).toMatchObject([{ message: 'started' }])
    await scene.database.db.updateTable('deployments').set({ active_revision_id: (await make()).body.id }).where('id', '=', deployment.id).execute()
    expect((await older('/deploy_logs', {})).body.logs).toEqual([])
  })
})

describe('what sources here do not have', () => {
  it('is refused with a reason that clients look for', async () => {
    const image = await create(ask, imageDeployment('image'))
    const token = await ask({ method: 'POST', path: `/v2/deployments/${image.id}/push-token` })
    expect(token.status).toBe(400)
    expect(token.body.detail).toContain("only available for 'internal_docker' source deployments")
    const upload = await ask({ method: 'POST', path: `/v2/deployments/${image.id}/upload-url` })
    expect(upload.body.detail).toContain("only available for 'internal_source' source deployments")
    expect((await ask({ method: 'POST', path: `/v2/deployments/${NOBODY}/push-token` })).status).toBe(404)
  })
})
