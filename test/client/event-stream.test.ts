import { once } from 'node:events'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ServerSentEvent } from '../../src/client/event-stream.ts'
import { startServer } from '../support/http-server.ts'
import { testTransport, unaborted } from './support/fixtures.ts'

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
})
