import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { RunEvent } from '../../src/contract/run-stream.ts'
import { readBody } from '../support/http-server.ts'
import { agent, EVENTS, METADATA, outcome, run, streaming, UPDATE } from './support/agent.ts'
import { API_KEY, failureOf, unaborted } from './support/fixtures.ts'
import { serve } from './support/serve.ts'

describe('streaming a run', () => {
  it('posts to the deployment’s own path, with the key, and asks that a run without a reader be cancelled', async () => {
    let seen: unknown
    const server = await agent(async (request, response) => {
      const { method, url, headers } = request
      seen = { method, url, headers, body: JSON.parse((await readBody(request)).toString()) }
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).end(METADATA + UPDATE)
    }, '/agents/echo-1')
    const events: RunEvent[] = []
    const options = { assistantId: 'agent', input: { messages: [{ role: 'user', content: 'hi' }] }, signal: unaborted() }
    for await (const event of server.streamRun({ ...options, streamMode: ['updates', 'messages-tuple'] })) events.push(event)
    expect(events).toEqual(EVENTS)
    expect(seen).toMatchObject({
      method: 'POST',
      url: '/agents/echo-1/runs/stream',
      headers: { 'x-api-key': API_KEY, 'content-type': 'application/json', accept: 'text/event-stream' },
      body: {
        assistant_id: 'agent',
        input: { messages: [{ role: 'user', content: 'hi' }] },
        stream_mode: ['updates', 'messages-tuple'],
        on_disconnect: 'cancel',
      },
    })
  })

  it('asks for one mode by its name', async () => {
    let body: unknown
    const server = await agent(async (request, response) => {
      body = JSON.parse((await readBody(request)).toString())
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end()
    })
    expect((await outcome(server)).events).toEqual([])
    expect(body).toEqual({ assistant_id: 'agent', input: { messages: [] }, stream_mode: 'updates', on_disconnect: 'cancel' })
  })

  it('yields each event as it comes', async () => {
    let goOn: (() => void) | undefined
    const server = await streaming((response) => {
      response.write(METADATA)
      goOn = () => response.end(UPDATE)
    })
    const stream = run(server)
    expect((await stream.next()).value).toEqual(EVENTS[0])
    goOn?.()
    expect((await stream.next()).value).toEqual(EVENTS[1])
    expect((await stream.next()).done).toBe(true)
  })

  it('reads a slow drip of single bytes, across characters and line ends', async () => {
    const server = await streaming(async (response) => {
      for (const byte of Buffer.from(METADATA + UPDATE)) {
        response.write(Buffer.from([byte]))
        await delay(1)
      }
      response.end()
    })
    expect(await outcome(server)).toEqual({ events: EVENTS, failure: undefined })
  })

  it.each([
    ['CR LF', (METADATA + UPDATE).replaceAll('\n', '\r\n')],
    ['CR', (METADATA + UPDATE).replaceAll('\n', '\r')],
    ['a byte order mark', `\ufeff${METADATA}${UPDATE}`],
    ['comments, ids and retries', `: hello\n\n${METADATA}: heartbeat\n\nid: 7\nretry: 10\n${UPDATE}: bye\n`],
    ['fields without a space', (METADATA + UPDATE).replaceAll(': {', ':{')],
    ['data on several lines', METADATA + UPDATE.replace('{"echo":', '{"echo":\ndata: ')],
    ['events without data', `event: ping\n\n${METADATA}event: pong\nid: 3\n\n${UPDATE}`],
  ])('reads %s', async (_, text) => {
    expect(await outcome(await streaming((response) => response.end(text)))).toEqual({ events: EVENTS, failure: undefined })
  })

  it('keeps what is not JSON as it is, and nothing as null', async () => {
    const server = await streaming((response) =>
      response.end('event: error\ndata: Run not found\n\nevent: end\ndata:\n\ndata: 1\n\n'),
    )
    expect((await outcome(server)).events).toEqual([
      { event: 'error', data: 'Run not found' },
      { event: 'end', data: null },
      { event: 'message', data: 1 },
    ])
  })

  it('shows invalid UTF-8 as such, and goes on', async () => {
    const server = await streaming((response) =>
      response.end(Buffer.concat([Buffer.from('data: "a'), Buffer.from([0xff, 0xc3]), Buffer.from(`b"\n\n${UPDATE}`)])),
    )
    expect((await outcome(server)).events).toEqual([{ event: 'message', data: 'a\ufffd\ufffdb' }, EVENTS[1]])
  })

  it('passes an error event on: it is the reader’s to judge', async () => {
    const server = await streaming((response) =>
      response.end(`${METADATA}event: error\ndata: {"error":"ValueError","message":"no"}\n\n`),
    )
    expect((await outcome(server)).events[1]).toEqual({ event: 'error', data: { error: 'ValueError', message: 'no' } })
  })

  it('closes the connection of a reader that leaves', async () => {
    const closed = Promise.withResolvers<void>()
    const server = await streaming((response, request) => {
      request.socket.once('close', () => closed.resolve())
      response.write(METADATA + UPDATE)
    })
    for await (const event of run(server)) {
      expect(event).toEqual(EVENTS[0])
      break
    }
    await closed.promise
  })

  it('is read no faster than its reader reads', async () => {
    const big = `data: "${'x'.repeat(100_000)}"\n\n`
    let written = 0
    const server = await streaming(async (response) => {
      while (written < 500 && !response.destroyed) {
        written++
        if (!response.write(big)) await once(response, 'drain')
      }
    })
    const stream = run(server)
    await stream.next()
    await delay(300)
    expect(written).toBeLessThan(200)
    await stream.return()
  })
})

