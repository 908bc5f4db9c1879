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
