import { once } from 'node:events'
import { type IncomingMessage, request as startRequest } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { send } from '../support/http.ts'
import { until } from '../support/processes.ts'
import { KEY, setProxyScene, SLUG } from './support/proxy-scene.ts'

const scene = setProxyScene()
const { agent, serve, at } = scene

describe('who is let in', () => {
  test('no key, a wrong key, another workspace, an unknown slug: the agent sees none of it', async () => {
    let seen = 0
    const { target } = await agent((_, response) => {
      seen += 1
      response.end()
    })
    serve(target)
    for (const path of ['/ok', '/info', '/runs/stream']) {
      for (const headers of [{}, { 'x-api-key': 'wrong' }, { 'x-api-key': '' }]) {
        const answer = await send(at(path), { headers })
        expect([answer.status, JSON.parse(answer.body)]).toEqual([401, { detail: expect.stringContaining('X-Api-Key') }])
      }
    }
    const other = await send(at('/ok'), { headers: { 'x-api-key': 'key-b' } })
    const unknown = await send(`${scene.platform.url}/agents/nobody/ok`, { headers: KEY })
    expect([other.status, unknown.status]).toEqual([404, 404])
    expect(JSON.parse(other.body)).toEqual({ detail: `No deployment at /agents/${SLUG}.` })
    for (const path of ['/agents/', '/agents', '/agents/UPPER/ok', '/agents/%2e%2e/ok', '/agents/a..b/ok']) {
      expect((await send(scene.platform.url + path, { headers: KEY })).status).toBe(404)
    }
    expect(seen).toBe(0)
    expect((await send(at('/ok'), { headers: { 'x-api-key': 'broken' } })).status).toBe(503)
  })

  test('a deployment that nothing serves yet, or any more, is a 503 that says when to ask again', async () => {
    scene.routes.announce(SLUG, 'workspace-a')
    const answer = await send(at('/ok'), { headers: KEY })
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '2'])
    const { target } = await agent((_, response) => void response.end('up'))
    serve(target)
    expect((await send(at('/ok'), { headers: KEY })).body).toBe('up')
    scene.routes.suspend(SLUG)
    expect((await send(at('/ok'), { headers: KEY })).status).toBe(503)
    scene.routes.remove(SLUG)
    expect((await send(at('/ok'), { headers: KEY })).status).toBe(404)
  })
})

