import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { Agent, request as startRequest } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RATE_LIMIT_RULES, type RateLimitRule } from '../../../src/contract/rate-limits.ts'
import { connectDatabase } from '../../../src/platform/database/connect.ts'
import type { Database } from '../../../src/platform/database/schema.ts'
import { createWorkspace, SILENT, startTestDatabase, type TestDatabase } from '../support/database.ts'
import { startApiProcess, type ApiProcess } from './support/api-process.ts'
import { callerOf } from './support/callers.ts'
import { flood, type FloodRequest } from './support/flood.ts'

// Rows of more than 2000 requests are driven to their limit in rate-limits.test.ts, without the connections.
const LARGEST = 2000
/** The column with the smaller numbers. `runs-stats` has them in the other one. */
const REGION = 'eu'
const KEYS = 3
/** Beyond the limit, by each identity. */
const MORE = 7

let root: string
beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'rate-limits-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

/** One request of each of three identities that the row counts. Addresses are the row's own. */
function requestsOf(rule: RateLimitRule, keys: readonly string[]): FloodRequest[] {
  const row = RATE_LIMIT_RULES.indexOf(rule)
  return keys.map((key, index) => {
    const { method, path: route, apiKey, userId } = callerOf(rule, index)
    const headers = { 'X-Forwarded-For': `6.6.6.6, 10.9.${row}.${index}` }
    return {
      method,
      path: route,
      headers: { ...headers, ...(apiKey === null ? {} : { 'x-api-key': key }), ...(userId === null ? {} : { 'X-User-Id': userId }) },
    }
  })
}

interface Drive {
  readonly rule: RateLimitRule
  readonly ports: readonly number[]
  readonly keys: readonly string[]
  readonly count: number
}

/** Every identity at once, each beyond the limit: a line for each. */
async function drive({ rule, ports, keys, count }: Drive): Promise<{ lines: string[]; retryAfter: number }> {
  const results = await Promise.all(requestsOf(rule, keys).map((request) => flood({ ports, request, count: count + MORE })))
  const lines = results.map(({ admitted, refused, rules }) => `${admitted} in, ${refused} refused by ${rules.join()}`)
  return { lines, retryAfter: Math.max(...results.map(({ retryAfter }) => retryAfter)) }
}

/** What `drive` gives when all is exact. */
function exactly(rule: RateLimitRule, count: number): string[] {
  return Array.from({ length: KEYS }, () => `${count} in, ${MORE} refused by ${rule.id}`)
}

async function makeKeys(db: Database): Promise<string[]> {
  const workspaces = await Promise.all(Array.from({ length: KEYS }, () => createWorkspace(db)))
  return workspaces.map(({ key }) => key)
}

describe('one process that counts in memory', () => {
  let platform: ApiProcess
  let keys: string[]
  beforeAll(async () => {
    const dataDirectory = path.join(root, 'one')
    platform = await startApiProcess({ dataDirectory, args: ['--region', REGION] })
    const port = (await readFile(path.join(dataDirectory, 'database', 'postmaster.pid'), 'utf8')).split('\n')[3]
    const password = (await readFile(path.join(dataDirectory, 'database.password'), 'utf8')).trim()
    const db = await connectDatabase({ url: `postgres://platform:${password}@127.0.0.1:${port}/postgres`, log: SILENT })
    keys = await makeKeys(db)
    await db.destroy()
  }, 60_000)
  afterAll(() => platform.stop())

  const driven = RATE_LIMIT_RULES.filter((rule) => rule[REGION].count <= LARGEST)
  test.each(driven)('lets exactly the limit in by the row $id', async (rule) => {
    const { count } = rule[REGION]
    expect((await drive({ rule, ports: [platform.port], keys, count })).lines).toEqual(exactly(rule, count))
  }, 30_000)

  test('answers a refused upload before it has read it, and leaves the connection in order', async () => {
    const [key = ''] = keys
    const rule = RATE_LIMIT_RULES.find(({ id }) => id === 'runs-query-key') as RateLimitRule
    // Used up by the test of its row, or here.
    const request = { method: 'POST', path: '/runs/query', headers: { 'x-api-key': key } }
    await flood({ ports: [platform.port], request, count: rule.eu.count + 1 })
    const { status, sent } = await upload(platform.port, key, 256 * 1024 * 1024)
    expect(status).toBe(429)
    expect(sent).toBeLessThan(100 * 1024 * 1024)
    expect(await upload(platform.port, key, 1_000_000)).toEqual({ status: 429, sent: 1_000_000 })
  }, 30_000)

  const spellings = ['/runs/%71uery', '/runs/query/', '/runs/x/../query', '/%72uns/./query', '/runs/query?a=/../b', '/api/v1/runs/query']
  test.each([...spellings, 'http://x/runs/query'])(
    'reads the path %s as it routes it',
    async (spelling) => {
      const headers = { 'x-api-key': keys[1] ?? '' }
      await flood({ ports: [platform.port], request: { method: 'POST', path: '/runs/query', headers }, count: 16 })
      const { refused, rules } = await flood({ ports: [platform.port], request: { method: 'POST', path: spelling, headers }, count: 1 })
      expect([refused, rules]).toEqual([1, ['runs-query-key']])
    },
  )

  test('a flood with made-up keys is one address', async () => {
    const address = { 'X-Forwarded-For': '10.8.0.1' }
    const floods = Array.from({ length: 150 }, (_, index) => {
      const request = { method: 'GET', path: '/x', headers: { ...address, 'X-Api-Key': `made-up-${index}` } }
      return flood({ ports: [platform.port], request, count: 1, connections: 1 })
    })
    const results = await Promise.all(floods)
    expect(results.reduce((sum, { admitted }) => sum + admitted, 0)).toBe(100)
    const metrics = await (await fetch(`http://127.0.0.1:${platform.port}/metrics`)).text()
    expect(metrics).toContain('deploy_agent_server_rate_limit_refused_total{rule="catch-all"} ')
  })
})

