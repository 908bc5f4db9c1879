import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { RequestListener } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { startDeadline } from '../../src/client/deadline.ts'
import { realEffects } from '../../src/client/effects.ts'
import type { Transport } from '../../src/client/transport.ts'
import { startServer } from '../support/http-server.ts'
import { API_KEY, failureOf, testTransport, unaborted } from './support/fixtures.ts'
import { serve } from './support/serve.ts'

async function against(
  listener: RequestListener,
): Promise<{ transport: Transport; sockets: Set<Socket>; requests: () => number }> {
  const sockets = new Set<Socket>()
  let requests = 0
  const server = await serve((request, response) => {
    requests++
    sockets.add(request.socket)
    request.socket.once('close', () => sockets.delete(request.socket))
    listener(request, response)
  })
  return { transport: testTransport({ baseUrl: server.url }), sockets, requests: () => requests }
}

/** A server that answers every connection with these bytes, and then closes or breaks it. */
async function rawServer(bytes: string, end: 'end' | 'reset' = 'end'): Promise<Transport> {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.write(bytes, () => (end === 'end' ? socket.end() : socket.resetAndDestroy()))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return testTransport({ baseUrl: `http://127.0.0.1:${address.port}` })
}

const get = (transport: Transport, more: object = {}) =>
  transport.request({ method: 'GET', path: '/v2/x', signal: unaborted(), ...more })
const post = (transport: Transport, more: object = {}) =>
  transport.request({ method: 'POST', path: '/v2/x', body: {}, signal: unaborted(), ...more })

/** The server notices a closed connection a moment later. */
async function closed(sockets: Set<Socket>): Promise<void> {
  for (let tries = 0; sockets.size > 0 && tries < 100; tries++) await realEffects.sleep(10, unaborted())
  expect(sockets.size).toBe(0)
}

