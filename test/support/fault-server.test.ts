import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { faults, startFaultServer, type FaultServer } from './fault-server.ts'

const LIMITED = '{"detail":"Too Many Requests"}'
const BODY = JSON.stringify({ hello: 'x'.repeat(100) })
let upstream: Server
let carriedOut: string[] = []
let proxy: FaultServer

beforeAll(async () => {
  upstream = createServer((incoming, response) => {
    carriedOut.push(`${incoming.method} ${incoming.url} ${incoming.headers['x-api-key']}`)
    response.writeHead(201, { 'content-type': 'application/json', 'x-upstream': '1' })
    response.end(BODY)
  })
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', () => resolve()))
})
afterAll(() => upstream.close())
beforeEach(async () => {
  carriedOut = []
  proxy = await startFaultServer(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}/prefix`)
})
afterEach(() => proxy.stop())

type Answer = { status: number; headers: Record<string, unknown>; body: string; ended: 'complete' | 'broken' | 'silent' }

/** One request; `silent` when nothing came for 300 ms. Rejects when there was no answer at all. */
function call(method = 'GET', path = '/v2/deployments?limit=1'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${proxy.url}${path}`, { method, headers: { 'x-api-key': 'k' }, agent: false }, (response) => {
      let body = ''
      let ended: Answer['ended'] = 'broken'
      const quiet = setTimeout(() => {
        ended = 'silent'
        response.destroy()
      }, 300)
      response.on('data', (chunk: Buffer) => (body += chunk.toString()))
      response.on('end', () => (ended = response.complete ? 'complete' : 'broken'))
      response.on('error', () => undefined)
      response.on('close', () => {
        clearTimeout(quiet)
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body, ended })
      })
    })
    outgoing.on('error', reject)
    outgoing.setTimeout(500, () => outgoing.destroy(new Error('no answer')))
    outgoing.end(method === 'GET' ? undefined : '{"a":1}')
  })
}

describe('passing on', () => {
  it('is transparent without a fault', async () => {
    expect(await call('POST')).toMatchObject({ status: 201, body: BODY, ended: 'complete', headers: { 'x-upstream': '1' } })
    expect(carriedOut).toEqual(['POST /prefix/v2/deployments?limit=1 k'])
    expect(proxy.requests).toMatchObject([{ method: 'POST', path: '/v2/deployments?limit=1', fault: null }])
  })

  it('strikes the requests that match, as often as asked, in order', async () => {
    proxy.on({ method: 'PATCH' }, faults.status(500))
    proxy.on({ path: /deployments/, times: 2 }, faults.status(503))
    proxy.on({}, faults.status(504))
    const statuses = [await call(), await call('PATCH'), await call(), await call(), await call()]
    expect(statuses.map(({ status }) => status)).toEqual([503, 500, 503, 504, 201])
    expect(proxy.struck()).toBe(4)
  })
})

describe('answers of its own', () => {
  it.each([
    ['a rate limit without a time', faults.rateLimited(), 429, LIMITED, undefined],
    ['a rate limit with seconds', faults.rateLimited(2), 429, LIMITED, '2'],
    ['a rate limit with a date', faults.rateLimited(new Date(0)), 429, LIMITED, 'Thu, 01 Jan 1970 00:00:00 GMT'],
    ['nothing', faults.empty(), 200, '', undefined],
    ['another shape', faults.json([1]), 200, '[1]', undefined],
  ])('%s', async (_, fault, status, body, retryAfter) => {
    proxy.on({}, fault)
    const answer = await call('POST')
    expect(answer).toMatchObject({ status, body, ended: 'complete' })
    expect(answer.headers['retry-after']).toBe(retryAfter)
    expect(carriedOut).toEqual([])
  })

  it('HTML, a redirect, and a body beyond all bounds', async () => {
    proxy.on({}, faults.html())
    proxy.on({}, faults.redirect('http://elsewhere.test/'))
    proxy.on({}, faults.oversized(1_000_000))
    expect(await call()).toMatchObject({ status: 200, headers: { 'content-type': 'text/html' } })
    expect(await call()).toMatchObject({ status: 307, headers: { location: 'http://elsewhere.test/' } })
    expect((await call()).body.length).toBeGreaterThan(1_000_000)
  })
})

describe('broken answers', () => {
  it('cuts the body off', async () => {
    proxy.on({}, { kind: 'truncate', bytes: 10 })
    expect(await call()).toMatchObject({ status: 201, body: BODY.slice(0, 10), ended: 'broken' })
  })

  it('stops in the middle of the body, and before the first byte', async () => {
    proxy.on({}, { kind: 'stall', bytes: 10 })
    expect(await call()).toMatchObject({ body: BODY.slice(0, 10), ended: 'silent' })
    proxy.on({}, { kind: 'silence' })
    await expect(call()).rejects.toThrow('no answer')
    expect(carriedOut).toHaveLength(1)
  })

  it('delays', async () => {
    proxy.on({}, { kind: 'delay', ms: 150 })
    const started = performance.now()
    expect(await call()).toMatchObject({ status: 201, ended: 'complete' })
    expect(performance.now() - started).toBeGreaterThan(145)
  })

  it('replaces the body of an answer that was carried out', async () => {
    proxy.on({}, { kind: 'body', body: { other: 1 } })
    expect(await call('POST')).toMatchObject({ status: 201, body: '{"other":1}' })
    expect(carriedOut).toHaveLength(1)
  })

  it('resets before the request is carried out, or after', async () => {
    proxy.on({}, { kind: 'reset', when: 'before' })
    await expect(call('POST')).rejects.toThrow(/ECONNRESET|socket hang up/)
    expect(carriedOut).toHaveLength(0)
    proxy.on({}, { kind: 'reset', when: 'after' })
    await expect(call('POST')).rejects.toThrow(/ECONNRESET|socket hang up/)
    expect(carriedOut).toHaveLength(1)
  })
})

it('goes down and comes back at the same port', async () => {
  await proxy.down()
  await expect(call()).rejects.toThrow('ECONNREFUSED')
  await proxy.up()
  expect((await call()).status).toBe(201)
})
