import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../../src/platform/http/app.ts'
import { BODY_MAX, readBody } from '../../../src/platform/http/body.ts'
import { HttpProblem } from '../../../src/platform/http/problem.ts'
import { defineRoute } from '../../../src/platform/http/route.ts'
import { type HttpServer, startHttpServer } from '../../../src/platform/http/server.ts'
import { SILENT } from '../support/database.ts'

let handle: (body: unknown) => Promise<{ status: number; body?: unknown }>

const routes = [
  defineRoute(
    { method: 'get', path: '/v2/things/{thing_id}', operationId: 'read', summary: '', params: z.object({ thing_id: z.string() }), answers: {} },
    async ({ params }) => handle(params),
  ),
  defineRoute(
    { method: 'post', path: '/v2/things/{thing_id}', operationId: 'change', summary: '', body: z.looseObject({}), answers: {} },
    async ({ body }) => handle(body),
  ),
]

const app = createApp({
  routes,
  authenticate: async () => ({ workspaceId: 'w', plan: 'plus', scope: 'full' as const }),
  dialect: 'spec',
  ready: async () => ready,
  openapi: () => ({ openapi: '3.1.0' }),
  log: SILENT,
})
let ready = true

const ask = async (path: string, init: RequestInit = {}) => {
  handle ??= async (body) => ({ status: 200, body: { body } })
  const response = await app.request(path, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
}
const post = (body: string, headers: Record<string, string> = {}) => ask('/v2/things/1', { method: 'POST', body, headers })

afterEach(() => {
  handle = async (body) => ({ status: 200, body: { body } })
})

describe('every answer', () => {
  it('is JSON, has an id, and is not to be kept', async () => {
    for (const path of ['/ok', '/v2/things/1', '/nowhere', '/openapi.json']) {
      const seen = await ask(path)
      expect(seen.headers.get('Content-Type')).toBe('application/json')
      expect(seen.headers.get('X-Request-Id')).toMatch(/^[0-9a-f-]{36}$/)
      expect(seen.headers.get('Cache-Control')).toBe('no-store')
    }
  })

  it('says what is there and what is not', async () => {
    expect(await ask('/ok')).toMatchObject({ status: 200, body: { ok: true } })
    expect(await ask('/ready')).toMatchObject({ status: 200, body: { ready: true } })
    ready = false
    expect(await ask('/ready')).toMatchObject({ status: 503, body: { ready: false } })
    ready = true
    for (const path of ['/', '/v2', '/v2/things', '/v2/things/1/2', '/v2//things/1', '/V2/things/1']) {
      expect(await ask(path)).toMatchObject({ status: 404, body: { detail: 'Not Found' } })
    }
  })

  it('is the same with a slash at the end of the path', async () => {
    expect(await ask('/v2/things/1/')).toMatchObject({ status: 200, body: { body: { thing_id: '1' } } })
    expect(await ask('/v2/things/1/?x=1', { method: 'POST', body: '{"a":1}' })).toMatchObject({ status: 200, body: { body: { a: 1 } } })
  })

  it('names the methods that a path has', async () => {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'PROPFIND']) {
      const seen = await ask('/v2/things/1/', { method })
      expect(seen).toMatchObject({ status: 405, body: { detail: 'Method Not Allowed' } })
      expect(seen.headers.get('Allow')).toBe('GET, HEAD, POST, OPTIONS')
    }
    expect((await ask('/ok', { method: 'POST' })).headers.get('Allow')).toBe('GET, HEAD, OPTIONS')
    const options = await ask('/v2/things/1', { method: 'OPTIONS' })
    expect(options).toMatchObject({ status: 204, body: undefined })
    expect(options.headers.get('Allow')).toBe('GET, HEAD, POST, OPTIONS')
  })

  it('to HEAD is that to GET without its body', async () => {
    expect(await ask('/v2/things/1', { method: 'HEAD' })).toMatchObject({ status: 200, body: undefined })
    expect(await ask('/nowhere', { method: 'HEAD' })).toMatchObject({ status: 404, body: undefined })
  })
})

