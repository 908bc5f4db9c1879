import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'

export type ConnectProxy = {
  url: string
  /** Targets that were asked for, with the credentials that came along. */
  asked: { target: string; authorization: string | undefined }[]
  stop: () => Promise<void>
}

/** A real CONNECT proxy on loopback. `resolve` says where a target leads: a number is a refusal's status, null is silence. */
export async function startConnectProxy(resolve: (target: string) => { port: number } | number | null): Promise<ConnectProxy> {
  const asked: ConnectProxy['asked'] = []
  const open = new Set<Socket>()
  const server = createServer((_request, response) => response.writeHead(400).end('this proxy only tunnels'))
  server.on('connection', (socket) => {
    open.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => open.delete(socket))
  })
  server.on('connect', (request, socket, head) => {
    const target = request.url ?? ''
    asked.push({ target, authorization: request.headers['proxy-authorization'] })
    const way = resolve(target)
    if (way === null) return
    if (typeof way === 'number') {
      socket.end(`HTTP/1.1 ${way} Refused\r\n\r\n`)
      return
    }
    const upstream = connect(way.port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      upstream.write(head)
      upstream.pipe(socket)
      socket.pipe(upstream)
    })
    open.add(upstream)
    upstream.on('error', () => socket.destroy())
    upstream.once('close', () => open.delete(upstream))
    socket.on('error', () => upstream.destroy())
    socket.once('close', () => upstream.destroy())
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    stop: async () => {
      for (const socket of open) socket.destroy()
      await new Promise((closed) => server.close(closed))
    },
  }
}
