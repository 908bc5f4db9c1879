import type { ServerResponse } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAgentServer } from '../../src/client/agent-server.ts'
import { startDeadline } from '../../src/client/deadline.ts'
import { realEffects } from '../../src/client/effects.ts'
import { startServer } from '../support/http-server.ts'
import { agent, agentAt, EVENTS, METADATA, outcome, streaming, UPDATE } from './support/agent.ts'
import { testTransport, unaborted } from './support/fixtures.ts'
import { serve } from './support/serve.ts'

describe('a stream that breaks', () => {
  it.each([
    ['after whole events', METADATA + UPDATE, EVENTS],
    ['in the middle of an event', `${METADATA}event: updates\ndata: {"ec`, EVENTS.slice(0, 1)],
    ['before the first event', '', []],
  ])('%s is truncated, when its connection breaks', async (_, text, events) => {
    const server = await streaming((response) => {
      response.write(text === '' ? ': hello\n' : text)
      setTimeout(() => response.destroy(), 30)
    })
    const result = await outcome(server)
    expect(result.events).toEqual(events)
    expect(result.failure).toMatchObject({
      kind: 'protocol',
      code: 'truncated',
      status: 200,
      method: 'POST',
      path: '/runs/stream',
      ambiguous: true,
    })
    expect(result.failure?.message).toMatch(
      /^POST \/runs\/stream answered 200 and then the connection broke after \d+ bytes of the body$/,
    )
  })

  it.each(['event: upd', 'event: updates\ndata: {}', 'data: 1\n', 'data: 1\r', 'data: "\xc3'])(
    'is truncated when it ends with %j',
    async (rest) => {
      const server = await streaming((response) => response.end(Buffer.from(METADATA + rest, 'latin1')))
      const { events, failure } = await outcome(server)
      expect(events).toEqual(EVENTS.slice(0, 1))
      expect(failure).toMatchObject({
        kind: 'protocol',
        code: 'truncated',
        summary: 'answered 200 and the stream ended in the middle of an event',
      })
    },
  )

  it('is truncated when an answer of a known length is cut short', async () => {
    const server = await agent((request, response) => {
      request.resume()
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-length': 10_000 })
      response.write(METADATA, () => response.socket?.end())
    })
    expect((await outcome(server)).failure).toMatchObject({ code: 'truncated' })
  })

  it('is malformed when what answers does not speak HTTP', async () => {
    const raw = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end('data: 1\n\n'))
    })
    await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => new Promise((resolve) => void raw.close(() => resolve())))
    const { failure } = await outcome(agentAt(`http://127.0.0.1:${(raw.address() as AddressInfo).port}`))
    expect(failure).toMatchObject({ kind: 'protocol', code: 'malformed', status: null })
  })

  it('is a network failure when nothing listens, and surely nothing was sent', async () => {
    const server = await startServer(() => undefined)
    await server.stop()
    const { failure } = await outcome(agentAt(server.url))
    expect(failure).toMatchObject({ kind: 'network', code: 'ECONNREFUSED', status: null, ambiguous: false })
  })

  it('is a network failure when the connection breaks before an answer', async () => {
    const server = await agent((request) => void request.socket.resetAndDestroy())
    expect((await outcome(server)).failure).toMatchObject({ kind: 'network', code: 'ECONNRESET', status: null, ambiguous: true })
  })

  it('is ended by a giant event', async () => {
    const server = createAgentServer(testTransport({ baseUrl: (await giant()).url }))
    const start = process.memoryUsage().rss
    const { failure, events } = await outcome(server)
    expect(events).toEqual([])
    expect(failure).toMatchObject({ kind: 'protocol', code: 'oversized' })
    expect(failure?.summary).toContain('with an event of more than 8388608 characters')
    expect(process.memoryUsage().rss - start).toBeLessThan(150_000_000)
  })

  it('is ended by too many bytes in all', async () => {
    const server = await giant('\n\n')
    const { failure } = await outcome(createAgentServer(testTransport({ baseUrl: server.url })))
    expect(failure).toMatchObject({ kind: 'protocol', code: 'oversized' })
    expect(failure?.summary).toContain('with more than 67108864 bytes')
  })

  async function giant(end = '') {
    return await serve((request, response) => {
      request.resume()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const more = () => {
        while (!response.destroyed && response.write(`data: ${'x'.repeat(60_000)}${end}`.slice(end === '' ? 6 : 0))) continue
        response.once('drain', more)
      }
      response.write('data: ')
      more()
    })
  }
})

describe('a stream that stalls', () => {
  it.each([
    ['before its headers', () => undefined],
    [
      'before its first event',
      (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
    ],
    [
      'after an event',
      (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' }).write(METADATA),
    ],
  ])('%s ends at the deadline', async (_, answer) => {
    const gone = Promise.withResolvers<void>()
    const server = await agent((request, response) => {
      request.resume()
      request.socket.once('close', () => gone.resolve())
      answer(response)
    })
    const deadline = startDeadline({ timeoutMs: 200, parent: unaborted(), effects: realEffects })
    const start = performance.now()
    const { failure } = await outcome(server, deadline.signal)
    expect(performance.now() - start).toBeLessThan(1500)
    expect(failure).toMatchObject({ kind: 'deadline', summary: 'ran out of time' })
    await gone.promise
  })

  it('ends when it is cancelled, also before it begins', async () => {
    const server = await streaming((response) => response.write(METADATA))
    const controller = new AbortController()
    const { failure, events } = await outcome(server, controller.signal, () => controller.abort())
    expect(events).toEqual(EVENTS.slice(0, 1))
    expect(failure).toMatchObject({ kind: 'cancelled', summary: 'was cancelled' })
    expect((await outcome(server, controller.signal)).failure).toMatchObject({ kind: 'cancelled', ambiguous: false })
  })
})
