import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expectedDuration, nextPollDelay } from '../../src/action/poll-delay.ts'

describe('nextPollDelay', () => {
  it('is quick at first and slow later', () => {
    const delays = [0, 5000, 30_000, 120_000, 600_000].map((elapsed) => nextPollDelay({ elapsed, expected: undefined }))
    expect(delays).toEqual([1000, 1000, 3000, 12_000, 15_000])
  })

  it('is quick again around the expected end, and does not sleep through its beginning', () => {
    const delay = (elapsed: number) => nextPollDelay({ elapsed, expected: 300_000 })
    expect(delay(200_000)).toBe(15_000)
    expect(delay(262_000)).toBe(8000)
    expect([delay(270_000), delay(300_000), delay(380_000)]).toEqual([2000, 2000, 2000])
    expect(delay(400_000)).toBe(15_000)
  })

  it('always lies between 1 s and 15 s', () => {
    fc.assert(
      fc.property(fc.nat(10_000_000), fc.option(fc.nat(10_000_000), { nil: undefined }), (elapsed, expected) => {
        const delay = nextPollDelay({ elapsed, expected })
        expect(delay).toBeGreaterThanOrEqual(1000)
        expect(delay).toBeLessThanOrEqual(15_000)
      }),
    )
  })
})

describe('expectedDuration', () => {
  const took = (seconds: number) => ({
    created_at: '2026-01-01T00:00:00Z',
    updated_at: new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString(),
  })

  it('is the median of what earlier revisions took', () => {
    expect(expectedDuration([took(10), took(1000), took(60)])).toBe(60_000)
    expect(expectedDuration([took(10), took(20)])).toBe(15_000)
  })

  it('is not known when nothing usable tells', () => {
    expect(expectedDuration([])).toBeUndefined()
    expect(
      expectedDuration([{ created_at: null, updated_at: null }, { created_at: 'x', updated_at: 'y' }, took(0), took(86_400)]),
    ).toBeUndefined()
  })
})

describe('the edges of a poll delay', () => {
  it.each([
    [0, undefined, 1000],
    [10_000, undefined, 1000],
    [10_010, undefined, 1001],
    [150_000, undefined, 15_000],
    [150_010, undefined, 15_000],
    [0, 100_000, 1000],
    [50_000, 100_000, 5000],
    [88_000, 100_000, 2000],
    [89_500, 100_000, 1000],
    [90_000, 100_000, 2000],
    [139_999, 100_000, 2000],
    [140_000, 100_000, 14_000],
    [9000, 10_000, 1000],
  ])('after %d ms, when %s ms are usual, is %d ms', (elapsed, expected, delay) => {
    expect(nextPollDelay({ elapsed, expected })).toBe(delay)
  })
})

describe('what earlier revisions tell', () => {
  const HOURS_6 = 6 * 3_600_000
  const lasting = (...durations: number[]) =>
    expectedDuration(
      durations.map((duration) => ({
        created_at: '2026-01-01T00:00:00Z',
        updated_at: new Date(Date.UTC(2026, 0, 1) + duration).toISOString(),
      })),
    )

  it.each<[number[], number | undefined]>([
    [[1], 1],
    [[0], undefined],
    [[-1000], undefined],
    [[HOURS_6 - 1], HOURS_6 - 1],
    [[HOURS_6], undefined],
    [[9000, 100_000, 10_000], 10_000],
    [[40_000, 9000, 100_000, 20_000], 30_000],
    [[0, 5000, HOURS_6], 5000],
  ])('of %j is %s', (durations, expected) => {
    expect(lasting(...durations)).toBe(expected)
  })

  it('is nothing where one of the two times is missing', () => {
    const at = '2026-01-01T00:00:00Z'
    expect(
      expectedDuration([
        { created_at: null, updated_at: at },
        { created_at: at, updated_at: null },
      ]),
    ).toBeUndefined()
  })
})
