import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { KEY, setProxyScene, SLUG } from './support/proxy-scene.ts'

const scene = setProxyScene()
const { agent, serve } = scene

describe('upgrades', () => {
  const handshake = (path: string, headers: Record<string, string>) =>
    new Promise<{ head: string; socket: ReturnType<typeof connect> }>((resolve) => {
      const socket = connect(scene.platform.port, '127.0.0.1')
      const lines = Object.entries({
        host: 'x',
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-key': 'a2V5',
        ...headers,
      })
      socket.write(`GET ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n`)
      socket.once('data', (chunk: Buffer) => resolve({ head: chunk.toString(), socket }))
    })

  test('a WebSocket goes through without the key, counts as in flight, and is cut with the target', async () => {
    let seen: IncomingMessage | undefined
    const { target, server } = await agent((_, response) => void response.end())
    server.on('upgrade', (request, socket) => {
      seen = request
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n')
      socket.on('error', () => undefined).pipe(socket)
    })
    serve(target)
    const { head, socket } = await handshake(`/agents/${SLUG}/ws?a=1`, KEY)
    expect(head).toContain('101 Switching Protocols')
    socket.write('ping')
    expect(String((await once(socket, 'data'))[0])).toBe('ping')
    expect(seen?.url).toBe('/ws?a=1')
    expect(seen?.headers['x-api-key']).toBeUndefined()
    expect(scene.routes.inFlight(target)).toBe(1)
    const closed = once(socket, 'close')
    expect(await scene.routes.drain(target, { limitMs: 50 })).toEqual({ cut: 1 })
    await closed
    expect(scene.routes.inFlight(target)).toBe(0)
  })

  test('no key, another protocol, nothing that serves, an agent that is gone', async () => {
    scene.routes.announce(SLUG, 'workspace-a')
    const path = `/agents/${SLUG}/ws`
    expect((await handshake(path, {})).head).toContain('401 Unauthorized')
    expect((await handshake(path, { 'x-api-key': 'key-b' })).head).toContain('404 Not Found')
    expect((await handshake(path, { ...KEY, upgrade: 'h2c' })).head).toContain('501 Not Implemented')
    expect((await handshake(path, KEY)).head).toContain('503 Service Unavailable')
    const dead = await agent(() => undefined)
    await dead.close()
    serve(dead.target)
    const socket = connect(scene.platform.port, '127.0.0.1')
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nx-api-key: key-a\r\n\r\n`)
    await once(socket.resume(), 'close')
    expect(scene.routes.inFlight(dead.target)).toBe(0)
  })
})
