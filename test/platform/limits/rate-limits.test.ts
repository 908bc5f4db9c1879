import fc from 'fast-check'
import { Hono } from 'hono'
import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RATE_LIMIT_RULES } from '../../../src/contract/rate-limits.ts'
import { createClientAddress } from '../../../src/platform/limits/client-address.ts'
import { createMemoryCounter } from '../../../src/platform/limits/counter.ts'
import { createRateLimitMetrics } from '../../../src/platform/limits/metrics.ts'
import { rateLimits } from '../../../src/platform/limits/middleware.ts'
import { createRateLimiter } from '../../../src/platform/limits/rate-limits.ts'
import { createSharedCounter, SLICES } from '../../../src/platform/limits/shared-counter.ts'
import { SILENT, startTestDatabase, type TestDatabase } from '../support/database.ts'
import { callerOf } from './support/callers.ts'

describe.each(['us', 'eu'] as const)('in the region %s', (region) => {
  test.each(RATE_LIMIT_RULES)('the row $id lets each identity have its count, and one more after the window', async (rule) => {
    let now = 1000
    const limiter = createRateLimiter({ region, counter: createMemoryCounter({ now: () => now }) })
    const { count, seconds } = rule[region]
    const callers = [1, 2, 3].map((caller) => callerOf(rule, caller))
    const admitted = callers.map(() => 0)
    const waits = new Set<string>()
    for (let turn = 0; turn < count + 2; turn += 1) {
      for (const [index, caller] of callers.entries()) {
        const verdict = await limiter(caller)
        if (verdict.admitted) admitted[index] = (admitted[index] ?? 0) + 1
        else waits.add(`${verdict.rule.id} ${verdict.headers['Retry-After']}`)
      }
    }
    expect(admitted).toEqual([count, count, count])
    expect([...waits]).toEqual([`${rule.id} ${seconds}`])
    now += seconds * 1000 - 1
    expect((await limiter(callers[0]!)).admitted).toBe(false)
    now += 1
    expect((await limiter(callers[0]!)).admitted).toBe(true)
  })
})

test('a user is counted together with the address: the same user elsewhere is another', async () => {
  const limiter = createRateLimiter({ region: 'us', counter: createMemoryCounter() })
  const request = { method: 'POST', path: '/generate', apiKey: null, userId: 'u', address: '10.0.0.1' }
  for (let turn = 0; turn < 30; turn += 1) expect((await limiter(request)).admitted).toBe(true)
  expect((await limiter(request)).admitted).toBe(false)
  expect((await limiter({ ...request, address: '10.0.0.2' })).admitted).toBe(true)
})

test('keys that nobody has get no count of their own: their requests count by the address', async () => {
  const counter = createMemoryCounter()
  const limiter = createRateLimiter({ region: 'us', counter, isKnownKey: async (key) => key === 'known' })
  const request = (key: string) => ({ method: 'POST', path: '/runs/query', apiKey: key, userId: null, address: '10.0.0.1' })
  const rules = new Set<string>()
  let admitted = 0
  for (let turn = 0; turn < 5000; turn += 1) {
    const verdict = await limiter(request(`made-up-${turn}`))
    rules.add(verdict.rule.id)
    if (verdict.admitted) admitted += 1
  }
  expect([admitted, [...rules], counter.size()]).toEqual([100, ['catch-all'], 1])
  expect((await limiter(request('known'))).rule.id).toBe('runs-query-key')
})

test('an address speaks for a hundred users a minute; what names others counts by the address', async () => {
  let now = 0
  const counter = createMemoryCounter({ now: () => now })
  const limiter = createRateLimiter({ region: 'us', counter, now: () => now })
  const request = (user: string) => ({ method: 'GET', path: '/x', apiKey: null, userId: user, address: '10.0.0.1' })
  const seen: Record<string, number> = {}
  for (let turn = 0; turn < 5000; turn += 1) {
    const { rule, admitted } = await limiter(request(`user-${turn}`))
    const name = `${rule.id} ${admitted}`
    seen[name] = (seen[name] ?? 0) + 1
  }
  expect(seen).toEqual({ 'default-user true': 100, 'catch-all true': 100, 'catch-all false': 4800 })
  expect((await limiter(request('user-7'))).rule.id).toBe('default-user')
  expect(counter.size()).toBeLessThan(110)
  now += 60_000
  expect((await limiter(request('user-4999'))).rule.id).toBe('default-user')
})

