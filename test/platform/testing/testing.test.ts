import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startPlatform, type TestPlatform } from '../../../testing/platform.mjs'
import { createControlPlane } from '../../../src/client/control-plane.ts'
import type { RetryEvent } from '../../../src/client/retry.ts'
import { createTransport } from '../../../src/client/transport.ts'
import type { Deployment, DeploymentCreate } from '../../../src/contract/deployment.ts'
import { virtualEffects } from '../../client/support/virtual-effects.ts'
import {
  commitAgent,
  createFast,
  type PlatformProcess,
  reach,
  run,
  startPlatformProcess,
} from '../lifecycle-support/platform-process.ts'
import { ACCESS_KEY, startBucketServer } from '../bulk-export/support/bucket-server.ts'
import { createGitRepository } from '../support/git-repository.ts'
import { processesWith, until } from '../support/processes.ts'

const ROOT = path.join(import.meta.dirname, '..', '..', '..')
const folder = mkdtempSync(path.join(tmpdir(), 'platform-testing-'))
const KEY = 'test-key-0123456789abcdef'
const NO_RUN = { id: ['6f1fdc0e-2a1c-4a63-9d1b-0e9f6ad0a001'], limit: 1 }
let platform: TestPlatform

beforeAll(async () => {
  platform = await startPlatform({ options: { 'api-key': KEY, 'time-scale': 100 } })
})
afterEach(() => platform.reset())
afterAll(async () => {
  await platform.stop()
  rmSync(folder, { recursive: true, force: true })
})

const image: DeploymentCreate = {
  name: 'from-an-image',
  source: 'external_docker',
  source_config: {},
  source_revision_config: { image_uri: 'registry.example.com/agent:1' },
  secrets: [],
}

