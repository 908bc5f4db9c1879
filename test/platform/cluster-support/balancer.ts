import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** What stands before several `api` processes: each connection goes to the next of them, and to another when that one does not listen. */
export interface Balancer {
  readonly url: string
  /** Ports of this machine. */
  readonly backends: Set<number>
  close(): Promise<void>
}

export async function startBalancer(): Promise<Balancer> {
  const backends = new Set<number>()
  const sockets = new Set<Socket>()
  let turn = 0
  const track = (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    return socket
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    track(client).on('error', () => client.destroy())
    turn += 1
    const order = [...backends]
    const tries = order.map((_, index) => order[(turn + index) % order.length] as number)
    const attempt = () => {
      const port = tries.shift()
      if (port === undefined) return void client.destroy()
      const upstream = track(connect({ port, host: '127.0.0.1', allowHalfOpen: true }))
      let open = false
      upstream.once('connect', () => {
        open = true
        client.pipe(upstream).pipe(client)
        client.once('close', () => upstream.destroy())
      })
      // A server that ends a connection in the middle ends the client's: it must not look like a whole answer.
      upstream.once('error', () => (open ? client.destroy() : attempt()))
      upstream.once('close', (failed) => (open && failed ? client.destroy() : undefined))
    }
    attempt()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    backends,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
