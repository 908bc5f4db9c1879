import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeMultipart, makeRun, MULTIPART_HEADERS, type RunInput, runParts } from './support/runs.ts'
import { startTraceService, type TraceService } from './support/trace-service.ts'

let service: TraceService

beforeAll(async () => {
  service = await startTraceService()
})
afterAll(() => service.stop())

const read = async (id: string) => (await service.send('GET', `/runs/${id}`)).body
const END = { end_time: '2026-11-20T08:00:01.5Z', outputs: { answer: 'because' } }
const batch = (post: unknown[], patch: unknown[] = []) => service.send('POST', '/runs/batch', { post, patch })

describe('what is stored', () => {
  test('a run comes back with every field, sent and derived', async () => {
    const root = makeRun({ session_name: 'fields', tags: ['a', 'b'], extra: { metadata: { thread_id: 't1' } } })
    const child = makeRun(
      {
        session_name: 'fields',
        run_type: 'llm',
        name: 'model',
        start_time: '2026-11-20T08:00:00.200001Z',
        ...END,
        events: [{ name: 'new_token', time: '2026-11-20T08:00:00.300000Z' }],
        outputs: {
          usage_metadata: { input_tokens: 7, output_tokens: 5, total_tokens: 12, input_cost: 0.0000001, output_cost: 0.25 },
        },
        serialized: { id: ['x'] },
      },
      root,
    )
    expect((await batch([root, child])).status).toBe(202)
    const run = await read(child.id)
    expect(run).toMatchObject({
      id: child.id,
      tenant_id: service.ours.id,
      trace_id: root.id,
      parent_run_id: root.id,
      parent_run_ids: [root.id],
      is_root: false,
      name: 'model',
      run_type: 'llm',
      start_time: '2026-11-20T08:00:00.200001',
      end_time: '2026-11-20T08:00:01.500000',
      first_token_time: '2026-11-20T08:00:00.300000',
      status: 'success',
      dotted_order: child.dotted_order,
      trace_tier: 'shortlived',
      inputs: { question: 'why' },
      error: null,
      tags: [],
      feedback_stats: null,
      total_tokens: 12,
      prompt_tokens: 7,
      completion_tokens: 5,
      total_cost: '0.2500001',
      prompt_cost: '0.0000001',
      completion_cost: '0.25',
      serialized: { id: ['x'] },
    })
    expect(await read(root.id)).toMatchObject({
      is_root: true,
      parent_run_ids: [],
      status: 'pending',
      tags: ['a', 'b'],
      thread_id: 't1',
      total_tokens: 0,
      total_cost: null,
      child_run_ids: [child.id],
      direct_child_run_ids: [child.id],
    })
  })

  test('every way in stores the same run', async () => {
    const forms: ((run: RunInput) => Promise<number>)[] = [
      async (run) => (await service.send('POST', '/runs', run)).status,
      async (run) => (await service.send('POST', '/api/v1/runs/batch', { post: [run] })).status,
      async (run) =>
        (await service.send('POST', '/runs/multipart', makeMultipart(runParts('post', run)), { headers: MULTIPART_HEADERS }))
          .status,
      async (run) =>
        (
          await service.send('POST', '/api/v1/runs/multipart', gzipSync(makeMultipart(runParts('post', run).toReversed())), {
            headers: { ...MULTIPART_HEADERS, 'content-encoding': 'gzip' },
          })
        ).status,
      async (run) =>
        (
          await service.send('POST', '/runs/multipart', zstdCompressSync(makeMultipart(runParts('post', run))), {
            headers: { ...MULTIPART_HEADERS, 'content-encoding': 'zstd' },
          })
        ).status,
    ]
    const seen: unknown[] = []
    for (const form of forms) {
      const run = makeRun({
        session_name: 'forms',
        ...END,
        error: 'ünglücklich "quoted"',
        extra: { metadata: { k: 'v' } },
        events: [],
      })
      expect(await form(run)).toBe(202)
      const {
        id: _id,
        trace_id: _trace,
        dotted_order: _order,
        app_path: _path,
        trace_first_received_at: _at,
        ...rest
      } = await read(run.id)
      seen.push(rest)
    }
    for (const other of seen) expect(other).toEqual(seen[0])
    expect(seen[0]).toMatchObject({ status: 'error', error: 'ünglücklich "quoted"' })
  })

  test('times are taken in every form that clients send', async () => {
    for (const [sent, kept] of [
      [1_763_663_752_090, '2025-11-20T18:35:52.090000'],
      [1_763_663_752, '2025-11-20T18:35:52.000000'],
      ['2026-11-20T08:00:00+02:00', '2026-11-20T06:00:00.000000'],
      ['2026-11-20T08:00:00.1234567', '2026-11-20T08:00:00.123456'],
      ['2026-11-20 08:00:00', '2026-11-20T08:00:00.000000'],
    ] as const) {
      const run = { ...makeRun(), start_time: sent }
      expect((await batch([run])).status).toBe(202)
      expect((await read(run.id)).start_time).toBe(kept)
    }
  })

  test('an end before the start and a start in the future are kept as they are', async () => {
    const run = makeRun({ start_time: '2090-01-01T00:00:00Z', end_time: '2020-01-01T00:00:00Z' })
    expect((await batch([run])).status).toBe(202)
    expect(await read(run.id)).toMatchObject({ start_time: '2090-01-01T00:00:00.000000', end_time: '2020-01-01T00:00:00.000000' })
  })

  test('NUL characters and halves of surrogate pairs are replaced, wherever they stand', async () => {
    const run = makeRun({
      name: 'a\0b',
      tags: ['t\0'],
      error: 'e\0\uD800',
      inputs: { 'k\0': 'v\0', half: '\uD800' },
      extra: { metadata: { x: '\0' } },
    })
    expect((await batch([run])).status).toBe(202)
    const other = makeRun({ name: 'x', inputs: { a: '\0' } })
    await service.send('POST', '/runs/multipart', makeMultipart(runParts('post', other)), { headers: MULTIPART_HEADERS })
    expect(await read(run.id)).toMatchObject({
      name: 'a\uFFFDb',
      tags: ['t\uFFFD'],
      error: 'e\uFFFD\uFFFD',
      inputs: { 'k\uFFFD': 'v\uFFFD', half: '\uFFFD' },
      extra: { metadata: { x: '\uFFFD' } },
    })
    expect(await read(other.id)).toMatchObject({ inputs: { a: '\uFFFD' } })
  })

  test('a run without a dotted order gets one from its parents, also when they come later', async () => {
    const [root, child, leaf] = [randomUUID(), randomUUID(), randomUUID()]
    const bare = (id: string, more: Record<string, unknown>) => ({
      id,
      name: id,
      run_type: 'chain',
      inputs: {},
      start_time: '2026-11-20T08:00:00Z',
      ...more,
    })
    expect((await service.send('POST', '/runs', bare(leaf, { parent_run_id: child, trace_id: root }))).status).toBe(202)
    expect((await service.send('POST', '/runs', bare(child, { parent_run_id: root, trace_id: root }))).status).toBe(202)
    expect((await service.send('POST', '/runs', bare(root, {}))).status).toBe(202)
    expect(await read(leaf)).toMatchObject({ parent_run_ids: [root, child], trace_id: root })
    expect((await read(root)).dotted_order).toBe(`20261120T080000000000Z${root}`)
    expect((await service.send('POST', '/runs', bare(randomUUID(), { parent_run_id: leaf }))).status).toBe(202)
    expect(await read(root)).toMatchObject({ child_run_ids: expect.arrayContaining([child, leaf]) })
  })

  test('attachments are counted, not kept', async () => {
    const run = makeRun()
    const image = Buffer.concat([Buffer.from('\r\n------TestBoundary7\r\n'), Buffer.alloc(1000, 1)])
    const parts = [...runParts('post', run), { name: `attachment.${run.id}.image`, body: image, type: 'image/png' }]
    expect((await service.send('POST', '/runs/multipart', makeMultipart(parts), { headers: MULTIPART_HEADERS })).status).toBe(202)
    expect((await read(run.id)).attachments).toEqual([{ name: 'image', content_type: 'image/png', size_bytes: image.length }])
  })
})

