import { describe, expect, it } from 'vitest'
import { liveSchedule, scheduleConflict } from '../../../src/action/export/schedule.ts'
import { exportAnswerSchema } from '../../../src/client/bulk-export-answers.ts'
import { EXPORTABLE_FIELDS } from '../../../src/contract/exportable-fields.ts'

const BODY = { bulk_export_destination_id: 'd', session_id: 's', start_time: '2026-01-01T00:00:00.000Z', interval_hours: 24 }
const answer = (changes: Record<string, unknown> = {}) =>
  exportAnswerSchema.parse({ id: 'live', ...BODY, start_time: '2026-01-01T00:00:00+00:00', status: 'IntervalScheduled', ...changes })

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
    expect(scheduleConflict(found)).toMatchObject({ code: 'E_CONFLICT', message: expect.stringMatching(/near.*filter is a, wanted is none\.$/) })
  })
})
