import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { AGENTS_PREFIX } from '../agents/admission.ts'
import type { AgentForwarder } from '../agents/forwarder.ts'
import { NODE_AGENTS_PREFIX } from '../agents/node-door.ts'

export interface HttpServer {
  readonly url: string
  /** No new connection; what is in flight may finish for `limitMs`, then it is cut. */
  close(options: { limitMs: number }): Promise<void>
}

/**
 * One address for everything: `/agents/…` goes to the agents as raw streams, as does what other nodes send to them, the rest to the
 * application.
 * @throws {Error} with the address when it cannot be listened on.
 */
export async function startHttpServer({
  app,
  agents,
  agentUpgrade,
  forwarder,
  wrap = (serve) => serve,
  host,
  port,
}: {
  app: Hono
  agents: (request: IncomingMessage, response: ServerResponse) => void
  agentUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  /** Takes what other nodes send to the agents of this one. */
  forwarder?: AgentForwarder
  /** Stands before everything that answers. */
  wrap?: (serve: RequestListener) => RequestListener
  host: string
  port: number
}): Promise<HttpServer> {
  const application = getRequestListener(app.fetch)
  const isForNode = (request: IncomingMessage) => forwarder !== undefined && request.url?.startsWith(NODE_AGENTS_PREFIX) === true
  const serve = wrap((request, response) => {
    if (request.url?.startsWith(AGENTS_PREFIX)) agents(request, response)
    else void application(request, response)
  })
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    if (isForNode(request)) forwarder?.request(request, response)
    else void serve(request, response as Parameters<typeof serve>[1])
  }
  const server = createServer(handle)
  // Other nodes get the word when the agent has taken the connection; everybody else at once, as ever.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (!isForNode(request)) {
      response.writeContinue()
      delete request.headers.expect
    }
    handle(request, response)
  })
  // Streams of agents may be silent and long; a slow client must still send its headers in time.
  server.requestTimeout = 0
  server.headersTimeout = 30_000
  server.keepAliveTimeout = 65_000
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (isForNode(request)) forwarder?.upgrade(request, socket, head)
    else agentUpgrade(request, socket, head)
  })
  server.listen(port, host)
  await once(server, 'listening').catch((error: Error) => {
    throw new Error(`could not listen on ${host}:${port}: ${error.message}`, { cause: error })
  })
  const address = server.address() as AddressInfo
  const shown = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return { url: `http://${shown}:${address.port}`, close: ({ limitMs }) => close(server, limitMs) }
}

async function close(server: Server, limitMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  server.closeIdleConnections()
  const timer = setTimeout(() => server.closeAllConnections(), limitMs)
  await closed
  clearTimeout(timer)
}
