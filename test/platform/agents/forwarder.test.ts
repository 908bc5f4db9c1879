import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Hono } from 'hono'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createAgentForwarder } from '../../../src/platform/agents/forwarder.ts'
import type { HostedAgent } from '../../../src/platform/agents/host.ts'
import { createAgentProxy } from '../../../src/platform/agents/proxy.ts'
import { type AgentRoutes, type AgentTarget, createAgentRoutes } from '../../../src/platform/agents/routes.ts'
import { createAgentUpgrade } from '../../../src/platform/agents/upgrade.ts'
import { type HttpServer, startHttpServer } from '../../../src/platform/http/server.ts'
import { createNodeSignature } from '../../../src/platform/nodes/signature.ts'
import { listen, send, type TestServer } from '../support/http.ts'
import { keepAliveOf } from '../support/keep-alive.ts'
import { until } from '../support/processes.ts'

/** Two nodes in one process: one that clients ask, and one that runs the agents. */
const SLUG = 'echo-1234'
const KEY = { 'x-api-key': 'key' }
/** Of a container that was removed. */
const NOWHERE = 'http://queue-1.invalid:8787'
const signature = createNodeSignature([Buffer.alloc(32, 1)])
let edge: HttpServer
let node: HttpServer
/** What the edge, and what the node knows. */
let routes: AgentRoutes
let atNode: AgentRoutes
let hosted: Map<string, HostedAgent>
let refreshes: number
let onRefresh: () => void
const open: TestServer[] = []

beforeEach(async () => {
  routes = createAgentRoutes()
  atNode = createAgentRoutes()
  hosted = new Map()
  refreshes = 0
  onRefresh = () => undefined
  const refuse = (_: IncomingMessage, response: ServerResponse) => void response.writeHead(418).end()
  const forwarder = createAgentForwarder({ host: () => ({ find: (id) => hosted.get(id) }), routes: atNode, signature })
  node = await startHttpServer({
    app: new Hono(),
    agents: refuse,
    agentUpgrade: (_, socket) => socket.destroy(),
    forwarder,
    host: '127.0.0.1',
    port: 0,
  })
  const options = {
    routes,
    signature,
    authorise: async (request: IncomingMessage) => (request.headers['x-api-key'] === 'key' ? 'workspace' : null),
    refresh: async () => {
      refreshes += 1
      onRefresh()
    },
  }
  edge = await startHttpServer({
    app: new Hono(),
    agents: createAgentProxy(options),
    agentUpgrade: createAgentUpgrade(options),
    host: '127.0.0.1',
    port: 0,
  })
})
afterEach(async () => {
  await Promise.all([edge, node].map((server) => server.close({ limitMs: 0 })))
  for (const server of open.splice(0)) await server.close()
})

let agents = 0

