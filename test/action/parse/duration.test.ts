import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AGE_RULE, DURATION_RULE, formatDuration, parseAge, parseDuration } from '../../../src/action/parse/duration.ts'

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

describe('what is said of a text that is none', () => {
  it.each([
    ['10', { problem: 'has no unit', fix: 'write 10s for seconds or 10m for minutes' }],
    ['x10', { problem: 'is not a duration' }],
    ['', { problem: 'is not a duration' }],
    ['0s', { problem: 'is shorter than a second' }],
    ['7d1s', { problem: 'is longer than 7 days' }],
    ['10d', { problem: 'is longer than 7 days' }],
  ])('%j', (text, says) => {
    expect(parseDuration(text)).toEqual(says)
  })

  it('names examples that are accepted', () => {
    const examples = (rule: string) => /such as (.*?);/.exec(rule)?.[1]?.split(/, | or /) ?? []
    expect(examples(DURATION_RULE).map(parseDuration)).toEqual([{ value: 90_000 }, { value: 600_000 }, { value: 5_400_000 }])
    expect(examples(AGE_RULE).map(parseAge)).toEqual([{ value: 43_200_000 }, { value: 604_800_000 }])
  })
})

describe('parseAge', () => {
  it.each([
    ['365d', 31_536_000_000],
    ['30d', 2_592_000_000],
    ['12h', 43_200_000],
  ])('reads %s, up to a year', (text, value) => {
    expect(parseAge(text)).toEqual({ value })
  })

  it('agrees with a duration wherever that is one', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^(\d{1,4}d)?(\d{1,4}h)?(\d{1,5}m)?(\d{1,6}s)?$/), (text) => {
        const duration = parseDuration(text)
        if ('value' in duration) expect(parseAge(text)).toEqual(duration)
        const age = parseAge(text)
        if ('value' in age) expect(age.value).toBeLessThanOrEqual(365 * 86_400_000)
      }),
    )
  })

  it('refuses more than a year', () => {
    expect(parseAge('365d1s')).toEqual({ problem: 'is longer than 365 days' })
  })
})

describe('formatDuration', () => {
  it.each([
    [0, '0 s'],
    [49, '0 s'],
    [50, '0.1 s'],
    [949, '0.9 s'],
    [950, '1 s'],
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

  it('says what it was to half of its smallest unit, and never more than two of them', () => {
    const unit = { h: 3_600_000, min: 60_000, s: 1000 } as const
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: 7 * 86_400_000 }), (milliseconds) => {
        const parts = [...formatDuration(milliseconds).matchAll(/(\d+) (h|min|s)/g)].map(
          ([, count, name]) => [Number(count), name as keyof typeof unit] as const,
        )
        expect(parts.length === 1 || parts.length === 2).toBe(true)
        const said = parts.reduce((sum, [count, name]) => sum + count * unit[name], 0)
        const smallest = milliseconds >= 3_599_500 ? unit.min : unit.s
        expect(Math.abs(said - milliseconds)).toBeLessThan(smallest)
      }),
    )
  })
})
