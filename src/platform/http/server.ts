import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { AGENTS_PREFIX } from '../agents/admission.ts'

export interface HttpServer {
  readonly url: string
  /** No new connection; what is in flight may finish for `limitMs`, then it is cut. */
  close(options: { limitMs: number }): Promise<void>
}

/**
 * One address for everything: `/agents/…` goes to the agents as raw streams, the rest to the application.
 * @throws {Error} with the address when it cannot be listened on.
 */
export async function startHttpServer({
  app,
  agents,
  agentUpgrade,
  host,
  port,
}: {
  app: Hono
  agents: (request: IncomingMessage, response: ServerResponse) => void
  agentUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  host: string
  port: number
}): Promise<HttpServer> {
  const application = getRequestListener(app.fetch)
  const server = createServer((request, response) => {
    if (request.url?.startsWith(AGENTS_PREFIX)) agents(request, response)
    else void application(request, response)
  })
  // Streams of agents may be silent and long; a slow client must still send its headers in time.
  server.requestTimeout = 0
  server.headersTimeout = 30_000
  server.keepAliveTimeout = 65_000
  server.on('upgrade', agentUpgrade)
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
