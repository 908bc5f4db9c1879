import { describe, expect, it } from 'vitest'
import { liveSchedule, scheduleConflict } from '../../../src/action/export/schedule.ts'
import { exportAnswerSchema } from '../../../src/client/bulk-export-answers.ts'
import { EXPORTABLE_FIELDS } from '../../../src/contract/exportable-fields.ts'

const BODY = { bulk_export_destination_id: 'd', session_id: 's', start_time: '2026-01-01T00:00:00.000Z', interval_hours: 24 }
const answer = (changes: Record<string, unknown> = {}) =>
  exportAnswerSchema.parse({
    id: 'live',
    ...BODY,
    start_time: '2026-01-01T00:00:00+00:00',
    status: 'IntervalScheduled',
    ...changes,
  })

const live = (changes: Record<string, unknown> = {}, body = {}, fixedStart = true) =>
  liveSchedule({ exports: [answer(changes)], body: { ...BODY, ...body }, fixedStart })

describe('a schedule that is there', () => {
  it.each([
    ['other writings of the same', {}, {}],
    ['another order of the fields', { export_fields: ['name', 'id'] }, { export_fields: ['id', 'name'] }],
    ['all fields by name', { export_fields: null }, { export_fields: [...EXPORTABLE_FIELDS] }],
    ['a version that is not asked for', { format_version: 'v1' }, {}],
  ])('is the same with %s', (_, changes, body) => expect(live(changes, body)?.changes).toEqual([]))

  it('is compared by its beginning only when that is fixed', () => {
    expect(live({ start_time: '2025-01-01T00:00:00Z' })?.changes).toMatchObject([{ field: 'start_time' }])
    expect(live({ start_time: '2025-01-01T00:00:00Z' }, {}, false)?.changes).toEqual([])
  })

  it.each([{ status: 'Cancelled' }, { session_id: 'other' }, { bulk_export_destination_id: 'other' }, { interval_hours: null }])(
    'is another one with %j',
    (changes) => expect(live(changes)).toBeUndefined(),
  )

  it('differs least of several, and tells in what', () => {
    const exports = [answer({ filter: 'a', interval_hours: 1 }), answer({ id: 'near', filter: 'a' })]
    const found = liveSchedule({ exports, body: BODY, fixedStart: true })
    if (found === undefined) throw new Error('none was found')
    expect(scheduleConflict(found)).toMatchObject({
      code: 'E_CONFLICT',
      message: expect.stringMatching(/near.*filter is a, wanted is none\.$/),
    })
  })
})

describe('the differences of a schedule', () => {
  it.each([
    [
      'its beginning',
      { start_time: '2025-01-01T00:00:00Z' },
      {},
      'start_time',
      '2025-01-01T00:00:00.000000Z',
      '2026-01-01T00:00:00.000000Z',
    ],
    ['a beginning that is not told', { start_time: null }, {}, 'start_time', 'none', '2026-01-01T00:00:00.000000Z'],
    ['a beginning that cannot be read', {}, { start_time: 'soon' }, 'start_time', '2026-01-01T00:00:00.000000Z', 'none'],
    ['its interval', { interval_hours: 12 }, {}, 'interval_hours', '12', '24'],
    ['a filter that is wanted', {}, { filter: 'a' }, 'filter', 'none', 'a'],
    ['an empty filter', { filter: '' }, { filter: 'a' }, 'filter', 'none', 'a'],
    ['fields that are wanted', {}, { export_fields: ['name', 'id'] }, 'export_fields', 'all', 'id, name'],
    ['fields that are live', { export_fields: ['name', 'id', 'name'] }, {}, 'export_fields', 'id, name', 'all'],
    ['no version', {}, { format_version: 'v1' }, 'format_version', 'none', 'v1'],
    ['another version', { format_version: 'v2_beta' }, { format_version: 'v1' }, 'format_version', 'v2_beta', 'v1'],
  ])('are told: %s', (_, changes, body, field, was, wanted) => {
    expect(live(changes, body)?.changes).toEqual([{ field, live: was, wanted }])
  })

  it.each([{ session_id: null }, { bulk_export_destination_id: null }])(
    'are none when the answer does not tell whose it is: %j',
    (changes) => expect(live(changes)).toBeUndefined(),
  )

  it('are none in the letter case of an id', () => {
    expect(live({ session_id: 'S', bulk_export_destination_id: 'D' })?.changes).toEqual([])
    expect(live({}, { bulk_export_destination_id: 'D' })?.changes).toEqual([])
  })

  it('make one failure', () => {
    const changes = [
      { field: 'interval_hours', live: '1', wanted: '24' },
      { field: 'filter', live: 'none', wanted: 'a' },
    ]
    expect(scheduleConflict({ schedule: answer(), changes })).toMatchObject({
      code: 'E_CONFLICT',
      message:
        'There is a schedule of this tracing project and destination already (live), with other settings: ' +
        'interval_hours is 1, wanted is 24; filter is none, wanted is a.',
      tried: 'Nothing was changed: the settings of a schedule are fixed at its creation.',
      next: 'Take over the settings that are live, or cancel the schedule (PATCH /api/v1/bulk-exports/live) and run the step again.',
    })
  })
})
