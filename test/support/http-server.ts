import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** A node:http server on 127.0.0.1 that can go away and come back at the same port. */
export type TestServer = {
  url: string
  port: number
  /** Refuses connections from now on, and breaks those that are open. */
  down: () => Promise<void>
  /** Listens again, at the same port. */
  up: () => Promise<void>
  stop: () => Promise<void>
}

export async function startServer(listener: RequestListener): Promise<TestServer> {
  const sockets = new Set<Socket>()
  let server: Server | undefined
  const listen = async (port: number) => {
    const next = createServer(listener)
    next.on('connection', (socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })
    await new Promise<void>((resolve, reject) => {
      next.once('error', reject)
      next.listen(port, '127.0.0.1', () => resolve())
    })
    server = next
    return (next.address() as AddressInfo).port
  }
  const down = async () => {
    const current = server
    server = undefined
    if (current === undefined) return
    const closed = new Promise<void>((resolve) => current.close(() => resolve()))
    for (const socket of sockets) socket.resetAndDestroy()
    await closed
  }
  const port = await listen(0)
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    down,
    up: async () => {
      if (server === undefined) await listen(port)
    },
    stop: down,
  }
}

/** The whole body of a request; rejects when the client breaks off. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