describe('an answer that is no stream', () => {
  const answering = (status: number, headers: Record<string, string>, body: string) =>
    agent((request, response) => {
      request.resume()
      response.writeHead(status, headers).end(body)
    })
  const json = { 'content-type': 'application/json' }

  it.each<[string, number, Record<string, string>, string, object]>([
    ['message', 422, json, '{"message":"no such input"}', { kind: 'http', status: 422, detail: 'no such input' }],
    ['detail', 401, json, '{"detail":"Invalid API key"}', { kind: 'http', status: 401, detail: 'Invalid API key' }],
    ['error', 409, json, '{"error":"busy"}', { kind: 'http', status: 409, detail: 'busy' }],
    ['a bare string', 404, json, '"No graph"', { kind: 'http', status: 404, detail: 'No graph' }],
    [
      'plain text',
      404,
      { 'content-type': 'text/plain; charset=UTF-8' },
      'No assistant found for "nope".',
      { kind: 'http', status: 404, detail: 'No assistant found for "nope".' },
    ],
    [
      'validation',
      422,
      json,
      '{"detail":[{"loc":["body","input"],"msg":"Field required","type":"missing"}]}',
      { detail: 'body.input: Field required' },
    ],
    [
      'HTML',
      503,
      { 'content-type': 'text/html' },
      '<h1>Warming up</h1>',
      { kind: 'http', status: 503, detail: null, excerpt: '<h1>Warming up</h1>' },
    ],
    ['a wait', 429, { 'retry-after': '7' }, '', { kind: 'http', status: 429, retryAfterMs: 7000 }],
    ['a server error with a stream’s type', 500, { 'content-type': 'text/event-stream' }, UPDATE, { kind: 'http', status: 500 }],
    [
      'a sign-in page',
      200,
      { 'content-type': 'text/html' },
      ' <!doctype html><p>Sign in',
      { kind: 'protocol', code: 'html', excerpt: '<!doctype html><p>Sign in' },
    ],
    [
      'JSON',
      200,
      json,
      '{"output":"hi"}',
      { kind: 'protocol', code: 'not-a-stream', summary: 'answered 200 with application/json instead of a stream of events' },
    ],
    ['no content', 204, {}, '', { kind: 'protocol', code: 'not-a-stream', status: 204 }],
    [
      'a compressed stream',
      200,
      { 'content-type': 'text/event-stream', 'content-encoding': 'br' },
      'xx',
      { kind: 'protocol', code: 'not-a-stream', summary: 'answered 200 with the encoding br instead of a stream of events' },
    ],
  ])('is a failure: %s', async (_, status, headers, body, expected) => {
    const { events, failure } = await outcome(await answering(status, headers, body))
    expect(events).toEqual([])
    expect(failure).toMatchObject({ method: 'POST', path: '/runs/stream', ...expected })
  })

  it('does not take the key along to where a redirect points', async () => {
    const seen: unknown[] = []
    const elsewhere = await serve((request, response) => {
      seen.push(request.headers)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(UPDATE)
    })
    const { failure } = await outcome(await answering(307, { location: `${elsewhere.url}/runs/stream` }, ''))
    expect(failure).toMatchObject({ kind: 'http', status: 307 })
    expect(failure?.summary).toContain(`points to ${new URL(elsewhere.url).host}`)
    expect(seen).toEqual([])
  })

  it('is read no further than for its words, and not for ever', async () => {
    const server = await agent((request, response) => {
      request.resume()
      response.writeHead(502, { 'content-type': 'text/plain' })
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(60_000))) continue
        response.once('drain', more)
      }
      more()
    })
    const { failure } = await outcome(server)
    expect(failure).toMatchObject({ status: 502 })
    expect(failure?.excerpt?.length).toBeLessThanOrEqual(2048)
  })

  it('does not show the key that it echoes, nor secrets of the input', async () => {
    const server = await agent(async (request, response) => {
      const { input } = JSON.parse((await readBody(request)).toString()) as { input: { password: string } }
      response
        .writeHead(400, { 'content-type': 'text/plain' })
        .end(`bad key ${String(request.headers['x-api-key'])} and ${input.password}`)
    })
    const options = {
      assistantId: 'a',
      input: { password: 'hunter2-hunter2' },
      streamMode: 'updates' as const,
      signal: unaborted(),
    }
    const failure = await failureOf(server.streamRun(options).next())
    expect(failure.message).toContain('bad key *** and ***')
    expect(JSON.stringify({ ...failure, message: failure.message })).not.toMatch(/hunter2|4711/)
  })
})

