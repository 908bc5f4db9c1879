import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toInstant } from '../../src/contract/instant.ts'

test.each<[unknown, string | null]>([
  ['2024-04-29T00:49:12.090000', '2024-04-29T00:49:12.090000Z'],
  ['2024-04-29T00:49:12.0900001Z', '2024-04-29T00:49:12.090000Z'],
  ['2024-04-29T00:49:12+0530', '2024-04-28T19:19:12.000000Z'],
  ['2024-04-29T00:49:12-08', '2024-04-29T08:49:12.000000Z'],
  ['2024-04-29 00:49', '2024-04-29T00:49:00.000000Z'],
  ['2024-04-29', '2024-04-29T00:00:00.000000Z'],
  [' 2024-04-29T00:49:12z ', '2024-04-29T00:49:12.000000Z'],
  ['1969-12-31T23:59:59.999999Z', '1969-12-31T23:59:59.999999Z'],
  [1_763_663_752, '2025-11-20T18:35:52.000000Z'],
  [1_763_663_752.25, '2025-11-20T18:35:52.250000Z'],
  [1_763_663_752_090, '2025-11-20T18:35:52.090000Z'],
  [1_763_663_752_090.5, '2025-11-20T18:35:52.090500Z'],
  [1_763_663_752_090_123, '2025-11-20T18:35:52.090123Z'],
  ['1763663752090', '2025-11-20T18:35:52.090000Z'],
  ['2024-02-30T00:00:00Z', null],
  ['2024-13-01', null],
  ['2024-04-29T24:00:01Z', null],
  ['2024-04-29T10:00:00+99:00x', null],
  ['yesterday', null],
  ['', null],
  [Number.NaN, null],
  [-5, null],
  [null, null],
  [{}, null],
])('%j is %j', (value, instant) => {
  expect(toInstant(value)).toBe(instant)
})

test('every time that JavaScript writes comes back the same', () => {
  fc.assert(
    fc.property(fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }), (date) => {
      expect(toInstant(date.toISOString())).toBe(date.toISOString().replace('Z', '000Z'))
    }),
  )
})