describe('posts and patches', () => {
  test('a patch adds and replaces, and erases nothing', async () => {
    const run = makeRun({ tags: ['keep'], extra: { a: 1 } })
    await batch([run])
    expect((await service.send('PATCH', `/runs/${run.id}`, { ...END, inputs: null, name: 'renamed' })).status).toBe(202)
    expect(await read(run.id)).toMatchObject({
      name: 'renamed',
      tags: ['keep'],
      inputs: { question: 'why' },
      outputs: { answer: 'because' },
      status: 'success',
    })
  })

  test('a patch before its post makes a pending run, which the post completes', async () => {
    const run = makeRun({ session_name: 'early' })
    expect((await service.send('PATCH', `/runs/${run.id}`, { ...END, tags: ['p'] })).status).toBe(202)
    expect(await read(run.id)).toMatchObject({ status: 'pending', name: '', session_id: null })
    const found = await service.send('POST', '/runs/query', { id: [run.id] })
    expect(found.body.runs).toEqual([])
    await batch([run])
    expect(await read(run.id)).toMatchObject({ status: 'success', name: 'run', outputs: { answer: 'because' }, tags: ['p'] })
    expect((await service.send('POST', '/runs/query', { id: [run.id] })).body.runs).toHaveLength(1)
  })

  test('a post that is sent again after its patch takes nothing of the patch back', async () => {
    const run = makeRun({ name: 'first', outputs: { partial: true } })
    await batch([run])
    await service.send('PATCH', `/runs/${run.id}`, { name: 'second', outputs: { full: true } })
    await batch([run])
    expect(await read(run.id)).toMatchObject({ name: 'second', outputs: { full: true } })
  })

  test('a batch that is sent again changes nothing at all', async () => {
    const root = makeRun({ tags: ['x'], extra: { metadata: {} } })
    const runs = [root, makeRun({ ...END }, root)]
    // `ctid` is the place of the row: a row that is written again moves, though it says the same.
    const snapshot = async () =>
      (await sql`select r.ctid::text, r.* from runs r where trace_id = ${root.id} order by id`.execute(service.db)).rows
    await batch(runs, [{ id: root.id, ...END }])
    const before = await snapshot()
    for (let again = 0; again < 3; again += 1) expect((await batch(runs, [{ id: root.id, ...END }])).status).toBe(202)
    await batch(runs)
    expect(await snapshot()).toEqual(before)
  })

  test('concurrent batches of the same runs neither deadlock nor lose anything', async () => {
    const runs = Array.from({ length: 40 }, () => makeRun({ session_name: `concurrent-${randomUUID()}` }))
    const shuffled = () => runs.toSorted(() => Math.random() - 0.5)
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        index % 2 === 0
          ? batch(shuffled())
          : batch(
              [],
              shuffled().map(({ id }) => ({ id, ...END })),
            ),
      ),
    )
    // A deadlock is tried again and so would pass unseen; PostgreSQL counts it, within a second.
    await sleep(1500)
    const { rows } = await sql`select deadlocks::integer from pg_stat_database where datname = current_database()`.execute(
      service.db,
    )
    expect(rows).toEqual([{ deadlocks: 0 }])
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202))
    const { body } = await service.send('POST', '/runs/query', { id: runs.map(({ id }) => id) })
    expect(body.runs).toHaveLength(40)
    for (const run of body.runs)
      expect(run).toMatchObject({ status: 'success', inputs: { question: 'why' }, outputs: { answer: 'because' } })
  })

  test('what places a run stays: start, tracing project, trace', async () => {
    const run = makeRun({ session_name: 'first home' })
    await batch([run])
    await batch([], [{ id: run.id, start_time: '2030-01-01T00:00:00Z', session_name: 'second home' }])
    const stored = await read(run.id)
    expect(stored.start_time).toBe('2026-11-20T08:00:00.123456')
    const project = await service.send('GET', `/sessions/${stored.session_id}`)
    expect(project.body.name).toBe('first home')
    const elsewhere = makeRun({ id: run.id }, makeRun())
    expect(await batch([elsewhere])).toMatchObject({ status: 409, body: { error: 'Conflict' } })
  })
})

