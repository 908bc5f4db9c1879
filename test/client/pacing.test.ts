import type { IncomingHttpHeaders } from 'node:http'
import nock from 'nock'
import { describe, expect, it } from 'vitest'
import { startDeadline } from '../../src/client/deadline.ts'
import { createPacer, type PaceEvent } from '../../src/client/pacing.ts'
import { failureOf, testTransport, unaborted } from './support/fixtures.ts'
import { allowOnlyMocks } from './support/mocks.ts'
import { virtualEffects } from './support/virtual-effects.ts'

const HOST = 'https://api.test'
const RUN = '/runs/01a1fb32-851a-740b-a3a5-bd284276ca0a'

allowOnlyMocks()

function pacing() {
  const effects = virtualEffects()
  const events: PaceEvent[] = []
  const pacer = createPacer({ effects, onPace: (event) => events.push(event) })
  const transport = () => testTransport({ baseUrl: HOST, effects, pacer })
  const ready = (method: string, path: string) => pacer.ready({ method, path, signal: unaborted() })
  return { effects, events, pacer, transport, ready }
}

describe('the budget of the table', () => {
  it('is held by all requests of the row together, whoever sends them', async () => {
    const { effects, events, ready, pacer } = pacing()
    await Promise.all(Array.from({ length: 15 }, () => ready('GET', RUN)))
    effects.advance(20_000)
    await Promise.all(Array.from({ length: 15 }, () => ready('GET', `/api/v1${RUN}`)))
    expect(effects.sleeps).toEqual([])
    expect(await ready('GET', RUN)).toBe(40_000)
    expect(events).toEqual([{ method: 'GET', path: RUN, waitMs: 40_000, limit: 'Run lookup' }])
    expect(pacer.waitedFor()).toEqual(['Run lookup'])
  })

  it('never has more than the limit in any window', async () => {
    const { effects, ready } = pacing()
    const times: number[] = []
    for (let turn = 0; turn < 80; turn += 1) {
      await ready('POST', '/runs/query')
      times.push(effects.now())
      if (turn % 10 === 9) effects.advance(1700)
    }
    for (const at of times) expect(times.filter((other) => other >= at && other < at + 10_000).length).toBeLessThanOrEqual(15)
  })

  it('is one for each row, and none for the control plane', async () => {
    const { effects, ready } = pacing()
    for (let turn = 0; turn < 15; turn += 1) await ready('POST', '/runs/query')
    for (let turn = 0; turn < 900; turn += 1) await ready('GET', '/api/v1/bulk-exports')
    for (let turn = 0; turn < 5000; turn += 1) await ready('GET', '/v2/deployments')
    expect(effects.sleeps).toEqual([])
  })
})

describe('the smaller of two limits', () => {
  it('counts where the regions differ, whichever it is', async () => {
    const { effects, ready } = pacing()
    await ready('GET', '/runs/stats')
    expect(await ready('GET', '/runs/stats')).toBe(10_000)
    for (let turn = 0; turn < 2000; turn += 1) await ready('GET', '/commits/x')
    expect(effects.sleeps).toEqual([10_000])
    expect(await ready('GET', '/commits/x')).toBe(60_000)
  })
})

