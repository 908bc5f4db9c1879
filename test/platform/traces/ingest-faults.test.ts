import { randomBytes, randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BATCH_BYTES_MAX, BATCH_RUNS_MAX } from '../../../src/contract/ingest.ts'
import { BOUNDARY, makeMultipart, makeRun, MULTIPART_HEADERS, type RunInput, runParts, type TestPart } from './support/runs.ts'
import { startTraceService, type TraceService } from './support/trace-service.ts'

let service: TraceService

beforeAll(async () => {
  service = await startTraceService()
})
afterAll(() => service.stop())

const GOOD = makeRun()
const count = async () =>
  Number(
    (
      await service.db
        .selectFrom('runs')
        .select((on) => on.fn.countAll().as('n'))
        .executeTakeFirstOrThrow()
    ).n,
  )
const sendMultipart = (parts: readonly TestPart[] | Buffer, headers: Record<string, string> = {}) =>
  service.send('POST', '/runs/multipart', Buffer.isBuffer(parts) ? parts : makeMultipart(parts), {
    headers: { ...MULTIPART_HEADERS, ...headers },
  })

/** What came of a request that is to be refused: each has a good run beside what is wrong, and nothing of it may be there. */
async function outcome(answer: Promise<{ status: number; body: { error: string; details: string } }>) {
  const before = await count()
  const { status, body } = await answer
  return { status, ...body, stored: (await count()) - before }
}

function refused(status: number, reason: string | RegExp) {
  return { status, error: expect.any(String), details: expect.stringMatching(reason), stored: 0 }
}

describe('runs that are not valid', () => {
  const faults: [string, (run: RunInput) => Record<string, unknown>, string][] = [
    ['an id that is no UUID', () => ({ id: 'nope' }), 'id is not a UUID'],
    ['a trace id that is no UUID', () => ({ trace_id: '7' }), 'trace_id is not a UUID'],
    ['a parent that is the run itself', (run) => ({ parent_run_id: run.id }), 'parent_run_id is the id of the run itself'],
    ['a dotted order that is none', () => ({ dotted_order: 'first' }), 'dotted_order cannot be read: its segment 1'],
    ['a dotted order of another run', () => ({ dotted_order: makeRun().dotted_order }), 'not with the id of the run'],
    ['a dotted order of another trace', () => ({ trace_id: randomUUID() }), 'not with the trace_id'],
    ['a parent that the dotted order does not have', () => ({ parent_run_id: randomUUID() }), 'has the parent none'],
    ['a time that is none', () => ({ start_time: 'yesterday' }), 'start_time is not a time'],
    ['a day that is none', () => ({ end_time: '2026-02-30T00:00:00Z' }), 'end_time is not a time'],
    ['an unknown type', () => ({ run_type: 'miracle' }), 'run_type is not one of'],
    ['no type', () => ({ run_type: null }), 'run_type is missing'],
    ['no name', () => ({ name: undefined }), 'name is missing'],
    ['a name that is no text', () => ({ name: 7 }), 'name is not a text'],
    ['tags that are no list', () => ({ tags: 'a,b' }), 'tags is not a list'],
    ['a tag that is no text', () => ({ tags: [{}] }), 'tags holds something else than texts'],
    ['a project id that is no UUID', () => ({ session_id: 'p' }), 'session_id is not a UUID'],
    ['an endless name', () => ({ name: 'x'.repeat(10_001) }), 'name is longer than'],
  ]
  test.each(faults)('%s', async (_name, change, reason) => {
    const run = makeRun()
    expect(await outcome(service.send('POST', '/runs/batch', { post: [GOOD, { ...run, ...change(run) }] }))).toEqual(
      refused(422, reason),
    )
  })

  test('JSON that is nested without end', async () => {
    const run = makeRun()
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    expect(
      await outcome(
        sendMultipart([...runParts('post', { ...run, inputs: undefined }), { name: `post.${run.id}.inputs`, body: deep }]),
      ),
    ).toEqual(refused(400, 'nested more than'))
    expect(
      await outcome(
        service.send('POST', '/runs/batch', `{"post":[${JSON.stringify(GOOD)},{"id":"${run.id}","inputs":${deep}}]}`),
      ),
    ).toEqual(refused(422, 'nested more than'))
  })

  test('a patch whose body names another run than its address', async () => {
    expect(await outcome(service.send('PATCH', `/runs/${randomUUID()}`, { id: randomUUID() }))).toEqual(
      refused(422, 'its body names another id'),
    )
    expect(await outcome(service.send('PATCH', '/runs/seven', {}))).toEqual(refused(422, 'the id is not a UUID'))
  })

  test('a child that says neither where it stands nor has a parent that is known', async () => {
    const lost = { id: randomUUID(), name: 'x', run_type: 'tool', start_time: 1_763_663_752_090, parent_run_id: randomUUID() }
    expect(await outcome(service.send('POST', '/runs/batch', { post: [GOOD, lost] }))).toEqual(
      refused(422, 'its parent .* is not known'),
    )
  })

  test('more runs than a batch may have', async () => {
    const post = Array.from({ length: BATCH_RUNS_MAX + 1 }, () => makeRun())
    expect(await outcome(service.send('POST', '/runs/batch', { post }))).toEqual(refused(422, `at most ${BATCH_RUNS_MAX}`))
  })

  test.each([
    ['no JSON', '{', 'no JSON'],
    ['no object', '[]', 'not a JSON object'],
    ['an empty body', '', 'no JSON'],
    ['a list that is none', '{"post":{}}', 'post is not a list of runs'],
    ['items that are no runs', '{"patch":[7]}', 'patch is not a list of runs'],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'no JSON'],
  ])('a batch with %s', async (_name, body, reason) => {
    expect(await outcome(service.send('POST', '/runs/batch', body))).toEqual(refused(400, reason))
  })
})

