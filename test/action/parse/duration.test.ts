import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatDuration, parseDuration } from '../../../src/action/parse/duration.ts'

describe('parseDuration', () => {
  it.each([
    ['90s', 90_000],
    ['10m', 600_000],
    ['1h30m', 5_400_000],
    ['1d', 86_400_000],
    ['1d2h3m4s', 93_784_000],
    ['0h1m', 60_000],
    ['7d', 604_800_000],
  ])('reads %s', (text, value) => {
    expect(parseDuration(text)).toEqual({ value })
  })

  it.each([
    '',
    'm',
    '10',
    '-5m',
    '1.5h',
    '1m1h',
    '5m5m',
    ' 5m',
    '5 m',
    '500ms',
    '1H',
    '٣m',
    '1e3s',
    '0s',
    '0h0m',
    '7d1s',
    '99999999999s',
  ])('refuses %j', (text) => {
    expect(parseDuration(text)).toHaveProperty('problem')
  })

  it('reads what it means, for any combination of units', () => {
    const part = (unit: string, max: number) => fc.option(fc.nat(max).map((count) => [count, unit] as const))
    fc.assert(
      fc.property(fc.tuple(part('d', 3), part('h', 23), part('m', 59), part('s', 59)), (parts) => {
        const given = parts.filter((each) => each !== null)
        const text = given.map(([count, unit]) => `${count}${unit}`).join('')
        const seconds = given.reduce((sum, [count, unit]) => sum + count * { d: 86_400, h: 3600, m: 60, s: 1 }[unit]!, 0)
        const parsed = parseDuration(text)
        if (seconds === 0) expect(parsed).toHaveProperty('problem')
        else expect(parsed).toEqual({ value: seconds * 1000 })
      }),
    )
  })

  it('never throws, and gives a number of milliseconds within its bounds or a problem', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9dhms.]*$/)), (text) => {
        const parsed = parseDuration(text)
        if ('value' in parsed)
          expect(parsed.value >= 1000 && parsed.value <= 604_800_000 && Number.isInteger(parsed.value)).toBe(true)
        else expect(parsed.problem).not.toBe('')
      }),
    )
  })
})

describe('formatDuration', () => {
  it.each([
    [0, '0 s'],
    [400, '0.4 s'],
    [1400, '1 s'],
    [59_400, '59 s'],
    [60_000, '1 min'],
    [245_000, '4 min 5 s'],
    [3_600_000, '1 h'],
    [5_430_000, '1 h 30 min'],
  ])('%d ms is %s', (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text)
  })
})