test('an IPv6 client is its network of 64 bits, however it is written', async () => {
  const limiter = createRateLimiter({ region: 'us', counter: createMemoryCounter() })
  const ask = (address: string) => limiter({ method: 'GET', path: '/x', apiKey: null, userId: null, address })
  for (let turn = 0; turn < 99; turn += 1) expect((await ask(`2001:db8:0:7::${turn.toString(16)}`)).admitted).toBe(true)
  expect((await ask('2001:DB8::7:1:2:3:4')).admitted).toBe(true)
  expect((await ask('2001:db8:0:7:ffff::')).admitted).toBe(false)
  expect((await ask('2001:db8:0:8::')).admitted).toBe(true)
})

test('windows that nobody uses any more are dropped', async () => {
  let now = 0
  const counter = createMemoryCounter({ now: () => now })
  for (let caller = 0; caller < 1000; caller += 1) await counter.take(`k${caller}`, { count: 1, seconds: 10 })
  expect(counter.size()).toBe(1000)
  now = 60_000
  await counter.take('last', { count: 1, seconds: 10 })
  expect(counter.size()).toBe(1)
})

describe('the address of a client', () => {
  test.each([
    { trusted: [], socket: '10.0.0.9', forwarded: '1.2.3.4', client: '10.0.0.9' },
    { trusted: ['10.0.0.0/8'], socket: '10.0.0.9', forwarded: '1.2.3.4', client: '1.2.3.4' },
    { trusted: ['10.0.0.0/8'], socket: '::ffff:10.0.0.9', forwarded: '6.6.6.6, 1.2.3.4, 10.1.1.1', client: '1.2.3.4' },
    { trusted: ['10.0.0.0/8'], socket: '10.0.0.9', forwarded: 'nonsense', client: '10.0.0.9' },
    { trusted: ['10.0.0.0/8'], socket: '10.0.0.9', forwarded: null, client: '10.0.0.9' },
    { trusted: ['10.0.0.0/8'], socket: '10.0.0.9', forwarded: '1.2.3.4:5678', client: '1.2.3.4' },
    { trusted: ['10.0.0.0/8'], socket: '10.0.0.9', forwarded: '[2001:DB8::7]:443', client: '2001:db8::7' },
    { trusted: ['fd00::/8'], socket: 'fd00::1', forwarded: '2001:db8::7', client: '2001:db8::7' },
  ])('with $trusted trusted, $socket and "$forwarded" it is $client', ({ trusted, socket, forwarded, client }) => {
    expect(createClientAddress(trusted)(socket, forwarded)).toBe(client)
  })

  test.each(['10.0.0.0/33', 'proxy.example.com', '10.0.0.0/x', ''])('refuses the range "%s"', (entry) => {
    expect(() => createClientAddress([entry])).toThrow(`'${entry}'`)
  })

  test('never takes an untrusted client at its word', () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.array(fc.ipV4()), (socket, hops) => {
        expect(createClientAddress(['192.0.2.1'])(socket, hops.join(', '))).toBe(socket === '192.0.2.1' ? expect.anything() : socket)
      }),
    )
  })
})

