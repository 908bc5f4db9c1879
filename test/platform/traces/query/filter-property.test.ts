import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Comparison, Condition, Filter, PartCondition } from '../../../../src/contract/filter/filter.ts'
import { parseFilter } from '../../../../src/contract/filter/parse.ts'
import { compileFilter } from '../../../../src/platform/traces/query/compile-filter.ts'
import { meets, type OracleRun } from '../support/filter-oracle.ts'
import { filterText } from '../support/filter-text.ts'
import { makeRun } from '../support/runs.ts'
import { startTraceService, type TraceService } from '../support/trace-service.ts'

/** Few values, so that filters and runs meet. */
const WORDS = ['a', 'B', 'ab', 'A%b', 'x_y', 'ä"q\\', 'line\nbreak', '']
const KEYS = ['k', 'user', 'K']
const TIMES = [
  '2026-11-20T08:00:00.000000Z',
  '2026-11-20T08:00:00.000001Z',
  '2026-11-20T08:00:01.500000Z',
  '2026-11-21T00:00:00.000000Z',
]
const NUMBERS = [0, 1, 1.5, 2, 10]
const COSTS = ['0.1', '0.25', '2']
const TYPES = ['chain', 'llm', 'tool']

const word = fc.constantFrom(...WORDS)
const key = fc.constantFrom(...KEYS)
const leafValue = fc.oneof(word, fc.constantFrom(...NUMBERS), fc.boolean(), fc.constant(null))
const document = fc.dictionary(
  key,
  fc.oneof(
    { weight: 3, arbitrary: leafValue },
    { weight: 1, arbitrary: fc.array(leafValue, { maxLength: 2 }) },
    fc.dictionary(key, fc.oneof(leafValue, fc.array(fc.dictionary(key, leafValue), { maxLength: 2 })), { maxKeys: 2 }),
  ),
  { maxKeys: 3 },
)
const feedback = fc.record({
  key,
  score: fc.option(fc.constantFrom(...NUMBERS)),
  value: fc.option(fc.oneof(word, fc.constantFrom(...NUMBERS))),
  comment: fc.option(word),
  source: fc.constantFrom('api', 'model'),
})
const runModel = fc.record({
  name: word,
  run_type: fc.constantFrom(...TYPES),
  start_time: fc.constantFrom(...TIMES),
  end_time: fc.option(fc.constantFrom(...TIMES)),
  first_token_time: fc.option(fc.constantFrom(...TIMES), { freq: 3 }),
  error: fc.option(word),
  tags: fc.array(word, { maxLength: 3 }),
  inputs: document,
  outputs: fc.option(document),
  metadata: fc.option(document),
  prompt_tokens: fc.option(fc.nat(3)),
  total_cost: fc.option(fc.constantFrom(...COSTS)),
  feedback: fc.array(feedback, { maxLength: 2 }),
  child: fc.boolean(),
})

const RUNS = 150
let service: TraceService
let runs: Map<string, OracleRun>

beforeAll(async () => {
  service = await startTraceService()
  runs = new Map()
  const models = fc.sample(runModel, { numRuns: RUNS, seed: 7 })
  const root = makeRun({ name: 'root of all', session_name: 'oracle', error: null })
  const posts: unknown[] = [root]
  for (const { feedback: given, child, metadata, ...model } of models) {
    const run = makeRun(
      { ...model, session_name: 'oracle', extra: metadata === null ? null : { metadata } },
      child ? root : undefined,
    )
    posts.push(run)
    for (const { source, ...one } of given) {
      await service.send('POST', '/feedback', { ...one, run_id: run.id, feedback_source: { type: source } })
    }
    runs.set(run.id, toOracle({ run, model, metadata, given, child, rootId: root.id }))
  }
  for (let index = 0; index < posts.length; index += 100) {
    const { status } = await service.send('POST', '/runs/batch', { post: posts.slice(index, index + 100) })
    if (status !== 202) throw new Error(`the runs were not taken: ${status}`)
  }
  // A trace is kept long as soon as one of its runs has feedback.
  const upgraded = new Set([...runs.values()].filter((run) => run.feedback.length > 0).map((run) => run.scalars['trace_id']))
  for (const [id, run] of runs) {
    runs.set(id, {
      ...run,
      scalars: { ...run.scalars, trace_tier: upgraded.has(run.scalars['trace_id'] ?? null) ? 'longlived' : 'shortlived' },
    })
  }
})
afterAll(() => service.stop())

