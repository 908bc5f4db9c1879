import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseMoment, resolveMoment } from '../../../src/action/export/moment.ts'

const NOW = Date.parse('2026-08-20T12:00:00Z')

describe('a moment', () => {
  it.each([
    ['now', '2026-08-20T12:00:00.000Z'],
    ['-24h', '2026-08-19T12:00:00.000Z'],
    ['-7d', '2026-08-13T12:00:00.000Z'],
    ['-1h30m', '2026-08-20T10:30:00.000Z'],
    ['2026-08-19', '2026-08-19T00:00:00.000000Z'],
    ['2026-08-19T02:00:00+02:00', '2026-08-19T00:00:00.000000Z'],
    ['2026-08-19T02:00:00.123456', '2026-08-19T02:00:00.123456Z'],
  ])('%s is %s', (text, sent) => {
    const parsed = parseMoment(text)
    if (!('value' in parsed)) throw new Error(parsed.problem)
    expect(resolveMoment(parsed.value, NOW)).toBe(sent)
  })

  it.each([
    ['-'],
    ['-h'],
    ['-1m1h'],
    ['24h'],
    ['1700000000'],
    ['2026-02-30'],
    ['1026-01-01'],
    ['-99999d'],
    ['NOW'],
    ['tomorrow'],
  ])('%s is none', (text) => expect(parseMoment(text)).toHaveProperty('problem'))

  const count = (max: number) => fc.option(fc.nat(max))

  it('is as long before now as its units say', () => {
    fc.assert(
      fc.property(fc.tuple(count(3000), count(99), count(99), count(99)), ([d, h, m, s]) => {
        const parts = [
          [d, 'd', 86_400],
          [h, 'h', 3600],
          [m, 'm', 60],
          [s, 's', 1],
        ] as const
        const given = parts.filter(([number]) => number !== null)
        const seconds = given.reduce((sum, [number, , unit]) => sum + (number ?? 0) * unit, 0)
        const parsed = parseMoment(`-${given.map(([number, unit]) => `${number}${unit}`).join('')}`)
        if (given.length === 0) expect(parsed).toHaveProperty('problem')
        else expect(parsed).toEqual({ value: { beforeMs: seconds * 1000 } })
      }),
    )
  })

  it('is the same instant in any zone', () => {
    const year = { min: new Date('1901-01-01'), max: new Date('2199-12-31'), noInvalidDate: true }
    fc.assert(
      fc.property(fc.date(year), fc.integer({ min: -14 * 60, max: 14 * 60 }), (date, minutes) => {
        const local = new Date(date.getTime() + minutes * 60_000).toISOString().slice(0, -1)
        const [hour, minute] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60].map((part) =>
          String(part).padStart(2, '0'),
        )
        const parsed = parseMoment(`${local}${minutes < 0 ? '-' : '+'}${hour}:${minute}`)
        if (!('value' in parsed) || !('at' in parsed.value)) throw new Error(`${local} is none: ${JSON.stringify(parsed)}`)
        expect(Date.parse(parsed.value.at)).toBe(date.getTime())
        expect(parsed.value.at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
      }),
    )
  })
})

describe('what is no moment', () => {
  it.each([
    ['NOW', { problem: 'is not a time', fix: 'write now' }],
    ['Now', { problem: 'is not a time', fix: 'write now' }],
    ['24h', { problem: 'is not a time', fix: 'write -24h for a time before now' }],
    ['7d', { problem: 'is not a time', fix: 'write -7d for a time before now' }],
    ['in 7d', { problem: 'is not a time' }],
    ['tomorrow', { problem: 'is not a time' }],
    ['x2026-01-01', { problem: 'is not a time' }],
    ['2026-02-30', { problem: 'is not a time' }],
    ['-3661d', { problem: 'is more than 3660 days ago' }],
    ['-3660d1s', { problem: 'is more than 3660 days ago' }],
    ['1899-12-31T23:59:59Z', { problem: 'is in a year that cannot be meant' }],
    ['2201-01-01', { problem: 'is in a year that cannot be meant' }],
  ])('is told of %s', (text, parsed) => expect(parseMoment(text)).toStrictEqual(parsed))

  it.each([
    ['-3660d', { beforeMs: 3660 * 86_400_000 }],
    ['1900-01-01', { at: '1900-01-01T00:00:00.000000Z' }],
    ['2200-12-31T23:59:59Z', { at: '2200-12-31T23:59:59.000000Z' }],
  ])('is not %s, at the bounds', (text, value) => expect(parseMoment(text)).toStrictEqual({ value }))
})