/** An agent of the node. */
async function agent(
  listener: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<TestServer & { target: AgentTarget; local: AgentTarget }> {
  const server = await listen(listener)
  open.push(server)
  agents += 1
  const id = `00000000-0000-4000-8000-${String(agents).padStart(12, '0')}`
  const local = { host: '127.0.0.1', port: server.port, revisionId: `r${agents}`, agentId: id }
  hosted.set(id, {
    id,
    deploymentId: 'd',
    revisionId: local.revisionId,
    process: { address: { host: local.host, port: local.port } },
  } as HostedAgent)
  return { ...server, local, target: { ...local, via: node.url } }
}
const serve = (target: AgentTarget) => routes.serve(SLUG, { ...target, workspaceId: 'workspace' })
const at = (path: string) => `${edge.url}/agents/${SLUG}${path}`
const echo = (name: string) => (request: IncomingMessage, response: ServerResponse) => {
  let body = ''
  request.on('data', (chunk: Buffer) => (body += chunk.toString()))
  request.on('end', () =>
    response.end(JSON.stringify({ name, method: request.method, url: request.url, headers: request.headers, body })),
  )
}

describe('through another node', () => {
  test('path, query, body and headers arrive as they would directly, without key and signature', async () => {
    const { target } = await agent(echo('one'))
    serve(target)
    for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
      const answer = await send(at('/threads/%C3%A9//x?a=1'), {
        method: 'POST',
        headers: { ...KEY, ...headers, 'x-own': 'yes' },
        body: 'some text',
      })
      const seen = JSON.parse(answer.body)
      expect(answer.status).toBe(200)
      expect(seen).toMatchObject({ name: 'one', method: 'POST', url: '/threads/%C3%A9//x?a=1', body: 'some text' })
      expect(seen.headers).toMatchObject({
        host: `${target.host}:${target.port}`,
        'x-own': 'yes',
        'x-forwarded-prefix': `/agents/${SLUG}`,
      })
      expect(Object.keys(seen.headers)).not.toContain('x-api-key')
      expect(Object.keys(seen.headers)).not.toContain('x-platform-node')
      expect(Object.keys(seen.headers)).not.toContain('expect')
    }
    expect(JSON.parse((await send(at('/ok'), { headers: KEY })).body)).toMatchObject({ method: 'GET', url: '/ok' })
  })

  test('a large body both ways, redirects and cookies', async () => {
    const { target } = await agent((request, response) => {
      if (request.url === '/there')
        return void response
          .writeHead(302, { location: `http://${request.headers.host}/here`, 'set-cookie': 'a=1; Path=/' })
          .end()
      request.pipe(response)
    })
    serve(target)
    const body = 'x'.repeat(5_000_000)
    expect((await send(at('/'), { method: 'POST', headers: KEY, body })).body === body).toBe(true)
    const moved = await send(at('/there'), { headers: KEY })
    expect([moved.headers.location, moved.headers['set-cookie']]).toEqual([`/agents/${SLUG}/here`, [`a=1; Path=/agents/${SLUG}`]])
  })

  test('nobody but a node gets in, not even with a key of the platform', async () => {
    let seen = 0
    const { target } = await agent((_, response) => {
      seen += 1
      response.end()
    })
    const path = `/_nodes/agents/${target.agentId}/ok`
    const stranger = createNodeSignature([Buffer.alloc(32, 9)])
    for (const headers of [
      {},
      KEY,
      { 'x-platform-node': 'x' },
      { 'x-platform-node': stranger.sign(`GET ${path}`) },
      { 'x-platform-node': signature.sign('GET /other') },
    ]) {
      expect((await send(node.url + path, { headers })).status).toBe(401)
    }
    expect(seen).toBe(0)
    expect((await send(node.url + path, { headers: { 'x-platform-node': signature.sign(`GET ${path}`) } })).status).toBe(200)
    serve(target)
    expect((await send(at('/ok'), { headers: { ...KEY, 'x-platform-node': 'mine' } })).status, 'a client cannot spoil it').toBe(
      200,
    )
  })
})

describe('a swap that this node has not heard of', () => {
  test('a request with a body that comes too late goes to the next agent, whole and once', async () => {
    const seen: string[] = []
    const [one, two] = [await agent(echo('one')), await agent(echo('two'))]
    for (const server of [one, two])
      server.server.on('request', (request: IncomingMessage) => seen.push(`${server.local.revisionId} ${request.method}`))
    serve(one.target)
    atNode.close(one.local)
    onRefresh = () => {
      if (refreshes === 2) serve(two.target)
    }
    const answer = await send(at('/runs'), { method: 'POST', headers: KEY, body: 'important' })
    expect(JSON.parse(answer.body)).toMatchObject({ name: 'two', body: 'important' })
    expect(seen).toEqual([`${two.local.revisionId} POST`])
  })

  test('one that no other agent takes is a 503 in the end, and an agent cannot pretend to be gone', async () => {
    const one = await agent((_, response) => void response.setHeader('x-agent-gone', '1').end('here'))
    serve(one.target)
    expect((await send(at('/x'), { headers: KEY })).body).toBe('here')
    expect(refreshes).toBe(0)
    hosted.clear()
    const answer = await send(at('/x'), { method: 'POST', headers: KEY, body: 'b' })
    expect([answer.status, answer.headers['x-agent-gone']]).toEqual([503, undefined])
    expect(refreshes).toBe(5)
  })

  test('what has begun is finished: the node drains what came through others', async () => {
    let finish = () => {}
    const one = await agent((_, response) => {
      response.write('begun ')
      finish = () => void response.end('done')
    })
    serve(one.target)
    const answer = send(at('/stream'), { method: 'POST', headers: KEY, body: '{}' })
    await until(() => atNode.inFlight(one.local) === 1)
    atNode.close(one.local)
    let drained = false
    const draining = atNode.drain(one.local, { limitMs: 10_000 }).then((outcome) => {
      drained = true
      return outcome
    })
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(drained).toBe(false)
    finish()
    expect(await draining).toEqual({ cut: 0 })
    expect((await answer).body).toBe('begun done')
  })
})

