import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { ServerSentEvent } from '../../src/client/event-stream.ts'
import { startServer } from '../support/http-server.ts'
import { failureOf, testTransport, unaborted } from './support/fixtures.ts'

/** The pieces in which the next stream goes out. */
let pieces: readonly Uint8Array[] = []
let server: Awaited<ReturnType<typeof startServer>>

beforeAll(async () => {
  server = await startServer(async (request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const piece of pieces) {
      // A packet of its own for each.
      if (!response.write(piece)) await once(response, 'drain')
      await new Promise((resolve) => setImmediate(resolve))
    }
    response.end()
  })
})
afterAll(() => server.stop())

async function read(sent: readonly Uint8Array[]): Promise<ServerSentEvent[]> {
  pieces = sent
  const events: ServerSentEvent[] = []
  const stream = testTransport({ baseUrl: server.url }).stream({ method: 'POST', path: '/', body: {}, signal: unaborted() })
  for await (const event of stream) events.push(event)
  return events
}

/** The rules of the standard ("interpreting an event stream"), written down once more and slowly: for a whole text that ends with a blank line. */
function interpret(text: string): ServerSentEvent[] {
  const events: ServerSentEvent[] = []
  let [event, data] = ['', [] as string[]]
  for (const line of text.replace(/^\ufeff/, '').split(/\r\n|\r|\n/)) {
    if (line === '') {
      if (data.length > 0) events.push({ event: event === '' ? 'message' : event, data: data.join('\n') })
      ;[event, data] = ['', []]
      continue
    }
    const colon = line.indexOf(':')
    const [field, value] = colon === -1 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')]
    if (field === 'event') event = value
    if (field === 'data') data.push(value)
  }
  return events
}

function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b)
  return [0, ...ends]
    .map((start, index) => bytes.subarray(start, ends[index] ?? bytes.length))
    .filter((piece) => piece.length > 0)
}

const word = fc.string({ unit: fc.constantFrom('a', '{', '"', ':', ' ', 'ü', '🌍', '\u2028', '\0', 'data'), maxLength: 8 })
const line = fc.oneof(
  word.map((text) => `data: ${text}`),
  word.map((text) => `data:${text}`),
  word.map((text) => `event: ${text}`),
  word.map((text) => `: ${text}`),
  fc.constantFrom('', 'data', 'event', 'id: 7', 'retry: 10', 'unknown: x', ' data: x'),
)
const stream = fc
  .array(fc.tuple(line, fc.constantFrom('\n', '\r', '\r\n')), { maxLength: 25 })
  .map((lines) => `${lines.map(([text, end]) => text + end).join('')}data: last\n\n`)

describe('a stream of events', () => {
  it('is read as the standard says, wherever the network cuts it', { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(stream, fc.array(fc.nat(400), { maxLength: 12 }), async (text, places) => {
        expect(await read(cut(new TextEncoder().encode(text), places))).toEqual(interpret(text))
      }),
      { numRuns: 200 },
    )
  })

  it('that ends in the middle of an event is no good end, wherever that is', { timeout: 60_000 }, async () => {
    const text = 'event: updates\ndata: {"text":"grüße 🌍"}\n\n'
    const bytes = new TextEncoder().encode(text)
    for (let length = 1; length < bytes.length - 1; length += 1) {
      await expect(read([bytes.subarray(0, length)]), `cut after ${length} bytes`).rejects.toMatchObject({
        name: 'RequestFailure',
        kind: 'protocol',
      })
    }
    expect(await read([bytes])).toHaveLength(1)
  })

  it.each([
    ['nothing at all', ''],
    ['a comment alone', ': hello\n'],
    ['a comment that ends with CR', ': hello\r'],
    ['a comment that ends with CR LF', 'data: 1\n\n: bye\r\n'],
  ])('may be %s', async (_what, text) => {
    await expect(read(text === '' ? [] : [new TextEncoder().encode(text)])).resolves.toEqual(
      text.includes('data') ? [{ event: 'message', data: '1' }] : [],
    )
  })

  it.each([
    ['the middle of a comment', [0x64, 0x61, 0x74, 0x61, 0x3a, 0x31, 0x0a, 0x0a, 0x3a, 0x20, 0x62, 0x79, 0x65]],
    ['half a character', [0x64, 0x61, 0x74, 0x61, 0x3a, 0x31, 0x0a, 0x0a, 0xc3]],
  ])('that ends in %s is no good end, though its events are whole', async (_what, bytes) => {
    await expect(read([Uint8Array.from(bytes)])).rejects.toMatchObject({
      code: 'truncated',
      excerpt: null,
      summary: 'answered 200 and the stream ended in the middle of an event',
    })
  })

  it('may have as many bytes as its bound, and not one more', async () => {
    pieces = [new TextEncoder().encode('data: 1\n\n')]
    const bounded = async (maxBytes: number) => {
      const transport = testTransport({ baseUrl: server.url })
      const events: ServerSentEvent[] = []
      for await (const one of transport.stream({ method: 'POST', path: '/', body: {}, maxBytes, signal: unaborted() }))
        events.push(one)
      return events
    }
    expect(await bounded(9)).toEqual([{ event: 'message', data: '1' }])
    const failure = await failureOf(bounded(8))
    expect(failure).toMatchObject({
      kind: 'protocol',
      code: 'oversized',
      summary: 'answered 200 with more than 8 bytes',
      ambiguous: true,
    })
  })
})