describe('multipart bodies that are not right', () => {
  const id = randomUUID()
  const raw = (text: string) => Buffer.from(text.replaceAll('\n', '\r\n').replaceAll('B', BOUNDARY))
  const part = (headers: string, body = '{}') => raw(`--B\n${headers}\n\n${body}\n--B--\n`)
  const disposition = `Content-Disposition: form-data; name="post.${id}"`

  test.each<[string, Buffer, string]>([
    ['an empty body', Buffer.alloc(0), 'does not begin with its boundary'],
    ['another boundary', raw('--other\n'), 'does not begin with its boundary'],
    ['no end', raw(`--B\n${disposition}\nContent-Type: application/json; length=2\n\n{}`), 'does not end with the boundary'],
    ['headers that do not end', raw(`--B\n${disposition}`), 'headers of part 1 do not end'],
    ['something behind the boundary', raw('--Bx\n'), 'not followed by a line end'],
    ['no disposition', part('Content-Type: application/json; length=2'), 'no Content-Disposition'],
    ['no type', part(disposition), 'has no Content-Type'],
    ['no length', part(`${disposition}\nContent-Type: application/json`), 'neither a Content-Length nor a length'],
    [
      'a length that is too short',
      part(`${disposition}\nContent-Type: application/json; length=1`),
      'says that it has 1 bytes, and has 2',
    ],
    [
      'a length that is too long',
      part(`${disposition}\nContent-Type: application/json; length=200`),
      'says that it has 200 bytes, and has 2',
    ],
    ['a length that is no number', part(`${disposition}\nContent-Type: application/json; length=-2`), 'which is no number'],
    [
      'an encoding of its own',
      part(`${disposition}\nContent-Type: application/json; length=2\nContent-Encoding: gzip`),
      'has an encoding of its own',
    ],
    ['a header that is none', part(`${disposition}\nnonsense`), 'is no header of a part'],
    ['another type', part(`${disposition}\nContent-Type: text/plain; length=2`), 'not application/json'],
  ])('%s', async (_name, body, reason) => {
    expect(await outcome(sendMultipart(body))).toEqual(refused(400, reason))
  })

  const json = (name: string, value: unknown): TestPart => ({
    name,
    body: typeof value === 'string' ? value : JSON.stringify(value),
  })
  test.each<[string, TestPart[], number, string]>([
    ['no JSON', [json(`post.${id}`, '{"a":')], 400, 'it is no JSON'],
    ['no object', [json(`post.${id}`, '[]')], 400, 'not a JSON object'],
    ['a big field without its run', [json(`post.${id}.inputs`, {})], 400, 'that it belongs to is missing'],
    ['an unknown big field', [json(`post.${id}.secrets`, {})], 400, 'secrets is no part of a run'],
    ['a name without a UUID', [json('post.me', {})], 400, 'no UUID'],
    ['a name of another kind', [json(`put.${id}`, {})], 400, 'begins with none of'],
    ['a name with too many dots', [json(`post.${id}.inputs.x`, {})], 400, 'too many dots'],
    [
      'a run without its trace',
      [json(`post.${id}`, { id, name: 'x', run_type: 'chain', start_time: 1_763_663_752_090 })],
      422,
      'dotted_order is missing',
    ],
    ['an attachment with a dot in its name', [json(`attachment.${id}.a.b`, {})], 400, 'without dots'],
    ['feedback without a key', [json(`feedback.${id}`, { run_id: id, score: 1 })], 422, 'key'],
  ])('a part with %s', async (_name, parts, status, reason) => {
    expect(await outcome(sendMultipart([...runParts('post', GOOD), ...parts]))).toEqual(refused(status, reason))
  })

  test('a part that is there twice', async () => {
    const [main, ...rest] = runParts('post', makeRun())
    expect(await outcome(sendMultipart([main!, ...rest, main!]))).toEqual(refused(400, 'it is there twice'))
    expect(await outcome(sendMultipart([main!, ...rest, ...rest]))).toEqual(refused(400, 'it is there twice'))
  })

  test('another media type, or one without a boundary', async () => {
    expect(await outcome(sendMultipart([], { 'content-type': 'application/json' }))).toEqual(
      refused(415, 'not multipart/form-data'),
    )
    expect(await outcome(sendMultipart([], { 'content-type': 'multipart/form-data' }))).toEqual(
      refused(400, 'no usable boundary'),
    )
  })
})