describe('what goes through', () => {
  test('path, query, body and headers as they are; the connection’s headers and the key not', async () => {
    const { target } = await agent((request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }))
      })
    })
    serve(target)
    const answer = await send(at('/threads/%C3%A9//x?a=1&a=2'), {
      method: 'PATCH',
      headers: {
        ...KEY,
        'content-type': 'application/json',
        connection: 'close, x-private',
        'x-private': 'hop',
        'keep-alive': 'timeout=5',
        te: 'trailers',
        'x-forwarded-for': '10.0.0.1',
        'x-custom': 'kept',
        'accept-encoding': 'gzip',
        authorization: 'Bearer of-the-agent',
      },
      body: '{"a":1}',
    })
    const seen = JSON.parse(answer.body) as { method: string; url: string; headers: Record<string, string>; body: string }
    expect(seen).toMatchObject({ method: 'PATCH', url: '/threads/%C3%A9//x?a=1&a=2', body: '{"a":1}' })
    expect(seen.headers).toMatchObject({
      host: `127.0.0.1:${target.port}`,
      'x-custom': 'kept',
      'accept-encoding': 'gzip',
      authorization: 'Bearer of-the-agent',
      'x-forwarded-for': '10.0.0.1, 127.0.0.1',
      'x-forwarded-host': new URL(scene.platform.url).host,
      'x-forwarded-proto': 'http',
      'x-forwarded-prefix': `/agents/${SLUG}`,
    })
    for (const name of ['x-api-key', 'x-private', 'keep-alive', 'te']) expect(seen.headers).not.toHaveProperty(name)
  })

  test('an Authorization header that carried the platform’s key is taken off', async () => {
    const { target } = await agent((request, response) => void response.end(String(request.headers.authorization)))
    serve(target)
    expect((await send(at('/x'), { headers: { authorization: 'Bearer key-a' } })).body).toBe('undefined')
    expect((await send(at('/x'), { headers: { ...KEY, authorization: 'Bearer key-a' } })).body).toBe('undefined')
  })

  test('the slug alone is the agent’s root', async () => {
    const { target } = await agent((request, response) => void response.end(request.url))
    serve(target)
    expect((await send(at(''), { headers: KEY })).body).toBe('/')
    expect((await send(at('?a=1'), { headers: KEY })).body).toBe('/?a=1')
  })

  test('statuses, repeated headers, empty answers, HEAD', async () => {
    const { target } = await agent((request, response) => {
      if (request.method === 'HEAD') return void response.writeHead(200, { 'content-length': '10' }).end()
      response.writeHead(
        204,
        'Nothing Here',
        [
          ['set-cookie', 'a=1; Path=/; HttpOnly'],
          ['set-cookie', 'b=2'],
          ['x-multi', '1'],
        ].flat(),
      )
      response.end()
    })
    serve(target)
    const empty = await send(at('/x'), { method: 'DELETE', headers: KEY })
    expect(empty.status).toBe(204)
    expect(empty.headers['set-cookie']).toEqual([`a=1; Path=/agents/${SLUG}; HttpOnly`, 'b=2'])
    const head = await send(at('/x'), { method: 'HEAD', headers: KEY })
    expect([head.status, head.headers['content-length']]).toEqual([200, '10'])
  })

  test('redirects stay under the deployment; Content-Location is the SDK’s and stays', async () => {
    const { target } = await agent((request, response) => {
      const path = new URL(request.url ?? '', 'http://x')
      response.writeHead(Number(path.searchParams.get('status')), {
        location: path.searchParams.get('to') ?? '',
        'content-location': '/runs/1',
      })
      response.end()
    })
    serve(target)
    const locationOf = async (status: number, to: string) =>
      (await send(at(`/x?status=${status}&to=${encodeURIComponent(to)}`), { headers: KEY })).headers
    expect((await locationOf(302, '/docs')).location).toBe(`/agents/${SLUG}/docs`)
    expect((await locationOf(307, `http://127.0.0.1:${target.port}/docs?a=1`)).location).toBe(`/agents/${SLUG}/docs?a=1`)
    expect((await locationOf(302, `/agents/${SLUG}/docs`)).location).toBe(`/agents/${SLUG}/docs`)
    expect((await locationOf(302, 'docs')).location).toBe('docs')
    expect((await locationOf(302, '//elsewhere/docs')).location).toBe('//elsewhere/docs')
    expect((await locationOf(302, 'https://example.com/')).location).toBe('https://example.com/')
    expect(await locationOf(200, '/threads/1/stream')).toMatchObject({
      location: '/threads/1/stream',
      'content-location': '/runs/1',
    })
  })

  test('a large body both ways, unharmed', async () => {
    const { target } = await agent((request, response) => void request.pipe(response))
    serve(target)
    const body = 'x'.repeat(5_000_000)
    const answer = await send(at('/x'), { method: 'POST', headers: KEY, body })
    expect(answer.body.length).toBe(body.length)
    const chunked = await send(at('/x'), { method: 'POST', headers: { ...KEY, 'transfer-encoding': 'chunked' }, body: 'chunks' })
    expect(chunked.body).toBe('chunks')
  })

  test('an event at once: the first arrives before the last is made', async () => {
    let finish: () => void = () => undefined
    const { target } = await agent((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('event: first\n\n')
      finish = () => response.end('event: last\n\n')
    })
    serve(target)
    const request = startRequest(at('/runs/stream'), { headers: KEY })
    request.end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const [first] = (await once(response, 'data')) as [Buffer]
    expect(first.toString()).toBe('event: first\n\n')
    finish()
    const [last] = (await once(response, 'data')) as [Buffer]
    expect(last.toString()).toBe('event: last\n\n')
  })

  test('the headers of a stream arrive before its first event', async () => {
    const { target } = await agent(
      (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
    )
    serve(target)
    const request = startRequest(at('/runs/stream'), { headers: KEY })
    request.end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    expect(response.headers['content-type']).toBe('text/event-stream')
    request.destroy()
  })
})

