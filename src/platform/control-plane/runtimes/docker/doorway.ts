import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Log } from '../../../log.ts'
import { type Engine, type EngineEnvironment, readNetwork, reasonOf } from './engine.ts'

/** The way from containers to the platform. */
export interface Doorway {
  /** The address of the platform as containers know it; null when there is no way. */
  url(): Promise<string | null>
  close(): Promise<void>
}

export interface DoorwayOptions {
  readonly engine: Engine
  readonly env: EngineEnvironment
  /** The platform's address on this machine. */
  readonly platformUrl: string
  readonly log: Log
}

/**
 * Containers of this machine reach it at their network's gateway. A platform that listens on 127.0.0.1 alone gets a door there: a port of
 * the gateway's address, which only containers see, leads to the platform's own. Opened when first asked for; a failure is not remembered.
 */
export function createDoorway({ engine, env, platformUrl, log }: DoorwayOptions): Doorway {
  const { port, hostname } = new URL(platformUrl)
  const sockets = new Set<Socket>()
  let server: Server | undefined
  let opened: Promise<string | null> | undefined

  const open = async (): Promise<string | null> => {
    if (engine.remoteHost !== null) throw new Error('the container engine is on another machine')
    const gateway = await gatewayOf(engine, env['PLATFORM_CONTAINER_NETWORK'] || 'bridge')
    if (!isLoopback(hostname)) return `http://${gateway}:${port}`
    const made = createServer((socket) =>
      lead(socket, { port: Number(port), host: hostname.replace(/^\[(.*)\]$/, '$1'), sockets }),
    )
    await new Promise<void>((resolve, reject) => made.once('error', reject).listen(0, gateway, resolve))
    made.on('error', (error) => log.warn({ error: error.message }, 'the door for containers is disturbed'))
    server = made
    return `http://${gateway}:${(made.address() as { port: number }).port}`
  }

  return {
    url: async () => {
      opened ??= open()
      try {
        return await opened
      } catch (error) {
        opened = undefined
        const advice = 'agents in containers send no traces: give PLATFORM_TRACES_URL, an address of the platform that they reach'
        log.warn({ error: reasonOf(error) }, advice)
        return null
      }
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())))
    },
  }
}

async function gatewayOf(engine: Engine, network: string): Promise<string> {
  const ranges = await readNetwork(engine, network)
  const gateway = ranges.map((range) => range.Gateway).find((address) => address?.includes('.'))
  if (gateway === undefined) throw new Error(`the engine's network ${network} has no gateway`)
  return gateway
}

function lead(socket: Socket, { port, host, sockets }: { port: number; host: string; sockets: Set<Socket> }): void {
  const inner = connect(port, host)
  for (const [one, other] of [
    [socket, inner],
    [inner, socket],
  ] as const) {
    sockets.add(one)
    one.on('error', () => other.destroy())
    one.once('close', () => {
      sockets.delete(one)
      other.destroy()
    })
    one.pipe(other)
  }
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.')
}