describe('compression and size', () => {
  const good = makeMultipart(runParts('post', makeRun()))

  test('broken, cut short, unknown, or not what it says', async () => {
    const whole = gzipSync(good)
    expect(await outcome(sendMultipart(good, { 'content-encoding': 'gzip' }))).toEqual(refused(400, 'could not be decompressed'))
    expect(await outcome(sendMultipart(good, { 'content-encoding': 'zstd' }))).toEqual(refused(400, 'could not be decompressed'))
    expect(await outcome(sendMultipart(whole.subarray(0, -20), { 'content-encoding': 'gzip' }))).toEqual(
      refused(400, 'could not be decompressed'),
    )
    const zstd = zstdCompressSync(good)
    expect(await outcome(sendMultipart(zstd.subarray(0, -20), { 'content-encoding': 'zstd' }))).toEqual(
      refused(400, /could not be decompressed|does not/),
    )
    expect(await outcome(sendMultipart(whole, { 'content-encoding': 'br' }))).toEqual(refused(415, 'is not known'))
  })

  test('a small body that becomes an endless one is refused, and costs little', async () => {
    const bomb = gzipSync(Buffer.alloc(400 * 1024 * 1024), { level: 1 })
    const before = process.memoryUsage().rss
    expect(await outcome(sendMultipart(bomb, { 'content-encoding': 'gzip' }))).toEqual(refused(413, 'larger than'))
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024)
  })

  test.each([
    ['with a length', true],
    ['in chunks', false],
  ])('a body of 100 MB %s is refused before it was read', async (_name, declared) => {
    const size = 100 * 1024 * 1024
    let sent = 0
    const { status, body } = await new Promise<{ status: number; body: string }>((resolve, reject) => {
      const headers = {
        'x-api-key': service.ours.key,
        'content-type': 'application/json',
        ...(declared ? { 'content-length': size } : {}),
      }
      const client = request(`${service.url}/runs/batch`, { method: 'POST', headers }, (response) => {
        let text = ''
        response.on('data', (chunk: Buffer) => (text += chunk.toString()))
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, body: text })
          client.destroy()
        })
      })
      client.on('error', reject)
      const chunk = Buffer.alloc(1024 * 1024, 0x20)
      const write = () => {
        while (sent < size && !client.destroyed) {
          sent += chunk.length
          if (!client.write(chunk)) return
        }
        if (!client.destroyed) client.end()
      }
      client.on('drain', write)
      write()
    })
    expect(status).toBe(413)
    expect(JSON.parse(body)).toMatchObject({ error: 'Payload too large' })
    expect(sent).toBeLessThan(declared ? 8 * 1024 * 1024 : BATCH_BYTES_MAX + 16 * 1024 * 1024)
  })

  test('a client that goes away in the middle leaves nothing behind', async () => {
    const before = await count()
    await new Promise<void>((resolve) => {
      const client = request(`${service.url}/runs/multipart`, {
        method: 'POST',
        headers: { 'x-api-key': service.ours.key, ...MULTIPART_HEADERS, 'content-length': good.length },
      })
      client.on('error', () => resolve())
      client.write(good.subarray(0, good.length / 2), () => client.destroy())
      client.on('close', () => resolve())
    })
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(await count()).toBe(before)
  })
})

test('whatever comes, it is either taken whole or refused with the reason', async () => {
  const whole = (run: RunInput) => makeMultipart(runParts('post', run))
  const seen = { taken: 0, refused: 0 }
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('/runs/multipart', '/runs/batch', '/runs', '/otel/v1/traces'),
      fc.constantFrom('cut', 'flip', 'random', 'repeat', 'none'),
      fc.nat(2000),
      fc.nat(255),
      fc.constantFrom('', 'gzip', 'zstd'),
      fc.constantFrom(MULTIPART_HEADERS['content-type'], 'application/json', 'application/x-protobuf'),
      async (path, how, place, byte, encoding, type) => {
        const run = makeRun()
        const start =
          path === '/runs/multipart' ? whole(run) : Buffer.from(JSON.stringify(path === '/runs' ? run : { post: [run] }))
        const at = place % start.length
        const bodies = {
          cut: start.subarray(0, at),
          flip: Buffer.concat([start.subarray(0, at), Buffer.from([byte]), start.subarray(at + 1)]),
          random: randomBytes(at + 1),
          repeat: Buffer.concat([start, start]),
          none: start,
        }
        const before = await count()
        const answer = await service.send('POST', path, bodies[how as keyof typeof bodies], {
          headers: { 'content-type': type, ...(encoding === '' ? {} : { 'content-encoding': encoding }) },
        })
        expect(answer.status).toBeLessThan(500)
        expect(service.defects).toEqual([])
        const stored = (await count()) - before
        if (answer.status >= 400) {
          seen.refused += 1
          expect(stored).toBe(0)
        } else {
          seen.taken += stored
          expect(stored).toBeLessThanOrEqual(1)
        }
      },
    ),
    { numRuns: 400 },
  )
  // What was made came to both ends.
  expect(Math.min(seen.taken, seen.refused)).toBeGreaterThan(0)
})