/** Sends zeroes until they are all sent or the connection ends; what was answered, and how many bytes had been handed over. */
function upload(port: number, key: string, length: number): Promise<{ status: number | undefined; sent: number }> {
  const chunk = Buffer.alloc(100_000)
  return new Promise((resolve, reject) => {
    let sent = 0
    let status: number | undefined
    const agent = new Agent({ keepAlive: true })
    const headers = { 'x-api-key': key, 'content-length': length, 'content-type': 'application/json' }
    const request = startRequest({ port, host: '127.0.0.1', method: 'POST', path: '/runs/query', headers, agent }, (response) => {
      status = response.statusCode
      response.resume().on('end', () => {
        if (sent === length) agent.destroy()
      })
    })
    const write = () => {
      while (sent < length && !request.destroyed) {
        const part = chunk.subarray(0, Math.min(chunk.length, length - sent))
        sent += part.length
        if (!request.write(part)) return
      }
      request.end()
    }
    request.on('drain', write)
    request.on('close', () => {
      agent.destroy()
      resolve({ status, sent })
    })
    request.on('error', (error) => {
      if (status === undefined) reject(error)
    })
    write()
  })
}

describe('three processes of the role api on one database', () => {
  let database: TestDatabase
  let processes: ApiProcess[] = []
  let keys: string[]
  const start = async (name: string, region: string) => {
    const dataDirectory = path.join(root, name)
    return await startApiProcess({ dataDirectory, args: ['--role', 'api', '--database-url', database.url, '--region', region] })
  }
  beforeAll(async () => {
    database = await startTestDatabase()
    keys = await makeKeys(database.db)
    const first = await start('a', 'us')
    for (const name of ['b', 'c']) {
      await mkdir(path.join(root, name))
      await copyFile(path.join(first.dataDirectory, 'secret.key'), path.join(root, name, 'secret.key'))
    }
    processes = [first, ...(await Promise.all(['b', 'c'].map((name) => start(name, 'us'))))]
  }, 90_000)
  afterAll(async () => {
    await Promise.all(processes.map(({ stop }) => stop()))
    await database.stop()
  })

  const ruleOf = (id: string) => RATE_LIMIT_RULES.find((rule) => rule.id === id) as RateLimitRule
  const ports = () => processes.map(({ port }) => port)

  const few = ['runs-query-key', 'runs-query-user', 'deletion-key', 'runs-stats', 'catch-all', 'run-lookup', 'generate-user']
  test.each([...few, 'default-key'])('together let exactly the limit in by the row %s', async (id) => {
    const rule = ruleOf(id)
    const { count } = rule.us
    expect((await drive({ rule, ports: ports(), keys, count })).lines).toEqual(exactly(rule, count))
  }, 30_000)

  test('let the whole limit in again after the wait that they name, one slice late at most', async () => {
    const rule = ruleOf('runs-stats')
    const fresh = await makeKeys(database.db)
    const first = await drive({ rule, ports: ports(), keys: fresh, count: 1 })
    expect(first.lines).toEqual(exactly(rule, 1))
    expect(first.retryAfter).toBeLessThanOrEqual(11)
    await new Promise((resolve) => setTimeout(resolve, first.retryAfter * 1000))
    expect((await drive({ rule, ports: ports(), keys: fresh, count: 1 })).lines).toEqual(exactly(rule, 1))
  }, 30_000)

  test('remember the counts when one of them starts anew', async () => {
    const rule = ruleOf('deletion-key')
    const fresh = await makeKeys(database.db)
    const { count } = rule.us
    expect((await drive({ rule, ports: ports(), keys: fresh, count })).lines).toEqual(exactly(rule, count))
    await processes[2]?.stop()
    processes[2] = await start('c', 'us')
    const request = requestsOf(rule, fresh)[0] as FloodRequest
    expect(await flood({ ports: [processes[2].port], request, count: 5 })).toMatchObject({ admitted: 0, refused: 5 })
  }, 60_000)
})