describe('other workspaces', () => {
  test('the same id in two workspaces is two runs, and neither sees the other', async () => {
    const run = makeRun({ inputs: { whose: 'ours' } })
    await batch([run])
    expect((await service.send('GET', `/runs/${run.id}`, undefined, { workspace: service.theirs })).status).toBe(404)
    const theirs = { workspace: service.theirs }
    expect((await service.send('PATCH', `/runs/${run.id}`, { name: 'stolen', ...END }, theirs)).status).toBe(202)
    expect((await service.send('POST', '/runs/batch', { post: [{ ...run, inputs: { whose: 'theirs' } }] }, theirs)).status).toBe(
      202,
    )
    expect(await read(run.id)).toMatchObject({ name: 'run', inputs: { whose: 'ours' }, status: 'pending' })
    expect((await service.send('GET', `/runs/${run.id}`, undefined, theirs)).body).toMatchObject({
      name: 'stolen',
      inputs: { whose: 'theirs' },
    })
  })

  test("another workspace's tracing project is a 404, and nothing is stored", async () => {
    const project = await service.send('POST', '/sessions', { name: 'theirs' }, { workspace: service.theirs })
    const runs = [makeRun(), makeRun({ session_id: project.body.id })]
    expect(await batch(runs)).toMatchObject({
      status: 404,
      body: { error: 'Not found', details: expect.stringContaining(project.body.id) },
    })
    for (const run of runs) expect((await service.send('GET', `/runs/${run.id}`)).status).toBe(404)
    for (const [method, body] of [['GET'], ['PATCH', { name: 'x' }], ['DELETE']] as const) {
      expect((await service.send(method, `/sessions/${project.body.id}`, body)).status).toBe(404)
    }
  })

  test('no key, a wrong key', async () => {
    const nobody = { workspace: { id: '', key: 'wrong' } }
    expect(await service.send('POST', '/runs/batch', { post: [] }, nobody)).toMatchObject({
      status: 401,
      body: { error: 'Unauthorized' },
    })
    expect((await service.send('GET', '/sessions', undefined, nobody)).status).toBe(401)
    expect((await service.send('GET', '/info', undefined, nobody)).status).toBe(200)
  })
})
