import { join } from 'node:path'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { ACCESS_KEY, type BucketServer, startBucketServer } from '../platform/bulk-export/support/bucket-server.ts'
import { makeRun } from '../platform/traces/support/runs.ts'
import { faults, type FaultServer, startFaultServer } from '../support/fault-server.ts'
import { createGitRepository } from '../support/git-repository.ts'
import { type PlatformProcess, startPlatform } from '../support/platform.ts'
import { readable } from '../support/readable.ts'
import { REPOSITORY_ROOT, runAction, type RunOptions, type RunResult } from '../support/runner.ts'
import { type Ending, failed, flawsOf } from '../support/scene.ts'

/** The bundle, the real platform behind a network that can fail, and a real S3-compatible store that can, too. */

const BASE = '/api/v1/bulk-exports'
const ONE_EXPORT = /\/bulk-exports\/[0-9a-f-]{36}$/
const RUNS = /\/bulk-exports\/[0-9a-f-]{36}\/runs$/
const EXPORTED: Ending = { status: 'exported' }
const OTHER_SECRET = 'another-secret-access-key/+='
const TOKEN = 'session-token-of-the-test=='
/** Rows of each day of the range. */
const DAYS = { '2026-08-17': 3, '2026-08-18': 5, '2026-08-19': 4 }

let platform: PlatformProcess
let network: FaultServer
let bucket: BucketServer
let projectId: string
const results: RunResult[] = []

beforeAll(async () => {
  bucket = await startBucketServer()
  platform = await startPlatform({ args: ['--time-scale', '1000'] })
  network = await startFaultServer(platform.url)
  projectId = (await ask('POST', '/sessions', { name: 'traces of the test' }))['id'] as string
  const runs = Object.entries(DAYS).flatMap(([day, count]) =>
    Array.from({ length: count }, (_, index) => {
      const hour = String(index).padStart(2, '0')
      const times = { start_time: `${day}T${hour}:00:00.000001Z`, end_time: `${day}T${hour}:00:01.000001Z` }
      return makeRun({ ...times, session_id: projectId, session_name: undefined, outputs: { answer: index } })
    }),
  )
  await ask('POST', '/runs/batch', { post: runs })
})
afterEach(() => {
  network.clear()
  bucket.clear()
})
afterAll(async () => {
  await Promise.all(results.map((result) => result.dispose()))
  await network?.stop()
  await platform?.dispose()
  await bucket?.stop()
})