async function ask(address: string, { method = 'GET', body, key = KEY }: { method?: string; body?: unknown; key?: string } = {}) {
  const response = await fetch(platform.url + address, {
    method,
    headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : (JSON.parse(text) as Record<string, unknown>) }
}

/** The same platform, as other tests of this repository speak to one. */
const asProcess = (): PlatformProcess =>
  ({
    url: platform.url,
    log: () => platform.output(),
    ask: async (address: string, options?: { method?: string; body?: unknown }) => (await ask(address, options)).body,
  }) as unknown as PlatformProcess

describe('somebody who tests against the platform', () => {
  it('starts it, breaks it and resets it from a project of their own', async () => {
    const project = path.join(folder, 'project')
    mkdirSync(path.join(project, 'node_modules'), { recursive: true })
    // As npm install file:… does it.
    symlinkSync(ROOT, path.join(project, 'node_modules', 'deploy-agent-server'), 'dir')
    writeFileSync(
      path.join(project, 'suite.mjs'),
      `import assert from 'node:assert/strict'
      import { after, before, beforeEach, test } from 'node:test'
      import { startPlatform } from 'deploy-agent-server/testing'
      let platform
      before(async () => { platform = await startPlatform() })
      beforeEach(() => platform.reset())
      after(() => platform.stop())
      const list = () => fetch(platform.url + '/v2/deployments', { headers: { 'X-Api-Key': platform.apiKey } })
      test('meets a fault', async () => {
        await platform.faults.add({ path: '/v2/deployments', status: 503 })
        assert.equal((await list()).status, 503)
        assert.equal((await list()).status, 200)
        assert.equal((await platform.faults.list())[0].struck, 1)
      })
      test('begins anew', async () => assert.deepEqual(await platform.faults.list(), []))`,
    )
    const { stdout } = await promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap', 'suite.mjs'], {
      cwd: project,
      timeout: 50_000,
    })
    expect(stdout).toMatch(/^# pass 2$/m)
    expect(stdout).toMatch(/^# fail 0$/m)
  })

  it('is told the reason when it does not start', async () => {
    await expect(startPlatform({ options: { offering: 'none' } })).rejects.toThrow(
      /ended with 1 before it was ready:\n.*--offering/s,
    )
  })
})

describe('the means for tests', () => {
  it('need a key', async () => {
    expect((await ask('/_test/faults', { key: 'another-key-0123456789' })).status).toBe(401)
    expect((await ask('/_test/reset', { method: 'POST', key: 'another-key-0123456789' })).status).toBe(401)
  })

  it('are not there without PLATFORM_FAULTS=on', async () => {
    const other = await startPlatformProcess(path.join(folder, 'plain'), { PLATFORM_FAULTS: '' })
    try {
      await expect(other.ask('/_test/faults')).rejects.toThrow('404')
      await expect(other.ask('/_test/reset', { method: 'POST' })).rejects.toThrow('404')
    } finally {
      await other.stop()
    }
  })

  it('tell what is wrong with a fault', async () => {
    const { status, body } = await ask('/_test/faults', { method: 'POST', body: { times: 0, status: 500 } })
    expect([status, body]).toMatchObject([422, { detail: [{ loc: ['body', 'times'] }] }])
  })

  it('do not meet the faults themselves', async () => {
    await platform.faults.add({ status: 500, times: 1000 })
    await platform.faults.clear()
    expect((await ask('/v2/deployments')).status).toBe(200)
  })

  it('bring everything back to the beginning, a running agent included', async () => {
    const repository = createGitRepository(path.join(folder, 'repository'))
    commitAgent(repository, { version: '1' })
    const deployment = await createFast(asProcess(), { name: 'to-be-reset', repository })
    await reach(asProcess(), deployment, ['DEPLOYED'])
    await platform.faults.add({ path: '/agents/**', broken: 'truncated' })
    await expect(run(asProcess(), deployment)).rejects.toThrow(/terminated/)
    expect((await run(asProcess(), deployment)).text).toContain('version 1')

    await platform.reset()
    expect((await ask('/v2/deployments')).body).toEqual({ resources: [], offset: 0 })
    expect((await ask('/sessions')).body).toEqual([])
    expect((await run(asProcess(), deployment)).status).toBe(404)
    expect(processesWith(deployment.id)).toEqual([])
    // The name is free again.
    expect((await createFast(asProcess(), { name: 'to-be-reset', repository })).id).not.toBe(deployment.id)
  })

  it('end an export in its middle, and a schedule; the worker goes on with the next', async () => {
    const bucket = await startBucketServer()
    try {
      const post = async (address: string, body: unknown) => {
        const answer = await ask(address, { method: 'POST', body })
        if (answer.status >= 300) throw new Error(`${address}: ${JSON.stringify(answer)}`)
        return answer.body as Record<string, string>
      }
      /** A run, a destination, and an export of the day. */
      const exportDay = async (extra: Record<string, unknown>) => {
        const project = await post('/sessions', { name: 'traces' })
        const run = { id: randomUUID(), name: 'r', run_type: 'chain', session_id: project['id'], inputs: {} }
        await post('/runs', { ...run, start_time: '2026-08-19T08:00:00Z', end_time: '2026-08-19T08:00:01Z' })
        const destination = await post('/api/v1/bulk-exports/destinations', {
          display_name: 'here',
          config: { bucket_name: bucket.bucket, endpoint_url: bucket.url },
          credentials: ACCESS_KEY,
        })
        const place = {
          bulk_export_destination_id: destination['id'],
          session_id: project['id'],
          start_time: '2026-08-19T00:00:00Z',
        }
        return post('/api/v1/bulk-exports', { ...place, ...extra })
      }
      const statusOf = async (id: string | undefined) => (await ask(`/api/v1/bulk-exports/${id}`)).body?.['status']
      const day = { end_time: '2026-08-20T00:00:00Z' }
      let release = () => {}
      const released = new Promise<void>((resolve) => (release = resolve))
      let writing = false
      bucket.onRequest = async (_operation, key) => {
        if (!key.includes('export_id=')) return
        writing = true
        await released
      }
      const cut = await exportDay(day)
      await until(() => writing, 30_000)
      await platform.reset()
      bucket.onRequest = null
      release()
      expect(await statusOf(cut['id'])).toBeUndefined()
      await exportDay({ interval_hours: 24 })
      await platform.reset()
      expect((await ask('/api/v1/bulk-exports')).body).toEqual([])
      expect((await ask('/api/v1/bulk-exports/destinations')).body).toEqual([])
      const last = await exportDay(day)
      await until(async () => (await statusOf(last['id'])) === 'COMPLETED', 30_000)
      const files = (await bucket.keys()).filter((key) => key.includes('export_id='))
      expect(files).toEqual([expect.stringContaining(`export_id=${last['id']}/`)])
    } finally {
      await bucket.stop()
    }
  })

  it('leave nothing in a bucket of an export that they end', async () => {
    const bucket = await startBucketServer()
    try {
      const post = async (address: string, body: unknown) =>
        (await ask(address, { method: 'POST', body })).body as Record<string, string>
      const project = await post('/sessions', { name: 'traces' })
      const run = { id: randomUUID(), name: 'r', run_type: 'chain', session_id: project['id'], inputs: {} }
      await post('/runs', { ...run, start_time: '2026-08-19T08:00:00Z', end_time: '2026-08-19T08:00:01Z' })
      const destination = await post('/api/v1/bulk-exports/destinations', {
        display_name: 'here',
        config: { bucket_name: bucket.bucket, endpoint_url: bucket.url },
        credentials: ACCESS_KEY,
      })
      // The file is there, and whether it is whole is never told.
      bucket.fail('head', { kind: 'silence' }, 100)
      await post('/api/v1/bulk-exports', {
        bulk_export_destination_id: destination['id'],
        session_id: project['id'],
        start_time: '2026-08-19T00:00:00Z',
        end_time: '2026-08-20T00:00:00Z',
      })
      await until(() => bucket.requests.some(({ operation }) => operation === 'head'), 30_000)
      const files = async () => (await bucket.keys()).filter((key) => key.includes('export_id='))
      expect(await files()).toHaveLength(1)
      await platform.reset()
      expect(await files()).toEqual([])
    } finally {
      await bucket.stop()
    }
  })

  it('forget what the rate limits have counted', async () => {
    const query = { method: 'POST', body: NO_RUN }
    const statuses = await Promise.all(Array.from({ length: 16 }, async () => (await ask('/runs/query', query)).status))
    expect(statuses.filter((status) => status === 429)).toHaveLength(1)
    await platform.reset()
    expect((await ask('/runs/query', query)).status).toBe(200)
  })
})

describe("the action's client", () => {
  function client() {
    const effects = virtualEffects()
    const retries: RetryEvent[] = []
    const transport = createTransport({
      baseUrl: platform.url,
      headers: { 'X-Api-Key': KEY },
      redact: (text) => text,
      userAgent: 'test',
      effects,
    })
    const plane = createControlPlane({ transport, dialect: 'spec', effects, onRetry: (event) => void retries.push(event) })
    return { plane, retries, effects }
  }
  const { signal } = new AbortController()
  const deployments = async () => (await ask('/v2/deployments')).body?.['resources'] as Deployment[]

  it.each([
    ['a 502', { status: 502 }],
    ['a 429 with Retry-After', { status: 429, headers: { 'Retry-After': '3' } }],
    ['half an answer', { broken: 'truncated' }],
    ['a broken connection', { broken: 'reset' }],
  ] as const)('reads on after %s', async (_what, fault) => {
    const { plane, effects } = client()
    await platform.faults.add({ method: 'GET', path: '/v2/deployments', times: 2, ...fault })
    expect(await plane.listDeployments({ signal })).toEqual([])
    expect(effects.sleeps).toHaveLength(2)
    expect((await platform.faults.list())[0]).toMatchObject({ left: 0, struck: 2 })
  })

  it('does not take a page for an answer', async () => {
    const { plane } = client()
    await platform.faults.add({ path: '/v2/deployments', broken: 'html', times: 100 })
    await expect(plane.listDeployments({ signal })).rejects.toMatchObject({ name: 'RequestFailure', kind: 'protocol' })
  })

  it.each([
    ['a 502 that was carried out', { status: 502, handled: true }],
    ['a connection that broke after it was carried out', { broken: 'reset', handled: true }],
    ['half an answer', { broken: 'truncated' }],
    ['a connection that broke before', { broken: 'reset' }],
  ] as const)('creates one deployment, whatever happens to the answer: %s', async (_what, fault) => {
    const { plane } = client()
    await platform.faults.add({ method: 'POST', path: '/v2/deployments', ...fault })
    const { deployment } = await plane.createDeployment(image, signal)
    expect((await deployments()).map(({ id }) => id)).toEqual([deployment.id])
  })
})
