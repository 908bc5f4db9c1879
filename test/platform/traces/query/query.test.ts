import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EXPORTABLE_FIELDS } from '../../../../src/contract/exportable-fields.ts'
import { runSchema } from '../../../../src/contract/run.ts'
import { fixIngestedSequence } from '../../../../src/platform/traces/ingested-sequence.ts'
import { makeRun, type RunInput } from '../support/runs.ts'
import { type Answer, startTraceService, type TraceService } from '../support/trace-service.ts'

let service: TraceService

beforeAll(async () => {
  service = await startTraceService()
})
afterAll(() => service.stop())

const query = (body: unknown, path = '/runs/query') => service.send('POST', path, body)
const post = async (runs: unknown[]) => {
  for (let index = 0; index < runs.length; index += 100) {
    const { status } = await service.send('POST', '/runs/batch', { post: runs.slice(index, index + 100) })
    if (status !== 202) throw new Error(`the runs were not taken: ${status}`)
  }
}
const sessionOf = async (name: string): Promise<string> => (await service.send('GET', `/sessions?name=${name}`)).body[0].id
const ids = (runs: readonly { id: string }[]) => runs.map(({ id }) => id)

describe('pages', () => {
  test('every run once, in order, though many start at once and others arrive meanwhile', async () => {
    // All in the same two microseconds: the ids decide.
    const runs = Array.from({ length: 250 }, (_, index) =>
      makeRun({ session_name: 'pages', start_time: `2026-11-20T08:00:00.00000${index % 2}Z` }),
    )
    await post(runs)
    const session = [await sessionOf('pages')]
    for (const order of ['asc', 'desc'] as const) {
      const seen: { id: string; start_time: string }[] = []
      let cursor: string | null = null
      do {
        const { body }: Answer = await query({ session, order, limit: 40, cursor, select: ['start_time'] })
        expect(body.runs.length).toBeLessThanOrEqual(40)
        seen.push(...body.runs)
        cursor = body.cursors.next
        const behind = order === 'asc' ? '2020-01-01T00:00:00Z' : '2030-01-01T00:00:00Z'
        if (seen.length === 80) await post([makeRun({ session_name: 'pages', start_time: behind })])
      } while (cursor !== null)
      const wanted = new Set(ids(runs))
      expect(ids(seen).filter((id) => wanted.has(id))).toHaveLength(250)
      expect(new Set(ids(seen)).size).toBe(seen.length)
      const places = seen.map((run) => `${run.start_time} ${run.id}`)
      expect(places).toEqual(order === 'asc' ? places.toSorted() : places.toSorted().toReversed())
    }
  })

  test('a page ends where its data would become too much', async () => {
    const big = 'x'.repeat(15 * 1024 * 1024)
    for (let index = 0; index < 6; index += 1) await post([makeRun({ session_name: 'big', inputs: { big } })])
    const session = [await sessionOf('big')]
    const first = await query({ session, select: ['inputs'] })
    expect(first.body.runs).toHaveLength(5)
    const second = await query({ session, select: ['inputs'], cursor: first.body.cursors.next })
    expect(second.body.runs).toHaveLength(1)
    expect(second.body.cursors.next).toBeNull()
  })

  test('a cursor that is none, or of the other order', async () => {
    const session = [await sessionOf('pages')]
    const { body } = await query({ session, limit: 1 })
    expect(await query({ session, cursor: 'x' })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('cursors.next') },
    })
    expect(await query({ session, cursor: body.cursors.next, order: 'asc' })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('keep the order') },
    })
  })
})