type Model = Omit<typeof runModel extends fc.Arbitrary<infer T> ? T : never, 'feedback' | 'child' | 'metadata'>

function toOracle({
  run,
  model,
  metadata,
  given,
  child,
  rootId,
}: {
  run: { id: string; trace_id: string }
  model: Model
  metadata: unknown
  given: readonly { key: string; score: number | null; value: string | number | null; comment: string | null; source: string }[]
  child: boolean
  rootId: string
}): OracleRun {
  const error = model.error === '' ? null : model.error
  const cost = model.total_cost === null ? null : Number(model.total_cost)
  const seconds = (time: string) => Date.parse(`${time.slice(0, 19)}Z`) / 1000 + Number(time.slice(19, 26))
  const latency = model.end_time === null ? null : Number((seconds(model.end_time) - seconds(model.start_time)).toFixed(6))
  return {
    scalars: {
      id: run.id,
      trace_id: run.trace_id,
      parent_run_id: child ? rootId : null,
      reference_example_id: null,
      name: model.name,
      run_type: model.run_type,
      status: error === null ? (model.end_time === null ? 'pending' : 'success') : 'error',
      error,
      start_time: model.start_time,
      end_time: model.end_time,
      first_token_time: model.first_token_time,
      latency,
      total_tokens: model.prompt_tokens ?? 0,
      prompt_tokens: model.prompt_tokens ?? 0,
      completion_tokens: 0,
      total_cost: cost,
      prompt_cost: null,
      completion_cost: null,
      execution_order: 1,
      is_root: !child,
    },
    tags: model.tags,
    json: { inputs: model.inputs, outputs: model.outputs, metadata },
    texts: { inputs: JSON.stringify(model.inputs), outputs: model.outputs === null ? null : JSON.stringify(model.outputs) },
    feedback: given.map((one) => ({ ...one, value: one.value === null ? null : String(one.value) })),
  }
}

const order: fc.Arbitrary<Comparison> = fc.constantFrom('eq', 'neq', 'gt', 'gte', 'lt', 'lte')
const equality: fc.Arbitrary<'eq' | 'neq'> = fc.constantFrom('eq', 'neq')
const pattern = fc.constantFrom('a%', '%b', '_', 'A\\%b', '%', 'x\\_y', '%\n%', 'x_y', '%"%')

const textCondition: fc.Arbitrary<Condition> = fc.oneof(
  fc.record({ operator: equality, value: word }),
  fc.record({ operator: fc.constant('in' as const), values: fc.array(word, { minLength: 1, maxLength: 3 }) }),
  fc.record({ operator: fc.constant('like' as const), pattern }),
  fc.record({ operator: fc.constant('search' as const), text: word }),
)
const nullCondition = (field: 'error' | 'end_time' | 'total_cost' | 'latency' | 'parent_run_id'): fc.Arbitrary<Filter> =>
  fc.record({
    kind: fc.constant('scalar' as const),
    field: fc.constant(field),
    condition: fc.record({ operator: equality, value: fc.constant(null) }),
  })
const scalar = (field: Extract<Filter, { kind: 'scalar' }>['field'], condition: fc.Arbitrary<Condition>): fc.Arbitrary<Filter> =>
  fc.record({ kind: fc.constant('scalar' as const), field: fc.constant(field), condition })
const ordered = (values: fc.Arbitrary<string | number>): fc.Arbitrary<Condition> => fc.record({ operator: order, value: values })
const numbers = fc.constantFrom(...NUMBERS, 0.1, 0.25)

