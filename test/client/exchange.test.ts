import { getEventListeners } from 'node:events'
import { ClientRequest, type RequestListener } from 'node:http'
import nock from 'nock'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { realEffects } from '../../src/client/effects.ts'
import { failureOf, testTransport, unaborted } from './support/fixtures.ts'
import { HOST } from './support/mocks.ts'
import { serve } from './support/serve.ts'

const REFUSAL_MAX_BYTES = 65_536

afterEach(() => {
  vi.useRealTimers()
  nock.cleanAll()
})

async function transportTo(listener: RequestListener) {
  const server = await serve(listener)
  return testTransport({ baseUrl: server.url, policy: { attempts: 1 } })
}

const STREAM = { 'content-type': 'text/event-stream' }

describe('what is left of an exchange', () => {
  const answering = () => transportTo((_request, response) => void response.writeHead(200, STREAM).end('{}\n\n'))
  const refusing = () =>
    transportTo((_request, response) => void response.writeHead(403, { 'content-type': 'text/plain' }).end('no'))
  const asked = { method: 'POST', path: '/x', body: {} } as const

  it.each([
    ['an answer', answering],
    ['a refusal', refusing],
  ])('after %s is no listener on the signal, and no timer', async (_what, create) => {
    const transport = await create()
    const signal = unaborted()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    await Promise.allSettled([transport.request({ ...asked, signal })])
    await Promise.allSettled([transport.stream({ ...asked, signal }).next()])
    expect(getEventListeners(signal, 'abort')).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('after a stream is no listener on the signal', async () => {
    const transport = await transportTo(
      (_request, response) => void response.writeHead(200, STREAM).end('data: 1\n\ndata: 2\n\n'),
    )
    const signal = unaborted()
    const events = []
    for await (const event of transport.stream({ ...asked, signal })) events.push(event.data)
    expect(events).toEqual(['1', '2'])
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('after a sleep is no listener on the signal, and after one that was ended no timer', async () => {
    const controller = new AbortController()
    await realEffects.sleep(1, controller.signal)
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const sleep = realEffects.sleep(60_000, controller.signal)
    expect(vi.getTimerCount()).toBe(1)
    controller.abort(new Error('enough'))
    await expect(sleep).rejects.toThrow('enough')
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('the body of a refusal', () => {
  const words = (length: number) => `{"detail":"${'x'.repeat(length - 13)}"}`.padEnd(length)

  it('is read up to its bound', async () => {
    const transport = await transportTo((_request, response) => void response.writeHead(403).end(words(REFUSAL_MAX_BYTES)))
    const { detail } = await failureOf(transport.request({ method: 'GET', path: '/x', signal: unaborted() }))
    expect(detail).toMatch(/^x+…$/)
  })

  it.each([300, 403])('of status %i is left when there is more, although the server goes on', async (status) => {
    const transport = await transportTo((_request, response) => {
      response.writeHead(status)
      response.write(words(REFUSAL_MAX_BYTES + 1))
    })
    const failure = await failureOf(transport.request({ method: 'GET', path: '/x', timeoutMs: 60_000, signal: unaborted() }))
    expect(failure).toMatchObject({ kind: 'http', status, detail: null })
  })
})

describe('an error without a code', () => {
  it.each(['request', 'stream'] as const)('is a network failure with its words (%s)', async (way) => {
    nock(HOST).post('/x').replyWithError(new Error('it broke'))
    const transport = testTransport({ baseUrl: HOST })
    const options = { method: 'POST', path: '/x', body: {}, signal: unaborted() } as const
    const failure = await failureOf(way === 'request' ? transport.request(options) : transport.stream(options).next())
    expect(failure).toMatchObject({ kind: 'network', code: null, detail: 'it broke', ambiguous: true, status: null })
    expect(failure.summary).toBe('lost the connection to control-plane.test before an answer')
  })
})

describe('the limit of the http client itself', () => {
  it.each([
    ['request', 90_000, 90_001],
    ['stream', undefined, 86_400_000],
  ] as const)('strikes later than any of ours: a %s of %s ms', async (way, timeoutMs, least) => {
    const transport = await transportTo((_request, response) => void response.writeHead(200, STREAM).end('{}\n\n'))
    const limit = vi.spyOn(ClientRequest.prototype, 'setTimeout')
    const options = { method: 'POST', path: '/x', body: {}, signal: unaborted() } as const
    if (way === 'request') await transport.request({ ...options, ...(timeoutMs === undefined ? {} : { timeoutMs }) })
    else await transport.stream(options).next()
    expect(limit).toHaveBeenCalledOnce()
    expect(limit.mock.calls[0]?.[0]).toBeGreaterThanOrEqual(least)
    limit.mockRestore()
  })
})