describe('what the service says', () => {
  it('holds the next request back when nothing is left, on every transport', async () => {
    const { effects, transport } = pacing()
    const headers = { 'RateLimit-Policy': '"x";q=5;w=60,"day";q=9;w=86400', RateLimit: '"x";r=0;t=12, "day";r=7;t=80000' }
    nock(HOST).get('/v2/x').reply(200, {}, headers).get('/v2/y').reply(200, {})
    await transport().request({ method: 'GET', path: '/v2/x', signal: unaborted() })
    const other = transport()
    await other.request({ method: 'GET', path: '/v2/y', signal: unaborted() })
    expect(effects.sleeps).toEqual([12_000])
    expect(other.waitedForRateLimitMs()).toBe(12_000)
  })

  it.each(['"x";r=1;t=12', '"x";r=05;t=12', 'nonsense', '"x";r=0'])('holds nothing back for %s', async (value) => {
    const { effects, pacer, ready } = pacing()
    pacer.learn({ method: 'GET', path: '/v2/x', headers: { ratelimit: value } })
    await ready('GET', '/v2/x')
    expect(effects.sleeps).toEqual([])
  })

  it.each<[string, string | string[], number]>([
    ['with spaces', '"x"; r=0; t=12', 12_000],
    ['with more parameters', '"x";r=0;t=12;w=60', 12_000],
    ['of several, the longest', '"x";r=0;t=12, "y";r=0;t=40', 40_000],
    ['of several headers', ['"x";r=3;t=80', '"y";r=0;t=12'], 12_000],
    ['of more than an hour, for an hour', '"x";r=0;t=7200', 3_600_000],
  ])('holds the next request back: %s', async (_what, ratelimit, waitMs) => {
    const { pacer, ready } = pacing()
    pacer.learn({ method: 'GET', path: '/v2/x', headers: { ratelimit } as IncomingHttpHeaders })
    expect(await ready('GET', '/v2/x')).toBe(waitMs)
  })

  it.each([
    [429, ['the control plane']],
    [503, []],
  ])('is that others should wait after a %i: %j', async (status, waitedFor) => {
    const { pacer, transport } = pacing()
    nock(HOST).get('/v2/x').reply(status, {}, { 'retry-after': '40' }).get('/v2/x').reply(200, {})
    await transport().request({ method: 'GET', path: '/v2/x', signal: unaborted() })
    expect(pacer.waitedFor()).toEqual(waitedFor)
  })

  it('counts as waited for as soon as others are held back', () => {
    const { pacer } = pacing()
    expect(pacer.hold({ method: 'GET', path: RUN, waitMs: 5000 })).toBe('Run lookup')
    expect(pacer.waitedFor()).toEqual(['Run lookup'])
  })

  it('holds others back while a 429 is waited for', async () => {
    const { effects, pacer, transport, ready } = pacing()
    nock(HOST).get('/v2/x').reply(429, {}, { 'retry-after': '40' }).get('/v2/x').reply(200, {})
    const asked = transport()
    await asked.request({ method: 'GET', path: '/v2/x', signal: unaborted() })
    expect(effects.sleeps).toEqual([40_000])
    expect(asked.waitedForRateLimitMs()).toBe(40_000)
    pacer.hold({ method: 'GET', path: '/v2/x', waitMs: 5000 })
    expect(await ready('PATCH', '/v2/y')).toBe(5000)
    expect(pacer.waitedFor()).toEqual(['the control plane'])
  })
})

describe('a wait that does not fit', () => {
  it('is not begun: the failure is a rate limit, and nothing was sent', async () => {
    const { effects, pacer, transport } = pacing()
    pacer.hold({ method: 'GET', path: '/v2/x', waitMs: 90_000 })
    const deadline = startDeadline({ timeoutMs: 60_000, parent: unaborted(), effects })
    const failure = await failureOf(transport().request({ method: 'GET', path: '/v2/x', signal: deadline.signal }))
    deadline.stop()
    expect(failure).toMatchObject({ kind: 'http', status: 429, attempts: 0, ambiguous: false })
    expect(failure.message).toBe(
      'GET /v2/x would have to wait 90 s for the rate limit of the control plane, but what is left of the time is 60 s',
    )
    expect(effects.sleeps).toEqual([])
  })

  it.each([
    [5000, true],
    [59_999, true],
    [60_000, false],
  ])('is one that does not end before the deadline: %i ms of 60000 fit: %s', async (waitMs, fits) => {
    const { effects, pacer } = pacing()
    pacer.hold({ method: 'GET', path: '/v2/x', waitMs })
    const deadline = startDeadline({ timeoutMs: 60_000, parent: unaborted(), effects })
    const ready = pacer.ready({ method: 'GET', path: '/v2/x', signal: deadline.signal })
    if (fits) expect(await ready).toBe(waitMs)
    else expect(await failureOf(ready)).toMatchObject({ status: 429, attempts: 0, retryAfterMs: waitMs })
    deadline.stop()
  })

  it('ends when the step is cancelled', async () => {
    const { effects, pacer, transport } = pacing()
    pacer.hold({ method: 'GET', path: '/v2/x', waitMs: 90_000 })
    const cancelled = new AbortController()
    const sleep = effects.sleep
    effects.sleep = (ms, signal) => {
      cancelled.abort()
      return sleep(ms, signal)
    }
    expect(await failureOf(transport().request({ method: 'GET', path: '/v2/x', signal: cancelled.signal }))).toMatchObject({
      kind: 'cancelled',
      ambiguous: false,
    })
  })
})