describe('when somebody leaves', () => {
  test('the client: the agent’s request ends, and nothing is in flight on either node', async () => {
    let closed = false
    const { target, local } = await agent((request, response) => {
      response.write('x')
      request.once('close', () => (closed = true))
    })
    serve(target)
    const socket = connect(Number(new URL(edge.url).port), '127.0.0.1')
    socket.write(`GET /agents/${SLUG}/s HTTP/1.1\r\nhost: x\r\nx-api-key: key\r\n\r\n`)
    await once(socket, 'data')
    expect([atNode.inFlight(local), routes.inFlight(target)]).toEqual([1, 1])
    socket.destroy()
    await until(() => closed && atNode.inFlight(local) === 0 && routes.inFlight(target) === 0)
  })

  test('the agent, in the middle of an answer: the client can tell', async () => {
    const { target } = await agent((_, response) => {
      response.write('half')
      setTimeout(() => response.destroy(), 20)
    })
    serve(target)
    expect(await send(at('/s'), { headers: KEY })).toMatchObject({ status: 200, complete: false })
  })

  test('the agent, before it answers: 502, and not repeated', async () => {
    let seen = 0
    const { target } = await agent((request) => {
      seen += 1
      request.socket.destroy()
    })
    serve(target)
    expect((await send(at('/s'), { method: 'POST', headers: KEY, body: 'x' })).status).toBe(502)
    expect(seen).toBe(1)
  })

  test('a machine: a silent stream is asked soon whether its other end is there', async (context) => {
    if (process.platform !== 'linux') context.skip('the table of connections is that of Linux')
    const { target, port } = await agent((_, response) => void response.write('begun'))
    serve(target)
    const controller = new AbortController()
    const answer = await fetch(at('/stream'), { method: 'POST', body: '{}', headers: KEY, signal: controller.signal })
    const toNode = Number(new URL(node.url).port)
    const timers = () => [...keepAliveOf({ to: toNode }), ...keepAliveOf({ to: port })]
    // Of one look: while what was sent waits for its receipt, the kernel shows that timer instead.
    await expect.poll(() => timers().map((seconds) => seconds !== null && seconds <= 10)).toEqual([true, true])
    controller.abort()
    await answer.body?.cancel().catch(() => undefined)
  })

  test('the node: 503', async () => {
    const { target } = await agent(echo('x'))
    serve({ ...target, via: 'http://127.0.0.1:1' })
    expect((await send(at('/s'), { method: 'POST', headers: KEY, body: 'x' })).status).toBe(503)
  })
})