describe('the other operations', () => {
  it('list the assistants, the oldest first', async () => {
    let body: unknown
    const server = await agent(async (request, response) => {
      body = { url: request.url, ...(JSON.parse((await readBody(request)).toString()) as object) }
      response.end(
        JSON.stringify([
          { assistant_id: 'a', graph_id: 'agent', name: null, version: 1 },
          { assistant_id: 'b', graph_id: 'other', name: 'B' },
        ]),
      )
    })
    const listed = await server.searchAssistants(unaborted())
    expect(listed.map(({ assistant_id: id, graph_id: graph, name }) => [id, graph, name])).toEqual([
      ['a', 'agent', null],
      ['b', 'other', 'B'],
    ])
    expect(body).toEqual({ url: '/assistants/search', limit: 100, offset: 0, sort_by: 'created_at', sort_order: 'asc' })
  })

  it('refuse a list of another shape', async () => {
    const server = await agent((_request, response) => void response.end('{"assistants":[]}'))
    expect(await failureOf(server.searchAssistants(unaborted()))).toMatchObject({ kind: 'protocol', code: 'wrong-shape' })
  })

  it('ask whether it is well', async () => {
    const well = await agent((request, response) => void response.writeHead(request.url === '/ok' ? 200 : 404).end('{"ok":true}'))
    await expect(well.ok(unaborted())).resolves.toBeUndefined()
    let asked = 0
    const waking = await agent((_request, response) => void response.writeHead(++asked === 1 ? 503 : 200).end())
    await expect(waking.ok(unaborted())).resolves.toBeUndefined()
    const ill = await agent((_request, response) => void response.writeHead(401).end('{"detail":"no"}'))
    expect(await failureOf(ill.ok(unaborted()))).toMatchObject({ status: 401, detail: 'no' })
  })
})