describe('what a query asks for', () => {
  let root: RunInput
  let child: RunInput
  let other: RunInput
  let session: string[]

  beforeAll(async () => {
    const example = randomUUID()
    root = makeRun({ session_name: 'asks', name: 'root', reference_example_id: example, tags: ['prod'] })
    child = makeRun(
      {
        session_name: 'asks',
        name: 'child',
        run_type: 'llm',
        error: 'bad',
        start_time: '2026-11-20T08:00:01Z',
        end_time: '2026-11-20T08:00:03Z',
      },
      root,
    )
    other = makeRun({
      session_name: 'asks',
      name: 'other',
      start_time: '2026-11-21T00:00:00Z',
      extra: { metadata: { thread_id: 't' } },
    })
    await post([root, child, other])
    session = [await sessionOf('asks')]
  })

  test.each<[string, () => Record<string, unknown>, () => RunInput[]]>([
    ['a project', () => ({ session }), () => [other, child, root]],
    ['ids', () => ({ id: [root.id, other.id, randomUUID()] }), () => [other, root]],
    ['a trace', () => ({ trace: root.id }), () => [child, root]],
    ['a parent', () => ({ parent_run: root.id }), () => [child]],
    ['an example', () => ({ reference_example: [root['reference_example_id']] }), () => [root]],
    ['a type', () => ({ session, run_type: 'llm' }), () => [child]],
    ['errors', () => ({ session, error: true }), () => [child]],
    ['no errors', () => ({ session, error: false }), () => [other, root]],
    ['roots', () => ({ session, is_root: true }), () => [other, root]],
    ['roots, as of old', () => ({ session, execution_order: 1 }), () => [other, root]],
    ['children', () => ({ session, is_root: false }), () => [child]],
    ['a start, inclusive', () => ({ session, start_time: '2026-11-20T08:00:01Z' }), () => [other, child]],
    ['an end, exclusive', () => ({ session, end_time: '2026-11-20T08:00:01' }), () => [root]],
    ['a filter', () => ({ session, filter: 'gt(latency, "1s")' }), () => [child]],
    ['a filter on the root', () => ({ session, trace_filter: 'has(tags, "prod")' }), () => [child, root]],
    ['a filter on any run of the trace', () => ({ session, tree_filter: 'eq(error, "bad")', is_root: true }), () => [root]],
    [
      'everything at once',
      () => ({ session, is_root: true, filter: 'eq(name, "other")', order: 'asc', limit: 1, select: ['name'] }),
      () => [other],
    ],
  ])('%s', async (_name, body, expected) => {
    const answer = await query(body())
    expect(answer.status).toBe(200)
    expect(ids(answer.body.runs)).toEqual(ids(expected()))
    expect(answer.body.cursors).toEqual({ next: null })
  })

  test('the fields of a select, and no others', async () => {
    const { body } = await query({
      id: [child.id],
      select: ['name', 'error', 'app_path', 'unknown', 'total_cost', 'parent_run_ids', 'prompt_token_details'],
    })
    expect(body.runs).toEqual([
      {
        id: child.id,
        name: 'child',
        error: 'bad',
        app_path: `/o/${service.ours.id}/projects/p/${session[0]}/r/${child.id}?trace_id=${root.id}`,
        total_cost: null,
        parent_run_ids: [root.id],
        prompt_token_details: null,
      },
    ])
  })

  test('without a select every field of the contract is there', async () => {
    const { body } = await query({ id: [child.id], select: [] })
    expect(Object.keys(body.runs[0])).toEqual(expect.arrayContaining([...EXPORTABLE_FIELDS]))
    expect(runSchema.partial({ child_run_ids: true, direct_child_run_ids: true }).safeParse(body.runs[0]).error).toBeUndefined()
    expect(runSchema.safeParse((await service.send('GET', `/runs/${child.id}`)).body).error).toBeUndefined()
  })

  test('numbers over what is found', async () => {
    expect(await query({ session, filter: 'eq(run_type, "llm")' }, '/runs/stats')).toMatchObject({
      status: 200,
      body: { run_count: 1, latency_p50: 2, error_rate: 1 },
    })
  })

  test.each<[string, Record<string, unknown>, number, unknown]>([
    ['nothing to look in', {}, 400, expect.stringContaining('At least one of')],
    [
      'a filter that cannot be read',
      { trace: randomUUID(), filter: 'eq(nome, "x")' },
      400,
      expect.stringContaining('unknown field "nome"'),
    ],
    ['a time that is none', { trace: randomUUID(), start_time: 'then' }, 400, expect.stringContaining('start_time')],
    ['words', { trace: randomUUID(), query: 'slow runs' }, 400, expect.stringContaining("'query' is not supported")],
    ['too many', { trace: randomUUID(), limit: 101 }, 422, [expect.objectContaining({ loc: ['body', 'limit'] })]],
    ['ids that are none', { id: ['x'] }, 422, [expect.objectContaining({ loc: ['body', 'id', 0] })]],
  ])('%s is refused', async (_name, body, status, detail) => {
    expect(await query(body)).toMatchObject({ status, body: { detail } })
  })

  test('filters can be checked beforehand', async () => {
    const path = '/api/v1/runs/query/validate'
    expect(await query({ filter: 'eq(is_root, true)' }, path)).toMatchObject({ status: 200, body: { valid: true, errors: [] } })
    expect((await query({ filter: 'eq(', trace_filter: 'has(tags, 1)', tree_filter: 'eq(name, "x")' }, path)).body).toEqual({
      valid: false,
      errors: [
        {
          field: 'filter',
          message: 'expected a call, a field or a value, not the end of the filter (at character 4)',
          position: 3,
        },
        { field: 'trace_filter', message: 'expected a text in quotes (at character 11)', position: 10 },
      ],
    })
  })

  test('another workspace finds nothing', async () => {
    const theirs = { workspace: service.theirs }
    for (const body of [{ session }, { id: [root.id] }, { trace: root.id }, { parent_run: root.id }]) {
      expect((await service.send('POST', '/runs/query', body, theirs)).body.runs).toEqual([])
    }
  })
})