describe('an answer', () => {
  let answer: (response: ServerResponse) => void
  let other: Awaited<ReturnType<typeof startServer>>
  beforeAll(async () => {
    other = await startServer((request, response) => {
      request.resume()
      answer(response)
    })
  })
  afterAll(() => other.stop())
  afterEach(() => void vi.useRealTimers())

  const next = (signal = unaborted()) =>
    testTransport({ baseUrl: other.url }).stream({ method: 'POST', path: '/', body: {}, signal }).next()
  const TYPE = 'content-type'

  it.each(['text/event-stream', 'Text/Event-Stream ; charset=utf-8'])('of the type %s is a stream', async (type) => {
    answer = (response) => void response.writeHead(200, { [TYPE]: type, 'content-encoding': 'identity' }).end('data: 1\n\n')
    expect(await next()).toEqual({ done: false, value: { event: 'message', data: '1' } })
  })

  it.each<[string, number, Record<string, string>, string, object]>([
    ['without a type', 200, {}, 'data: 1\n\n', { summary: 'answered 200 with no content type instead of a stream of events' }],
    [
      'that is a page',
      200,
      { [TYPE]: 'text/html' },
      '<p>Sign in',
      { code: 'html', summary: 'answered 200 with HTML instead of a stream, as a sign-in page or a proxy does' },
    ],
    ['that is a choice', 300, { [TYPE]: 'text/event-stream' }, 'data: 1\n\n', { kind: 'http', status: 300 }],
    ['in JSON under a plain type', 422, { [TYPE]: 'text/plain' }, '{"detail":"no such graph"}', { detail: 'no such graph' }],
  ])('%s is no stream', async (_what, status, headers, body, expected) => {
    answer = (response) => void response.writeHead(status, headers).end(body)
    expect(await failureOf(next())).toMatchObject(expected)
  })

  it('that refuses in several pieces is read to its end', async () => {
    answer = async (response) => {
      response.writeHead(422, { [TYPE]: 'application/json' })
      response.write('{"detail":"first half,')
      await new Promise((resolve) => setTimeout(resolve, 20))
      response.end(' second half"}')
    }
    expect((await failureOf(next())).detail).toBe('first half, second half')
  })

  it('that refuses and does not end is read for ten seconds', async () => {
    answer = (response) => void response.writeHead(502, { [TYPE]: 'text/plain' }).write('warming up')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const pending = failureOf(next())
    while (vi.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve))
    vi.advanceTimersByTime(9999)
    await new Promise((resolve) => setImmediate(resolve))
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(1)
    expect(await pending).toMatchObject({ kind: 'http', status: 502 })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('that refuses and does not end is left when it is cancelled', async () => {
    const controller = new AbortController()
    answer = (response) => {
      response.writeHead(502, { [TYPE]: 'text/plain' }).write('warming up')
      setTimeout(() => controller.abort(), 40)
    }
    expect(await failureOf(next(controller.signal))).toMatchObject({
      kind: 'cancelled',
      summary: 'was cancelled',
      ambiguous: true,
    })
  })
})