describe('answers that cannot be trusted', () => {
  const cases: [string, RequestListener, { code: string; summary: string; excerpt: string | null }][] = [
    [
      'HTML',
      (_request, response) => response.setHeader('content-type', 'text/html').end('\n<!doctype html>\u001b[31m<p>Sign in</p>'),
      { code: 'html', summary: 'answered 200 with HTML instead of JSON', excerpt: '<!doctype html> [31m<p>Sign in</p>' },
    ],
    [
      'no JSON',
      (_request, response) => response.end('{"id": tru'),
      { code: 'not-json', summary: 'answered 200 with something that is not JSON', excerpt: '{"id": tru' },
    ],
    [
      'nothing',
      (_request, response) => response.end(),
      { code: 'empty', summary: 'answered 200 with an empty body', excerpt: null },
    ],
    [
      'nothing but blanks',
      (_request, response) => response.end(' \r\n'),
      { code: 'empty', summary: 'answered 200 with an empty body', excerpt: null },
    ],
    [
      'half a body',
      (_request, response) => {
        response.setHeader('content-length', 100)
        response.write('{"id":"a","secrets":[{"name":"A","value":"half a sec')
        setTimeout(() => response.destroy(), 20)
      },
      {
        code: 'truncated',
        summary: 'answered 200 and then the connection broke after 52 bytes of the body',
        excerpt: '{"id":"a","secrets":[{"name":"A","value":"***"',
      },
    ],
    [
      'half a chunked body',
      (_request, response) => {
        response.write('{"id":')
        setTimeout(() => response.socket?.end(), 20)
      },
      { code: 'truncated', summary: 'answered 200 and then the connection broke after 6 bytes of the body', excerpt: '{"id":' },
    ],
    [
      'another shape',
      (_request, response) => response.end('{"name":"x","items":[{"id":1}],"api_key":"k-123"}'),
      {
        code: 'wrong-shape',
        summary: 'answered 200 with JSON of an unexpected shape',
        excerpt: '{"name":"x","items":[{"id":1}],"api_key":"***"}',
      },
    ],
  ]
  const schema = z.object({ id: z.string(), items: z.array(z.object({ id: z.string() })) })

  it.each(cases)('%s: a read is tried again, then fails', async (_what, listener, expected) => {
    const { transport, sockets, requests } = await against(listener)
    const failure = await failureOf(get(transport, { schema }))
    expect(failure).toMatchObject({
      kind: 'protocol',
      status: 200,
      method: 'GET',
      path: '/v2/x',
      attempts: 3,
      code: expected.code,
    })
    expect(failure.summary).toContain(expected.summary)
    expect(failure.excerpt).toBe(expected.excerpt)
    expect(requests()).toBe(3)
    await closed(sockets)
  })

  it.each(cases)('%s: a write is not tried again, and may have been carried out', async (_what, listener, expected) => {
    const { transport, requests } = await against(listener)
    expect(await failureOf(post(transport, { schema }))).toMatchObject({ attempts: 1, ambiguous: true, code: expected.code })
    expect(requests()).toBe(1)
  })

  it('names the places of a wrong shape', async () => {
    const { transport } = await against((_request, response) => response.end('{"items":[{"id":1}]}'))
    const { detail } = await failureOf(get(transport, { schema }))
    expect(detail).toMatch(/^id: .*string.*; items\.0\.id: .*string/)
    expect((await failureOf(get((await against((_q, r) => r.end('7'))).transport, { schema }))).detail).toMatch(/^body: /)
  })

  it('an empty 204 is no answer where one is needed', async () => {
    const { transport } = await against((_request, response) => response.writeHead(204).end())
    expect(await failureOf(get(transport, { schema }))).toMatchObject({ code: 'empty', status: 204 })
  })

  it('HTML is no answer where an empty body is allowed', async () => {
    const { transport } = await against((_request, response) => response.end('<html>'))
    expect(await failureOf(post(transport, { emptyAllowed: true }))).toMatchObject({ code: 'html' })
  })

  it('more than the bound is not read, and not asked for again', async () => {
    let written = 0
    const { transport, sockets, requests } = await against((_request, response) => {
      const write = () => {
        while (!response.destroyed && response.write('x'.repeat(16_384))) written += 16_384
      }
      response.on('drain', write)
      write()
    })
    const failure = await failureOf(get(transport, { maxBytes: 200_000 }))
    expect(failure).toMatchObject({
      kind: 'protocol',
      code: 'oversized',
      attempts: 1,
      summary: 'answered 200 with more than 200000 bytes',
    })
    expect(Buffer.byteLength(failure.excerpt ?? '')).toBeLessThanOrEqual(2048)
    expect(requests()).toBe(1)
    await closed(sockets)
    expect(written).toBeLessThan(20_000_000)
  })

  it('the bound is 8 MiB by default, and a body just below it is read', async () => {
    const body = (bytes: number) => `"${'x'.repeat(bytes - 2)}"`
    const max = 8 * 1024 * 1024
    const fits = await against((_request, response) => response.end(body(max)))
    expect((await get(fits.transport)).body).toHaveLength(max - 2)
    const tooLarge = await against((_request, response) => response.end(body(max + 1)))
    expect((await failureOf(get(tooLarge.transport))).code).toBe('oversized')
  })

  it('characters that come in two pieces are put together', async () => {
    const bytes = Buffer.from('{"text":"größe 🚀"}')
    const { transport } = await against((_request, response) => {
      response.write(bytes.subarray(0, 11))
      setTimeout(() => response.end(bytes.subarray(11)), 20)
    })
    expect((await get(transport)).body).toEqual({ text: 'größe 🚀' })
  })
})

describe('what is not HTTP', () => {
  it('another protocol is a protocol failure', async () => {
    const failure = await failureOf(get(await rawServer('SSH-2.0-OpenSSH_9.2\r\n\r\n')))
    expect(failure).toMatchObject({ kind: 'protocol', code: 'malformed', status: null, attempts: 3, ambiguous: true })
    expect(failure.message).toBe('GET /v2/x answered with something that is not HTTP (tried 3 times)')
  })

  it('a body in broken chunks is one that breaks off', async () => {
    const failure = await failureOf(
      get(await rawServer('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n')),
    )
    expect(failure).toMatchObject({ kind: 'protocol', code: 'truncated', status: 200, attempts: 3, ambiguous: true })
  })

  it.each(['end', 'reset'] as const)('a connection that ends without an answer (%s) is a network failure', async (end) => {
    const failure = await failureOf(post(await rawServer('', end)))
    expect(failure).toMatchObject({ kind: 'network', code: 'ECONNRESET', status: null, attempts: 1, ambiguous: true })
    expect(failure.summary).toMatch(/^lost the connection to 127\.0\.0\.1:\d+ before an answer$/)
  })
})