/** Parts as the parser groups them: the key at most once; a condition `neq` only beside another. */
const parts = (collection: 'feedback' | 'metadata' | 'inputs' | 'outputs'): fc.Arbitrary<Filter> => {
  const positive: fc.Arbitrary<Condition> = fc.oneof(
    fc.record({ operator: fc.constant('eq' as const), value: word }),
    fc.record({ operator: fc.constant('like' as const), pattern }),
  )
  const ofKey: fc.Arbitrary<PartCondition> = fc.record({
    part: fc.constant('key' as const),
    condition: fc.record({ operator: fc.constant('eq' as const), value: fc.constantFrom(...KEYS, 'user.k') }),
  })
  const others: fc.Arbitrary<PartCondition>[] = [
    fc.record({
      part: fc.constant('value' as const),
      condition: fc.oneof(
        positive,
        fc.record({ operator: fc.constant('neq' as const), value: word }),
        fc.constantFrom<Condition>({ operator: 'eq', value: '1.5' }, { operator: 'eq', value: 'true' }),
      ),
    }),
  ]
  if (collection === 'feedback') others.push(fc.record({ part: fc.constant('score' as const), condition: ordered(numbers) }))
  const other = fc.oneof(...others)
  const shape = { kind: fc.constant('element' as const), collection: fc.constant(collection) }
  return fc.oneof(
    fc.record({ ...shape, conditions: fc.tuple(ofKey), absent: fc.boolean() }),
    fc.record({ ...shape, conditions: fc.tuple(ofKey, other), absent: fc.boolean() }),
  )
}

const atom: fc.Arbitrary<Filter> = fc.oneof(
  scalar('name', textCondition),
  scalar('error', textCondition),
  scalar('run_type', fc.record({ operator: equality, value: fc.constantFrom(...TYPES, 'other') })),
  scalar('status', fc.record({ operator: equality, value: fc.constantFrom('pending', 'success', 'error') })),
  scalar('trace_tier', fc.record({ operator: equality, value: fc.constantFrom('shortlived', 'longlived') })),
  scalar('start_time', ordered(fc.constantFrom(...TIMES))),
  scalar('end_time', ordered(fc.constantFrom(...TIMES))),
  scalar('first_token_time', ordered(fc.constantFrom(...TIMES))),
  scalar('latency', ordered(fc.constantFrom(0, 1.5, 0.000001, -1, 57600))),
  scalar('total_tokens', ordered(numbers)),
  scalar(
    'prompt_tokens',
    fc.record({ operator: fc.constant('in' as const), values: fc.array(fc.nat(3), { minLength: 1, maxLength: 2 }) }),
  ),
  scalar('total_cost', ordered(numbers)),
  scalar('execution_order', ordered(numbers)),
  scalar('is_root', fc.record({ operator: equality, value: fc.boolean() })),
  nullCondition('error'),
  nullCondition('end_time'),
  nullCondition('total_cost'),
  nullCondition('latency'),
  nullCondition('parent_run_id'),
  fc.record({ kind: fc.constant('tag' as const), tag: word }),
  fc.record({
    kind: fc.constant('search' as const),
    field: fc.constantFrom('inputs' as const, 'outputs' as const, 'metadata' as const, null),
    text: word,
  }),
  fc.record({
    kind: fc.constant('members' as const),
    field: fc.constantFrom('inputs' as const, 'outputs' as const, 'metadata' as const),
    members: fc.dictionary(key, leafValue, { maxKeys: 2 }).map((value) => Object.entries(value)),
  }),
  parts('feedback'),
  parts('metadata'),
  parts('inputs'),
  parts('outputs'),
)
const filter = fc.letrec<{ tree: Filter }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    atom,
    fc.record({
      kind: fc.constantFrom('and' as const, 'or' as const),
      operands: fc.array(
        tie('tree').filter(({ kind }) => kind !== 'element'),
        { minLength: 1, maxLength: 3 },
      ),
    }),
    fc.record({ kind: fc.constant('not' as const), operand: tie('tree') }),
  ),
})).tree

test('what the database finds is what the plain evaluator finds', async () => {
  let found = 0
  await fc.assert(
    fc.asyncProperty(filter, async (given) => {
      const condition = compileFilter(parseFilter(filterText(given)))
      const { rows } = await sql<{ id: string }>`select r.id from runs r where r.name <> 'root of all' and ${condition}`.execute(
        service.db,
      )
      const expected = [...runs].filter(([, run]) => meets(run, given)).map(([id]) => id)
      expect({ filter: filterText(given), found: rows.map(({ id }) => id).toSorted() }).toEqual({
        filter: filterText(given),
        found: expected.toSorted(),
      })
      if (expected.length > 0 && expected.length < RUNS) found += 1
    }),
    { numRuns: 1000, examples: [[{ kind: 'scalar', field: 'id', condition: { operator: 'eq', value: randomUUID() } }]] },
  )
  // Filters that find everything or nothing would prove little.
  expect(found).toBeGreaterThan(300)
})