describe('over HTTP', () => {
  const appWith = () => {
    const app = new Hono()
    const limiter = createRateLimiter({ region: 'us', counter: createMemoryCounter() })
    app.use(
      rateLimits({
        limiter,
        clientAddress: createClientAddress([]),
        metrics: createRateLimitMetrics(),
        log: SILENT,
      }),
    )
    app.all('*', async (c) => c.text(await c.req.text()))
    return app
  }

  test('the request after the last is a 429 that names the rule and the wait, and its body is not read', async () => {
    const app = appWith()
    const ask = (body?: ReadableStream) =>
      app.request('/runs/query', { method: 'POST', headers: { 'X-API-KEY': 'k' }, ...(body ? { body, duplex: 'half' } : {}) } as RequestInit)
    const first = await ask()
    expect(first.status).toBe(200)
    expect(first.headers.get('RateLimit-Policy')).toBe('"runs-query-key";q=15;w=10')
    expect(first.headers.get('RateLimit')).toBe('"runs-query-key";r=14;t=10')
    for (let turn = 1; turn < 15; turn += 1) expect((await ask()).status).toBe(200)
    let pulled = 0
    const body = new ReadableStream({ pull: () => void (pulled += 1) }, { highWaterMark: 0 })
    const refused = await ask(body)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThanOrEqual(9)
    expect(refused.headers.get('RateLimit')).toMatch(/^"runs-query-key";r=0;t=\d+$/)
    expect(await refused.json()).toMatchObject({ error: 'Rate limit exceeded', rule: { id: 'runs-query-key', count: 15, seconds: 10 } })
    expect(pulled).toBe(0)
  })

  test('a key is the same one in either header and letter case; an empty one is none', async () => {
    const app = appWith()
    const ask = async (headers: Record<string, string>) =>
      (await app.request('/runs/query', { method: 'POST', headers })).headers.get('RateLimit')?.replace(/;t=.*/, '')
    expect(await ask({ 'x-API-key': 'k' })).toBe('"runs-query-key";r=14')
    expect(await ask({ authorization: 'bearer k' })).toBe('"runs-query-key";r=13')
    expect(await ask({ 'X-Api-Key': '' })).toBe('"catch-all";r=99')
    expect(await ask({ 'X-USER-ID': 'u' })).toBe('"runs-query-user";r=299')
    expect(await ask({ 'x-user-id': '' })).toBe('"catch-all";r=98')
  })

  test('the control plane is not in the table', async () => {
    const response = await appWith().request('/v2/deployments', { headers: { 'x-api-key': 'k' } })
    expect(response.headers.get('RateLimit')).toBeNull()
  })

  test('a counter that is away lets requests through, and is counted and told, not at every one', async () => {
    const app = new Hono()
    const limiter = createRateLimiter({ region: 'us', counter: { take: () => Promise.reject(new Error('away')), clear: async () => {} } })
    const lines: string[] = []
    const [metrics, log] = [createRateLimitMetrics(), pino({}, { write: (line: string) => void lines.push(line) })]
    app.use(rateLimits({ limiter, clientAddress: createClientAddress([]), metrics, log })).get('/', (c) => c.text('in'))
    for (let turn = 0; turn < 5; turn += 1) expect((await app.request('/')).status).toBe(200)
    expect(metrics.render()).toContain('rate_limit_uncounted_total 5\n')
    expect(lines).toHaveLength(1)
  })
})

describe('counted in the database', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await startTestDatabase()
  })
  afterAll(() => database.stop())

  test('three counters at once let in exactly the limit', async () => {
    const counters = [1, 2, 3].map(() => createSharedCounter(database.db))
    const asked = Array.from({ length: 60 }, (_, index) => counters[index % 3]!.take('k', { count: 15, seconds: 600 }))
    const verdicts = await Promise.all(asked)
    expect(verdicts.filter(({ admitted }) => admitted)).toHaveLength(15)
  })

  test('a window later the whole limit is there again, and no earlier than one slice after it', async () => {
    const counter = createSharedCounter(database.db)
    const limit = { count: 3, seconds: 1 }
    const began = performance.now()
    for (let turn = 0; turn < 3; turn += 1) expect((await counter.take('w', limit)).admitted).toBe(true)
    const refused = await counter.take('w', limit)
    expect(refused.admitted).toBe(false)
    await new Promise((resolve) => setTimeout(resolve, refused.retryAfterMs + 5))
    expect((await counter.take('w', limit)).admitted).toBe(true)
    const waited = performance.now() - began
    expect(waited).toBeGreaterThanOrEqual(1000)
    expect(refused.retryAfterMs).toBeLessThanOrEqual(1000 * (1 + 1 / SLICES) + 5)
  })

  test('what is over is swept', async () => {
    const counter = createSharedCounter(database.db)
    await counter.take('s', { count: 1, seconds: 0.01 })
    await new Promise((resolve) => setTimeout(resolve, 50))
    await counter.sweep()
    const { rows } = await sql`select * from rate_limit_slices where key = 's'`.execute(database.db)
    expect(rows).toEqual([])
  })
})
