import { describe, expect, it, test } from 'vitest'
import { feedbackCreateSchema, feedbackNotFound, feedbackPatchSchema } from '../../src/contract/feedback.ts'

const ID = '1a1fb328-851a-440b-a3a5-bd284276ca0a'
const create = { run_id: ID, key: 'correctness' }

describe('a request that gives feedback', () => {
  it.each([
    {},
    { score: 0.5 },
    { score: true },
    { score: null, value: { any: ['thing'] }, comment: 'c', correction: 'x' },
    { run_id: undefined, session_id: ID },
    { run_id: null, session_id: ID },
    { session_id: ID },
    { key: 'k' },
    { key: 'k'.repeat(180) },
    { feedback_source: { type: 'api', metadata: {} } },
    { unknown: 1 },
  ])('may have %j', (changes) => {
    const body = { ...create, ...changes }
    expect(feedbackCreateSchema.parse(body)).toEqual(body)
  })

  it.each<[Record<string, unknown>, string]>([
    [{ key: '' }, 'key'],
    [{ key: 'k'.repeat(181) }, 'key'],
    [{ key: undefined }, 'key'],
    [{ score: 'good' }, 'score'],
    [{ run_id: '7' }, 'run_id'],
    [{ comment: 7 }, 'comment'],
    [{ feedback_source: {} }, 'feedback_source.type'],
  ])('may not have %j', (changes, place) => {
    const issues = feedbackCreateSchema.safeParse({ ...create, ...changes }).error?.issues ?? []
    expect(issues[0]?.path.join('.')).toBe(place)
  })

  it.each([{}, { run_id: null }, { run_id: null, session_id: null }, { trace_id: ID }])(
    'is refused about nothing, with %j',
    (changes) => {
      const { error } = feedbackCreateSchema.safeParse({ key: 'k', ...changes })
      expect(error?.issues).toMatchObject([{ path: ['run_id'], message: 'Feedback needs a run_id or a session_id' }])
    },
  )
})

test('a change of feedback may leave out everything', () => {
  for (const body of [{}, { score: false }, { score: 1, value: 'v', comment: null, correction: {} }]) {
    expect(feedbackPatchSchema.parse(body)).toEqual(body)
  }
  expect(feedbackPatchSchema.safeParse({ score: 'good' }).success).toBe(false)
  expect(feedbackPatchSchema.safeParse({ comment: 7 }).success).toBe(false)
})

test('what was not found is named', () => {
  expect(feedbackNotFound(ID)).toBe(`Feedback ID ${ID} not found.`)
})