describe('a node that cannot be reached', () => {
  /** An address that takes no more connections, and does not refuse them either: as a machine that is gone. */
  async function deaf(): Promise<{ url: string; end(): void }> {
    const program = `const s = require('node:net').createServer(); s.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(s.address().port))`
    const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
    const port = Number(String((await once(child.stdout, 'data'))[0]))
    child.kill('SIGSTOP')
    const sockets: Socket[] = []
    for (let full = false; !full && sockets.length < 50;) {
      const socket = connect(port, '127.0.0.1')
      sockets.push(socket.on('error', () => undefined))
      full = await Promise.race([once(socket, 'connect').then(() => false), sleep(300, true)])
    }
    const end = () => {
      for (const socket of sockets) socket.destroy()
      child.kill('SIGKILL')
    }
    return { url: `http://127.0.0.1:${port}`, end }
  }

  test('is given up soon, and the request goes to where the agent is by then, whole and once', async () => {
    const [one, two] = [await agent(echo('one')), await agent(echo('two'))]
    const gone = await deaf()
    try {
      serve({ ...one.target, via: gone.url })
      onRefresh = () => serve(two.target)
      const began = performance.now()
      const answer = await send(at('/runs'), { method: 'POST', headers: KEY, body: 'important' })
      expect(JSON.parse(answer.body)).toMatchObject({ name: 'two', body: 'important' })
      expect(performance.now() - began).toBeLessThan(9000)
    } finally {
      gone.end()
    }
  })

  test('because its name is not known any more: the request goes to where the agent is by then', async () => {
    const [one, two] = [await agent(echo('one')), await agent(echo('two'))]
    serve({ ...one.target, via: NOWHERE })
    onRefresh = () => serve(two.target)
    const answer = await send(at('/runs'), { method: 'POST', headers: KEY, body: 'important' })
    expect(JSON.parse(answer.body)).toMatchObject({ name: 'two', body: 'important' })
  })
})

test('an agent of this node cannot pretend to be gone: nothing is sent twice', async () => {
  let seen = 0
  const one = await agent((_, response) => {
    seen += 1
    response.setHeader('x-agent-gone', '1').end('here')
  })
  serve(one.local)
  expect((await send(at('/x'), { method: 'POST', headers: KEY })).body).toBe('here')
  expect(seen).toBe(1)
})

describe('a WebSocket', () => {
  const handshake = () =>
    new Promise<{ head: string; socket: ReturnType<typeof connect> }>((resolve) => {
      const socket = connect(Number(new URL(edge.url).port), '127.0.0.1')
      socket.write(
        `GET /agents/${SLUG}/ws?a=1 HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nx-api-key: key\r\n\r\n`,
      )
      socket.once('data', (chunk: Buffer) => resolve({ head: chunk.toString(), socket }))
    })
  const upgrading = (server: TestServer, seen: IncomingMessage[]) =>
    server.server.on('upgrade', (request, socket) => {
      seen.push(request)
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n')
      socket.on('error', () => undefined).pipe(socket)
    })

  test('goes through both nodes, counts on both, and is cut with its agent', async () => {
    const one = await agent((_, response) => void response.end())
    const seen: IncomingMessage[] = []
    upgrading(one, seen)
    serve(one.target)
    const { head, socket } = await handshake()
    expect(head).toContain('101 Switching Protocols')
    socket.write('ping')
    expect(String((await once(socket, 'data'))[0])).toBe('ping')
    expect([seen[0]?.url, seen[0]?.headers['x-api-key'], seen[0]?.headers['x-platform-node']]).toEqual([
      '/ws?a=1',
      undefined,
      undefined,
    ])
    expect([routes.inFlight(one.target), atNode.inFlight(one.local)]).toEqual([1, 1])
    const closed = once(socket, 'close')
    expect(await atNode.drain(one.local, { limitMs: 50 })).toEqual({ cut: 1 })
    await closed
    await until(() => routes.inFlight(one.target) === 0)
  })

  test('to a node whose name is not known any more goes to where the agent is by then', async () => {
    const [one, two] = [await agent(echo('one')), await agent(echo('two'))]
    upgrading(two, [])
    serve({ ...one.target, via: NOWHERE })
    onRefresh = () => serve(two.target)
    const { head, socket } = await handshake()
    expect(head).toContain('101')
    socket.destroy()
  })

  test('that comes too late goes to the next agent', async () => {
    const [one, two] = [await agent(echo('one')), await agent(echo('two'))]
    const seen: IncomingMessage[] = []
    upgrading(two, seen)
    serve(one.target)
    atNode.close(one.local)
    onRefresh = () => serve(two.target)
    const { head, socket } = await handshake()
    expect(head).toContain('101')
    expect(seen).toHaveLength(1)
    socket.destroy()
  })
})
