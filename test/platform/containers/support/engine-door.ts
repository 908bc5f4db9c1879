import { connect, createServer, type Server, type Socket } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** A socket that leads to a container engine, and that can be closed for a while: for whoever uses it the engine is away. */
export interface EngineDoor {
  /** What `DOCKER_HOST` is for it. */
  readonly host: string
  close(): Promise<void>
  open(): Promise<void>
  /** Closes it and removes it. */
  remove(): Promise<void>
}

export async function openDoor(engineHost: string): Promise<EngineDoor> {
  const folder = mkdtempSync(path.join(tmpdir(), 'engine-door-'))
  const socketPath = path.join(folder, 'engine.sock')
  const sockets = new Set<Socket>()
  let server: Server | undefined
  const keep = (socket: Socket, other: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => {
      sockets.delete(socket)
      other.destroy()
    })
  }
  const open = async () => {
    const next = createServer({ allowHalfOpen: true }, (socket) => {
      const inner = connect({ path: engineHost.slice('unix://'.length), allowHalfOpen: true })
      keep(socket, inner)
      keep(inner, socket)
      socket.pipe(inner)
      inner.pipe(socket)
    })
    await new Promise<void>((resolve, reject) => next.once('error', reject).listen(socketPath, resolve))
    server = next
  }
  const close = async () => {
    const closed = new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())))
    for (const socket of sockets) socket.destroy()
    await closed
    server = undefined
  }
  await open()
  return {
    host: `unix://${socketPath}`,
    open,
    close,
    remove: async () => {
      await close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