describe('when somebody leaves', () => {
  test('the client: the agent’s request ends', async () => {
    let gone = false
    const { target } = await agent((_, response) => {
      response.on('close', () => (gone = !response.writableFinished))
      response.writeHead(200).write('x')
    })
    serve(target)
    const request = startRequest(at('/runs/stream'), { headers: KEY })
    request.on('error', () => undefined)
    request.end()
    await once(request, 'response')
    expect(scene.routes.inFlight(target)).toBe(1)
    request.destroy()
    await until(() => gone && scene.routes.inFlight(target) === 0)
  })

  test('the client, in the middle of its own body', async () => {
    let aborted = false
    const { target } = await agent((request) => void request.on('error', () => (aborted = true)).resume())
    serve(target)
    const request = startRequest(at('/runs'), { method: 'POST', headers: { ...KEY, 'content-length': '1000' } })
    request.on('error', () => undefined)
    request.write('half')
    await until(() => scene.routes.inFlight(target) === 1)
    await new Promise((resolve) => setTimeout(resolve, 50))
    request.destroy()
    await until(() => aborted)
    expect(scene.routes.inFlight(target)).toBe(0)
  })

  test.each([
    ['with a length', { 'content-length': '100' }],
    ['without one', { 'content-type': 'text/event-stream' }],
  ])('the agent, in the middle of an answer %s: never a clean end', async (_, headers) => {
    const { target } = await agent((request, response) => {
      response.writeHead(200, headers)
      response.write('half')
      setTimeout(() => request.socket.destroy(), 30)
    })
    serve(target)
    const answer = await send(at('/x'), { headers: KEY })
    expect(answer).toMatchObject({ status: 200, body: 'half', complete: false })
    await until(() => scene.routes.inFlight(target) === 0)
  })

  test('the agent, before it answers: 502 for what may not be repeated, and it is not repeated', async () => {
    let seen = 0
    const { target } = await agent((request) => {
      seen += 1
      request.socket.destroy()
    })
    serve(target)
    const answer = await send(at('/runs'), { method: 'POST', headers: KEY, body: '{}' })
    expect([answer.status, JSON.parse(answer.body)]).toEqual([502, { detail: expect.stringContaining('closed the connection') }])
    expect(seen).toBe(1)
    expect(scene.faults).toHaveLength(1)
  })

  test('an agent that is gone is a 503', async () => {
    const dead = await agent(() => undefined)
    await dead.close()
    serve(dead.target)
    const refused = await send(at('/runs'), { method: 'POST', headers: KEY, body: '{}' })
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '2'])
    // It was asked twice: a new target may have come meanwhile.
    expect(scene.faults).toHaveLength(2)
  })

  test('what a dead target did not take goes to the one that serves now, body and all', async () => {
    const dead = await agent(() => undefined)
    await dead.close()
    const next = await agent((request, response) => void request.pipe(response), 'r2')
    serve(dead.target)
    scene.onFault(() => serve(next.target))
    const answer = await send(at('/runs'), { method: 'POST', headers: KEY, body: 'whole' })
    expect(answer).toMatchObject({ status: 200, body: 'whole' })
    expect([scene.routes.inFlight(dead.target), scene.faults.length]).toEqual([0, 1])
  })

  test('a request that changes nothing is repeated after a reset', async () => {
    const dying = await agent((request) => void request.socket.destroy())
    const next = await agent((_, response) => void response.end('alive'), 'r2')
    serve(dying.target)
    scene.onFault(() => serve(next.target))
    expect((await send(at('/info'), { headers: KEY })).body).toBe('alive')
  })

  test('a kept connection that the agent closes costs no request', async () => {
    const { target, server } = await agent((_, response) => void response.end('ok'))
    server.keepAliveTimeout = 1
    serve(target)
    for (let index = 0; index < 200; index += 1) {
      expect((await send(at('/ok'), { headers: KEY })).status).toBe(200)
      if (index % 3 === 0) server.closeIdleConnections()
    }
  })
})

test('an agent that speaks no HTTP is a 502', async () => {
  const server = createTcpServer((socket) => void socket.on('error', () => undefined).end('this is not http\r\n\r\n'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  serve({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, revisionId: 'r' })
  expect((await send(at('/x'), { headers: KEY })).status).toBe(502)
  server.close()
})