async function ask(method: string, path: string, body?: unknown, to = platform): Promise<Record<string, unknown>> {
  const headers = { 'x-api-key': to.apiKey, 'content-type': 'application/json' }
  const answer = await fetch(`${to.url}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return JSON.parse(text) as Record<string, unknown>
}

const list = async (what: string): Promise<Record<string, unknown>[]> => (await ask('GET', `${BASE}${what}`)) as never

const BUCKET = () => ({
  'export-bucket': bucket.bucket,
  'export-prefix': 'lake/agents',
  'export-bucket-region': 'eu-central-1',
  'export-endpoint-url': bucket.url,
  'export-access-key-id': ACCESS_KEY.access_key_id,
  'export-secret-access-key': ACCESS_KEY.secret_access_key,
})

/** A step of `mode: export` over the three days, changed by `inputs`. */
async function step(inputs: Readonly<Record<string, string>> = {}, options: Partial<RunOptions> = {}): Promise<RunResult> {
  const result = await runAction({
    with: {
      mode: 'export',
      'api-key': platform.apiKey,
      'workspace-id': platform.workspaceId,
      'api-url': network.url,
      'export-project-id': projectId,
      'export-start': '2026-08-17',
      'export-end': '2026-08-20T02:00:00+02:00',
      'export-timeout': '30s',
      ...BUCKET(),
      ...inputs,
    },
    ...options,
  })
  results.push(result)
  return result
}

const flaws = (result: RunResult, ending: Ending) =>
  flawsOf(result, ending, [platform.apiKey, ACCESS_KEY.access_key_id, OTHER_SECRET, TOKEN])

/** True once so many requests of this kind have arrived. */
const arrived = (method: string, path: RegExp, times = 1) => {
  const from = network.requests.length
  return () => network.requests.slice(from).filter((one) => one.method === method && path.test(one.path)).length >= times
}

/** Uploads take so long that the export is at work meanwhile; the destination is made before. */
async function slowBucket(): Promise<void> {
  const first = await step({ 'export-wait': 'false' })
  expect(await flaws(first, EXPORTED)).toEqual([])
  bucket.fail(['put', 'create-upload'], { kind: 'delay', ms: 8000 }, Infinity)
}

describe('an export of three days', { timeout: 60_000 }, () => {
  it('makes the destination, follows to the end, and leaves Parquet with every row', async () => {
    const result = await step({ 'export-fields': 'id, name\nstart_time', 'export-format-version': 'v2_beta' })
    expect(await flaws(result, EXPORTED)).toEqual([])
    expect(result.outputs).toMatchObject({ 'export-status': 'COMPLETED', 'export-rows': '12', 'export-files': '3' })
    const id = result.outputs['export-id'] ?? ''
    expect(await ask('GET', `${BASE}/${id}`)).toMatchObject({
      start_time: '2026-08-17T00:00:00.000000Z',
      end_time: '2026-08-20T00:00:00.000000Z',
      export_fields: ['id', 'name', 'start_time'],
    })
    const keys = (await bucket.keys()).filter((key) => key.startsWith(`lake/agents/export_id=${id}/`))
    const read = async (key: string) => parquetReadObjects({ file: await asyncBufferFromFile(bucket.fileOf(key)), compressors })
    const files = await Promise.all(keys.map(read))
    expect(files.flat()).toHaveLength(12)
    expect(Object.keys(files[0]?.[0] ?? {})).toEqual(['id', 'name', 'start_time'])
    const summary = readable(result.summary)
    expect(summary).toContain(`s3://traces/lake/agents/export_id=${id}/`)
    expect(summary).toContain('x-axis ["08-17", "08-18", "08-19"]')
    expect(summary).toContain('bar [3, 5, 4]')
    expect(summary).toContain('| 2026-08-18 | 5 | done |')
    expect(result.log).toMatch(/COMPLETED after .*: 3 of 3 runs, 12 rows/)
  })

  it('finds its destination again, and exports only what the filter lets through', async () => {
    const result = await step({ 'export-filter': 'lt(start_time, "2026-08-18T01:30:00Z")' })
    expect(await flaws(result, EXPORTED)).toEqual([])
    expect(result.outputs['export-rows']).toBe('5')
    expect(result.log).toContain('Found the destination')
    expect(await list('/destinations')).toHaveLength(1)
  })

  it('goes to a destination by its id, over a range that ends now', async () => {
    const [destination] = await list('/destinations')
    const none = Object.fromEntries(Object.keys(BUCKET()).map((name) => [name, '']))
    const times = { 'export-start': '-24h', 'export-end': 'now' }
    const result = await step({ ...none, ...times, 'export-destination-id': String(destination?.['id']) })
    expect(await flaws(result, EXPORTED)).toEqual([])
    const { start_time: start, end_time: end } = await ask('GET', `${BASE}/${result.outputs['export-id']}`)
    expect(Date.parse(String(end)) - Date.parse(String(start))).toBe(86_400_000)
  })

  it('warns of a range that ends in the future', async () => {
    const end = new Date(Date.now() + 86_400_000).toISOString()
    const result = await step({ 'export-end': end, 'export-wait': 'false' })
    expect(await flaws(result, EXPORTED)).toEqual([])
    expect(result.annotations).toContainEqual(expect.objectContaining({ level: 'warning', message: expect.stringContaining('in the future') }))
  })

  it('changes nothing with dry-run', async () => {
    const before = await list('')
    expect(await flaws(await step({ 'dry-run': 'true' }), { status: 'planned' })).toEqual([])
    expect(await list('')).toHaveLength(before.length)
  })
})

describe('a network that fails', { timeout: 60_000 }, () => {
  it('waits for a rate limit, outlives lost connections, and makes one export', async () => {
    const before = (await list('')).length
    network.on({ method: 'POST', path: /\/bulk-exports$/ }, faults.rateLimited(1))
    network.on({ method: 'POST', path: /\/bulk-exports$/ }, { kind: 'reset', when: 'after' })
    network.on({ method: 'GET', path: ONE_EXPORT, times: 2 }, { kind: 'reset', when: 'before' })
    const result = await step()
    expect(await flaws(result, EXPORTED)).toEqual([])
    expect(result.outputs['export-rows']).toBe('12')
    expect(result.log).toContain('The service answers again')
    expect(await list('')).toHaveLength(before + 1)
  })

  it('is red when no answer comes until the timeout', async () => {
    network.on({ method: 'GET', path: ONE_EXPORT, times: Infinity }, { kind: 'reset', when: 'before' })
    const result = await step({ 'export-timeout': '4s' })
    expect(await flaws(result, failed('E_UNAVAILABLE', 'The connection to the service was lost'))).toEqual([])
  })
})