describe('feedback', () => {
  test('before its run: kept, aggregated, and the whole trace becomes longlived', async () => {
    const root = makeRun({ session_name: 'feedback' })
    const child = makeRun({ session_name: 'feedback' }, root)
    const give = (body: Record<string, unknown>) => service.send('POST', '/feedback', { run_id: child.id, ...body })
    expect(await give({ key: 'score', score: 0.5 })).toMatchObject({ status: 200, body: { trace_id: null, score: 0.5 } })
    await give({ key: 'score', score: 1.5 })
    await give({ key: 'thumb', score: true, value: 'up' })
    await give({ key: 'thumb', score: false, value: 'down' })
    await give({ key: 'thumb', score: true, value: 'up', comment: 'a\uFFFDb' })
    await post([root, child])
    const read = async (id: string) => (await service.send('GET', `/runs/${id}`)).body
    expect((await read(child.id)).feedback_stats).toEqual({
      score: { n: 2, avg: 1, stdev: expect.closeTo(Math.SQRT1_2), values: {} },
      thumb: { n: 3, avg: expect.closeTo(2 / 3), stdev: expect.closeTo(0.577, 3), values: { up: 2, down: 1 } },
    })
    expect(await read(child.id)).toMatchObject({ trace_tier: 'longlived' })
    expect(await read(root.id)).toMatchObject({ trace_tier: 'longlived', feedback_stats: null })
    const late = makeRun({ session_name: 'feedback' }, root)
    await post([late])
    expect(await read(late.id)).toMatchObject({ trace_tier: 'longlived' })
  })

  test('the same id again is the same feedback; on another run it is refused', async () => {
    const [id, run] = [randomUUID(), randomUUID()]
    await service.send('POST', '/feedback', { id, run_id: run, key: 'k', score: 1, comment: 'stays' })
    await service.send('POST', '/feedback', { id, run_id: run, key: 'k', score: 0 })
    expect((await service.send('GET', `/feedback?run=${run}`)).body).toMatchObject([{ id, score: 0, comment: 'stays' }])
    expect(await service.send('POST', '/feedback', { id, run_id: randomUUID(), key: 'k' })).toMatchObject({ status: 409 })
    expect(await service.send('GET', `/feedback/${id}`, undefined, { workspace: service.theirs })).toMatchObject({ status: 404 })
  })

  test('on nothing, without a key, on a project of others', async () => {
    expect(await service.send('POST', '/feedback', { key: 'k' })).toMatchObject({ status: 422 })
    expect(await service.send('POST', '/feedback', { run_id: randomUUID() })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body', 'key'] }] },
    })
    expect(await service.send('POST', '/feedback', { session_id: randomUUID(), key: 'k' })).toMatchObject({ status: 404 })
  })
})

test('a fixed sequence holds the runs of before, whatever arrives or changes afterwards', async () => {
  const makers = Array.from({ length: 6 }, async (_, index) => {
    for (let round = 0; round < 8; round += 1)
      await post(Array.from({ length: 5 }, () => makeRun({ session_name: `sequence ${index % 2}` })))
  })
  const early = makeRun({ session_name: 'sequence 0' })
  await service.send('PATCH', `/runs/${early.id}`, { outputs: {} })
  const fixed = await fixIngestedSequence(service.db)
  const count = async () =>
    Number(
      (
        await service.db
          .selectFrom('runs')
          .select((on) => on.fn.countAll().as('n'))
          .where('complete', '=', true)
          .where('ingested_seq', '<=', String(fixed))
          .executeTakeFirstOrThrow()
      ).n,
    )
  const before = await count()
  // The pending run becomes complete now: it belongs to what comes later.
  await post([early])
  await Promise.all(makers)
  await service.send('PATCH', `/runs/${early.id}`, { name: 'changed' })
  expect(await count()).toBe(before)
  expect(before).toBeGreaterThan(0)
})