describe('a body', () => {
  it.each(['application/json', 'application/json; charset=utf-8', 'application/problem+json', 'text/plain', 'application/x-www-form-urlencoded', ''])(
    'is JSON whatever its content type says (%j)',
    async (type) => {
      expect(await post('{"a":1}', { 'Content-Type': type })).toMatchObject({ status: 200, body: { body: { a: 1 } } })
      expect(await post('a=1', { 'Content-Type': type })).toMatchObject({ status: 422, body: { detail: [{ type: 'json_invalid' }] } })
    },
  )

  it.each(['null', '[]', '"x"', '1', 'true'])('of another kind (%s) is refused', async (body) => {
    expect(await post(body)).toMatchObject({
      status: 422,
      body: {
        detail: [
          { loc: ['body'], msg: 'Input should be a valid dictionary or object to extract fields from', type: 'model_attributes_type' },
        ],
      },
    })
  })

  it('that is needed and not there is missing', async () => {
    expect(await ask('/v2/things/1', { method: 'POST' })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body'], msg: 'Field required', type: 'missing' }] },
    })
  })

  it('may be as large as the limit and no larger, whether its length is announced or not', async () => {
    const fits = JSON.stringify({ a: 'x'.repeat(BODY_MAX - 8) })
    expect(fits).toHaveLength(BODY_MAX)
    expect((await post(fits)).status).toBe(200)
    const tooLarge = { status: 413, body: { detail: `The request body is larger than ${BODY_MAX} bytes.` } }
    expect(await post(`${fits} `)).toMatchObject(tooLarge)
    expect(await post(fits, { 'Content-Length': String(BODY_MAX + 1) })).toMatchObject(tooLarge)
    const stream = new Blob([`${fits} `]).stream()
    expect(await ask('/v2/things/1', { method: 'POST', body: stream, duplex: 'half' } as RequestInit)).toMatchObject(tooLarge)
  })

  it('must not be compressed', async () => {
    expect(await post('{}', { 'Content-Encoding': 'gzip' })).toMatchObject({ status: 415 })
    expect(await post('{}', { 'Content-Encoding': 'identity' })).toMatchObject({ status: 200 })
  })

  it('that does not arrive is not waited for', async () => {
    const request = new Request('http://localhost/', {
      method: 'POST',
      body: new ReadableStream({ pull: (controller) => void controller.enqueue(Buffer.from('{')) }, { highWaterMark: 0 }).pipeThrough(
        new TransformStream({ transform: () => new Promise(() => {}) }),
      ),
      duplex: 'half',
    } as RequestInit)
    await expect(readBody(request, { limitMs: 30 })).rejects.toMatchObject({ status: 408 })
  })

  it('with many faults is answered with the first hundred, and long keys are cut', async () => {
    const key = 'k'.repeat(5000)
    const seen = await post(`{${Array.from({ length: 500 }, (_, index) => `"${key}${index}":1e999`).join(',')}}`)
    expect(seen.status).toBe(422)
    const { detail } = seen.body as { detail: { loc: string[] }[] }
    expect(detail).toHaveLength(100)
    expect(detail[0]?.loc[1]).toHaveLength(101)
  })
})

describe('a handler that throws', () => {
  it.each([
    [new HttpProblem(409, 'taken'), 409, 'taken'],
    [Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' }), 503, 'The database does not answer at the moment: try again.'],
    [Object.assign(new Error('terminating connection'), { code: '57P01' }), 503, 'The database does not answer at the moment: try again.'],
    [new Error('timeout exceeded when trying to connect'), 503, 'The database does not answer at the moment: try again.'],
    [new AggregateError([Object.assign(new Error(''), { code: 'ECONNREFUSED' })]), 503, 'The database does not answer at the moment: try again.'],
    [Object.assign(new Error('duplicate key'), { code: '23505' }), 500, 'Internal Server Error'],
    [new TypeError('s3cr3t is not a function'), 500, 'Internal Server Error'],
  ])('%s is answered with its status and no detail of ours', async (error, status, detail) => {
    handle = async () => {
      throw error
    }
    const seen = await ask('/v2/things/1')
    expect(seen).toMatchObject({ status, body: { detail } })
    expect(seen.headers.get('Retry-After')).toBe(status === 503 ? '1' : null)
  })
})

describe('over a real connection', () => {
  let server: HttpServer
  beforeAll(async () => {
    server = await startHttpServer({
      app,
      agents: (_, response) => response.end('agent'),
      agentUpgrade: (_, socket) => socket.destroy(),
      host: '127.0.0.1',
      port: 0,
    })
  })
  afterAll(() => server.close({ limitMs: 0 }))

  /** Sends bytes and gives what comes back until the server hangs up or is silent for a while. */
  const raw = async (bytes: string, silentMs = 300): Promise<string> => {
    const socket: Socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    await once(socket, 'connect')
    socket.write(bytes, 'latin1')
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    socket.on('error', () => {})
    socket.setTimeout(silentMs, () => socket.destroy())
    await once(socket, 'close')
    return text
  }

  it.each([
    ['GET /v2/things/1 HTTP/1.1\r\nHost: x\r\n\r\n', 200],
    ['GET /v2/things/%ff HTTP/1.1\r\nHost: x\r\n\r\n', 200],
    ['GET /v2/things/1?%ff=%zz&a=%00 HTTP/1.1\r\nHost: x\r\n\r\n', 200],
    ['GET http://elsewhere/v2/things/1 HTTP/1.1\r\nHost: x\r\n\r\n', 200],
    ['GET //v2/things/1 HTTP/1.1\r\nHost: x\r\n\r\n', 404],
    ['GET /v2/things/1 HTTP/1.1\r\nHost: [::bad\r\n\r\n', 400],
    ['GET /v2/things/1 HTTP/1.1\r\n\r\n', 400],
    ['OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['POST /v2/things/1 HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n', 400],
    ['POST /v2/things/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}', 200],
    ['POST /v2/things/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n', 200],
    [`GET /v2/things/${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431],
    ['NONSENSE\r\n\r\n', 400],
    ['TRACE /v2/things/1 HTTP/1.1\r\nHost: x\r\n\r\n', 405],
  ])('%j is answered with %i', async (bytes, status) => {
    handle = async (body) => ({ status: 200, body: { body } })
    expect((await raw(bytes)).slice(0, 12)).toBe(`HTTP/1.1 ${status}`)
  })

  it('a client that goes away in the middle of its body harms nobody', async () => {
    for (let count = 0; count < 5; count += 1) {
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
      await once(socket, 'connect')
      socket.write('POST /v2/things/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{')
      socket.destroy()
    }
    expect((await fetch(`${server.url}/ok`)).status).toBe(200)
  })

  it('an agent has its own paths', async () => {
    expect(await (await fetch(`${server.url}/agents/x/ok`)).text()).toBe('agent')
  })
})