describe('an export that does not end well', { timeout: 60_000 }, () => {
  it('is red with the errors of its runs when it fails', async () => {
    await step({ 'export-wait': 'false', 'export-prefix': 'denied', 'export-end': '2026-08-17T00:00:01Z' })
    const [destination] = await list('/destinations')
    bucket.deny('put', 'create-upload')
    const none = Object.fromEntries(Object.keys(BUCKET()).map((name) => [name, '']))
    const result = await step({ ...none, 'export-destination-id': String(destination?.['id']) })
    expect(await flaws(result, failed('E_EXPORT_FAILED', 'ended in FAILED', 'Access denied', 'Fix the destination'))).toEqual([])
    expect(result.outputs['export-status']).toBe('FAILED')
    expect(readable(result.summary)).toMatch(/\| 2026-08-1\d \| FAILED \| 1 \| destination: Access denied/)
  })

  it('is red when somebody cancels it', async () => {
    await slowBucket()
    const isFollowed = arrived('GET', RUNS)
    const pending = step(await byId())
    await expect.poll(isFollowed, { timeout: 20_000 }).toBe(true)
    const [newest] = await list('')
    await ask('PATCH', `${BASE}/${String(newest?.['id'])}`, { status: 'Cancelled' })
    const result = await pending
    expect(await flaws(result, failed('E_EXPORT_CANCELLED', 'ended in CANCELLED'))).toEqual([])
  })

  it('is red when the service gives it up, in the words of the hosted service', async () => {
    const [some] = await list('')
    network.on({ method: 'GET', path: ONE_EXPORT, times: Infinity }, { kind: 'body', body: { ...some, status: 'TimedOut' } })
    const result = await step()
    expect(await flaws(result, { ...failed('E_EXPORT_TIMEOUT', 'ended in TIMEDOUT', 'Reduce the scope'), status: 'timed-out' })).toEqual([])
  })

  it('is red when its own time is over, and cancels it if that is wanted', async () => {
    await slowBucket()
    const result = await step({ ...(await byId()), 'export-timeout': '3s', 'on-timeout': 'interrupt' })
    expect(await flaws(result, { ...failed('E_EXPORT_TIMEOUT', 'after 3 s', 'was cancelled'), status: 'timed-out' })).toEqual([])
    expect(await ask('GET', `${BASE}/${result.outputs['export-id']}`)).toMatchObject({ status: 'CANCELLED' })
  })
})

/** The destination of the bucket by its id: nothing has to be written into the bucket before the export does. */
async function byId(): Promise<Record<string, string>> {
  const none = Object.fromEntries(Object.keys(BUCKET()).map((name) => [name, '']))
  const all = await list('/destinations')
  const found = all.find(({ config }) => (config as { prefix: string }).prefix === 'lake/agents')
  return { ...none, 'export-destination-id': String(found?.['id']) }
}

describe('a step that is cancelled while it follows', { timeout: 60_000 }, () => {
  it.each([
    ['interrupt', 'CANCELLED', 'was cancelled'],
    ['leave', 'CREATED RUNNING', 'on-cancel is leave'],
  ])('with on-cancel: %s', async (onCancel, status, says) => {
    await slowBucket()
    const result = await step({ ...(await byId()), 'on-cancel': onCancel }, { cancelWhen: arrived('GET', RUNS) })
    expect(await flaws(result, { status: 'cancelled', code: 'E_CANCELLED' })).toEqual([])
    expect(result.log).toContain(says)
    expect(result.endedAfterSignalMs).toBeLessThan(5000)
    const path = `${BASE}/${result.outputs['export-id']}`
    expect(status).toContain((await ask('GET', path))['status'])
    await ask('PATCH', path, { status: 'Cancelled' })
  })

  it('has post cancel the export when it was killed', async () => {
    await slowBucket()
    const when = arrived('GET', RUNS)
    const result = await step({ ...(await byId()), 'on-cancel': 'interrupt' }, { signals: [{ signal: 'SIGKILL', when }] })
    expect(result.post?.log).toContain('was cancelled')
    expect(await ask('GET', `${BASE}/${result.outputs['export-id']}`)).toMatchObject({ status: 'CANCELLED' })
  })
})

describe('a destination that is refused', { timeout: 60_000 }, () => {
  it.each<[string, () => Record<string, string>, string]>([
    [
      'Access denied',
      () => {
        bucket.deny('put')
        return { 'export-prefix': 'no' }
      },
      'Give the key pair permission',
    ],
    [
      'Access denied',
      () => {
        // This store checks no signatures.
        bucket.fail('put', { kind: 'answer', status: 403, code: 'SignatureDoesNotMatch' }, Infinity)
        return { 'export-secret-access-key': OTHER_SECRET }
      },
      'check export-secret-access-key',
    ],
    ['Bucket is not valid', () => ({ 'export-bucket': 'no-such-bucket' }), 'Create the bucket'],
    [
      'Key ID you provided does not exist',
      () => ({ 'export-access-key-id': 'UNKNOWNKEY', 'export-session-token': '', 'export-prefix': 'other' }),
      'Correct export-access-key-id',
    ],
    ['Invalid endpoint', () => ({ 'export-endpoint-url': platform.url, 'export-session-token': TOKEN }), 'Correct export-endpoint-url'],
  ])('%s', async (cause, change, next) => {
    const before = await list('')
    const result = await step(change())
    expect(await flaws(result, failed('E_DESTINATION', cause, next))).toEqual([])
    expect(await list('')).toHaveLength(before.length)
  })

  it('does not exist', async () => {
    const id = '11111111-1111-4111-8111-111111111111'
    const result = await step({ ...(await byId()), 'export-destination-id': id })
    expect(await flaws(result, failed('E_NOT_FOUND', id, 'export-destination-id'))).toEqual([])
  })

  it('has no such tracing project', async () => {
    const result = await step({ 'export-project-id': '11111111-1111-4111-8111-111111111111' })
    expect(await flaws(result, failed('E_NOT_FOUND', 'export-project-id'))).toEqual([])
  })
})