describe('an unreachable service', () => {
  it('is tried again, also by a write, since nothing was sent', async () => {
    const server = await startServer(() => undefined)
    await server.stop()
    const transport = testTransport({ baseUrl: server.url })
    for (const pending of [get(transport), post(transport)]) {
      const failure = await failureOf(pending)
      expect(failure).toMatchObject({
        kind: 'network',
        code: 'ECONNREFUSED',
        attempts: 5,
        ambiguous: false,
        excerpt: null,
        requestId: null,
      })
      const host = `127.0.0.1:${server.port}`
      const words = `could not reach ${host} (tried 5 times): connect ECONNREFUSED ${host}`
      expect(failure.message).toBe(`${failure.method} /v2/x ${words}`)
    }
  })

  it('is told apart when its name is not known', async () => {
    const failure = await failureOf(post(testTransport({ baseUrl: 'http://no-such-host.invalid' })))
    expect(failure).toMatchObject({ kind: 'network', attempts: 5, ambiguous: false })
    expect(failure.code).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/)
  })

  it('is told apart when it does not speak TLS', async () => {
    const { transport } = await against((_request, response) => response.end('{}'))
    const failure = await failureOf(post(testTransport({ baseUrl: transport.baseUrl.replace('http:', 'https:') })))
    expect(failure).toMatchObject({ kind: 'network', ambiguous: false })
    expect(failure.summary).toMatch(/^could not reach /)
  })

  it('is found at an IPv6 address', async () => {
    const { transport } = await against(() => undefined)
    const port = new URL(transport.baseUrl).port
    const failure = await failureOf(get(testTransport({ baseUrl: `http://[::1]:${port}` })))
    // Refused where IPv6 is there, an address that is not available where it is not: in no case a name to be looked up.
    expect(failure.detail).toMatch(/^connect E\w+ ::1:\d+/)
  })

  it('is used again when it is back', async () => {
    let answers = 0
    const server = await serve((_request, response) => {
      answers++
      response.end('{}')
    })
    await server.down()
    const effects = { ...realEffects, sleep: async () => await server.up() }
    const answer = await get(testTransport({ baseUrl: server.url, effects }))
    expect(answer.attempts).toBe(2)
    expect(answers).toBe(1)
  })
})

