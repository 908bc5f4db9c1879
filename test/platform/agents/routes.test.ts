import { describe, expect, test } from 'vitest'
import { send } from '../support/http.ts'
import { until } from '../support/processes.ts'
import { KEY, setProxyScene, SLUG } from './support/proxy-scene.ts'

const scene = setProxyScene()
const { agent, serve, at } = scene

describe('draining', () => {
  test('waits for what is in flight, and only for the target that was replaced', async () => {
    const finish: (() => void)[] = []
    const old = await agent((_, response) => {
      response.writeHead(200).write('old ')
      finish.push(() => response.end('finished'))
    }, 'old')
    const next = await agent((_, response) => void response.end('new'), 'new')
    serve(old.target)
    const stream = send(at('/stream'), { headers: KEY })
    await until(() => finish.length === 1)
    serve(next.target)
    let drained = false
    const draining = scene.routes.drain(old.target, { limitMs: 10_000 }).then((outcome) => {
      drained = true
      return outcome
    })
    expect((await send(at('/x'), { headers: KEY })).body).toBe('new')
    expect(drained).toBe(false)
    finish[0]?.()
    expect(await draining).toEqual({ cut: 0 })
    expect(await stream).toMatchObject({ body: 'old finished', complete: true })
    expect((await send(at('/x'), { headers: KEY })).body).toBe('new')
  })

  test('cuts what is left at the limit, and the client can tell', async () => {
    const { target } = await agent((_, response) => void response.writeHead(200).write('endless'))
    serve(target)
    const streams = [send(at('/a'), { headers: KEY }), send(at('/b'), { headers: KEY })]
    await until(() => scene.routes.inFlight(target) === 2)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await scene.routes.drain(target, { limitMs: 100 })).toEqual({ cut: 2 })
    for (const answer of await Promise.all(streams)) expect(answer.complete).toBe(false)
    expect((await send(at('/a'), { headers: KEY })).status).toBe(503)
  })

  test('closes the connections that were kept', async () => {
    const { target, server } = await agent((_, response) => void response.end('ok'))
    server.keepAliveTimeout = 60_000
    serve(target)
    await send(at('/ok'), { headers: KEY })
    const connections = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))
    expect(await connections()).toBe(1)
    scene.routes.suspend(SLUG)
    await scene.routes.drain(target)
    await until(async () => (await connections()) === 0)
  })

  test('a target that serves again while it drains is left alone', async () => {
    const finish: (() => void)[] = []
    const { target } = await agent((request, response) => {
      if (request.url === '/x') return void response.end('x')
      response.writeHead(200).flushHeaders()
      finish.push(() => response.end())
    })
    serve(target)
    const stream = send(at('/stream'), { headers: KEY })
    await until(() => finish.length === 1)
    const draining = scene.routes.drain(target)
    serve(target)
    finish[0]?.()
    await Promise.all([draining, stream])
    expect((await send(at('/x'), { headers: KEY })).body).toBe('x')
  })

  test('an unknown target is drained already', async () => {
    expect(await scene.routes.drain({ host: '127.0.0.1', port: 1, revisionId: 'r' })).toEqual({ cut: 0 })
  })
})