describe('a scheduled export', { timeout: 60_000 }, () => {
  const schedule = (changes: Record<string, string> = {}) =>
    step({ 'export-start': '2099-01-01', 'export-end': '', 'export-interval-hours': '24', ...changes })

  it('is made once, and left as it is afterwards', async () => {
    const first = await schedule()
    expect(await flaws(first, EXPORTED)).toEqual([])
    expect(first.outputs['export-status']).toBe('INTERVAL_SCHEDULED')
    for (const changes of [{}, { 'export-start': 'now' }]) {
      const again = await schedule(changes)
      expect(await flaws(again, { status: 'unchanged' })).toEqual([])
      expect(again.outputs['export-id']).toBe(first.outputs['export-id'])
    }
  })

  it('that differs is reported with the difference', async () => {
    const result = await schedule({ 'export-interval-hours': '12', 'export-filter': 'eq(is_root, true)' })
    const says = ['interval_hours is 24, wanted is 12', 'filter is none, wanted is eq(is_root, true)']
    expect(await flaws(result, failed('E_CONFLICT', ...says))).toEqual([])
  })
})

describe('an export after a deploy', { timeout: 120_000 }, () => {
  it('leaves the status of the deploy, and its own outputs', async () => {
    const repository = await createGitRepository({ from: join(REPOSITORY_ROOT, 'examples', 'echo-agent') })
    try {
      const deploy = {
        mode: 'deploy',
        'control-plane-url': platform.url,
        'deployment-name': 'echo-agent',
        'repo-url': repository.url,
        'repo-ref': 'main',
        secrets: `ECHO_KEY=${OTHER_SECRET}`,
      }
      const result = await step(deploy, { timeoutMs: 90_000 })
      expect(await flaws(result, { status: 'deployed' })).toEqual([])
      expect(result.outputs).toMatchObject({ 'revision-status': 'DEPLOYED', 'export-status': 'COMPLETED', 'export-rows': '12' })
      bucket.deny('put', 'create-upload')
      const red = await step({ ...deploy, 'skip-unchanged': 'true', secrets: '', ...(await byId()) }, { timeoutMs: 90_000 })
      expect(await flaws(red, failed('E_EXPORT_FAILED', 'Access denied'))).toEqual([])
      expect(red.outputs['revision-status']).toBe('DEPLOYED')
    } finally {
      await repository.dispose()
    }
  })
})

describe('the caps of the hosted service', { timeout: 120_000 }, () => {
  it('are told from a rate limit', async () => {
    const cloud = await startPlatform({ args: ['--offering', 'cloud'] })
    try {
      const config = { bucket_name: bucket.bucket, prefix: 'caps', endpoint_url: bucket.url, region: 'eu-central-1' }
      const destination = { destination_type: 's3', display_name: 'caps', config, credentials: ACCESS_KEY }
      const { id: destinationId } = await ask('POST', `${BASE}/destinations`, destination, cloud)
      const { id: project } = await ask('POST', '/sessions', { name: 'caps' }, cloud)
      const body = { bulk_export_destination_id: destinationId, session_id: project, start_time: '2099-01-01T00:00:00Z' }
      const fill = async (times: number, changes: object) => {
        for (let n = 0; n < times; n += 1) await ask('POST', BASE, { ...body, ...changes }, cloud)
      }
      const inputs = { 'api-key': cloud.apiKey, 'workspace-id': cloud.workspaceId, 'api-url': cloud.url, 'export-project-id': String(project) }
      await fill(200, { interval_hours: 24 })
      const scheduled = { 'export-end': '', 'export-start': '2098-01-01', 'export-interval-hours': '1', 'export-prefix': 'more' }
      expect(await flaws(await step({ ...inputs, ...scheduled }), failed('E_RATE_LIMITED', 'cap on active schedules'))).toEqual([])
      await fill(50, { end_time: '2099-01-02T00:00:00Z' })
      expect(await flaws(await step(inputs), failed('E_RATE_LIMITED', 'in an hour'))).toEqual([])
    } finally {
      await cloud.dispose()
    }
  })
})