describe('time', () => {
  it('a silent service is left after the timeout, with the connection closed', async () => {
    const { transport, sockets } = await against(() => undefined)
    const since = Date.now()
    const failure = await failureOf(post(transport, { timeoutMs: 150 }))
    expect(Date.now() - since).toBeLessThan(5000)
    expect(failure).toMatchObject({ kind: 'network', code: 'timeout', status: null, ambiguous: true, attempts: 1 })
    expect(failure.summary).toMatch(/^got no complete answer from 127\.0\.0\.1:\d+ within 0\.15 s \(nothing came\)$/)
    await closed(sockets)
  })

  it.each([
    ['stalled', (_request, response) => void response.write('{"id":"')],
    [
      'dripping',
      (_request, response) => {
        response.write('{"id":"')
        const drip = setInterval(() => response.write('x'), 10)
        response.on('close', () => clearInterval(drip))
      },
    ],
  ] satisfies [string, RequestListener][])('a %s body is left after the timeout', async (_what, listener) => {
    const { transport, sockets } = await against(listener)
    const since = Date.now()
    const failure = await failureOf(post(transport, { timeoutMs: 200 }))
    expect(Date.now() - since).toBeLessThan(5000)
    expect(failure).toMatchObject({ kind: 'network', code: 'timeout', status: 200, ambiguous: true })
    expect(failure.summary).toMatch(/\(the status 200 and \d+ bytes came\)$/)
    expect(failure.excerpt).toMatch(/^\{"id":"/)
    await closed(sockets)
  })

  it('a refusal counts even when its body never ends, or is too long', async () => {
    const stalled = await against((_request, response) => {
      response.statusCode = 401
      response.write('{"detail":')
    })
    expect(await failureOf(get(stalled.transport, { timeoutMs: 150 }))).toMatchObject({ kind: 'http', status: 401, attempts: 1 })
    const long = await against((_request, response) => response.writeHead(403).end('x'.repeat(500_000)))
    expect(await failureOf(get(long.transport))).toMatchObject({ kind: 'http', status: 403, attempts: 1 })
    await closed(stalled.sockets)
  })

  it('reads are repeated after a timeout', async () => {
    let first = true
    const { transport } = await against((_request, response) => {
      if (!first) response.end('{}')
      first = false
    })
    expect((await get(transport, { timeoutMs: 150 })).attempts).toBe(2)
  })

  it.each([
    ['before the answer', () => undefined],
    ['within the body', (_request, response) => void response.write('{"id":"')],
  ] satisfies [string, RequestListener][])('cancelling %s closes the connection at once', async (_what, listener) => {
    const { transport, sockets, requests } = await against(listener)
    const controller = new AbortController()
    const pending = failureOf(post(transport, { signal: controller.signal }))
    while (requests() === 0) await realEffects.sleep(5, unaborted())
    await realEffects.sleep(30, unaborted())
    const since = Date.now()
    controller.abort(new Error('SIGINT'))
    const failure = await pending
    expect(Date.now() - since).toBeLessThan(1000)
    expect(failure).toMatchObject({ kind: 'cancelled', ambiguous: true, attempts: 1 })
    expect(failure.message).toBe('POST /v2/x was cancelled')
    await closed(sockets)
  })

  it('the total deadline ends a request, too', async () => {
    const { transport, sockets } = await against(() => undefined)
    const deadline = startDeadline({ timeoutMs: 150, parent: unaborted(), effects: realEffects })
    const failure = await failureOf(get(transport, { signal: deadline.signal }))
    expect(failure).toMatchObject({ kind: 'deadline', message: 'GET /v2/x ran out of time' })
    await closed(sockets)
  })

  it('nothing is sent when the signal has aborted before', async () => {
    const { transport, requests } = await against((_request, response) => response.end('{}'))
    const failure = await failureOf(post(transport, { signal: AbortSignal.abort() }))
    expect(failure).toMatchObject({ kind: 'cancelled', ambiguous: false })
    expect(requests()).toBe(0)
  })

  it('no listener stays on the signal', async () => {
    const { transport } = await against((_request, response) => response.end('{}'))
    const signal = unaborted()
    let listeners = 0
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args))
    signal.removeEventListener = (...args: Parameters<typeof remove>) => (listeners--, remove(...args))
    await get(transport, { signal })
    expect(listeners).toBe(0)
  })
})

describe('connections', () => {
  it('are closed after the answer, even when the server would keep them', async () => {
    const { transport, sockets } = await against((_request, response) => {
      response.shouldKeepAlive = true
      response.setHeader('connection', 'keep-alive')
      response.end('{}')
    })
    expect((await get(transport)).headers.connection).toBe('keep-alive')
    await closed(sockets)
  })

  it('are closed after an early answer, with the rest of the request unsent', async () => {
    let connection: Socket | undefined
    const server = createServer((socket) => {
      connection = socket
      socket.on('error', () => undefined)
      socket.once('data', () => {
        socket.pause()
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => new Promise((resolve) => void server.close(() => resolve())))
    const { port } = server.address() as AddressInfo
    const before = process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length
    const answer = await post(testTransport({ baseUrl: `http://127.0.0.1:${port}` }), { body: 'x'.repeat(20_000_000) })
    expect(answer.status).toBe(200)
    await realEffects.sleep(50, unaborted())
    connection?.destroy()
    // Our own end of the server's connection is the one that may be left.
    expect(process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length).toBeLessThanOrEqual(
      before + 1,
    )
  })

  it('carry the key to the service only', async () => {
    const seen: (string | undefined)[] = []
    const elsewhere = await against((request, response) => {
      seen.push(request.headers['x-api-key']?.toString())
      response.end('{}')
    })
    const { transport } = await against((_request, response) => {
      response.writeHead(307, { location: `${elsewhere.transport.baseUrl}` }).end()
    })
    const failure = await failureOf(post(transport))
    expect(failure).toMatchObject({ kind: 'http', status: 307, attempts: 1 })
    expect(failure.message).not.toContain(API_KEY)
    expect(seen).toEqual([])
  })
})
