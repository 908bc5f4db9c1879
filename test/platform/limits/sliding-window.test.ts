import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SlidingWindow } from '../../../src/platform/limits/sliding-window.ts'

test('lets in the limit and refuses the next, saying when one more is possible', () => {
  const window = new SlidingWindow({ limit: 3, windowMs: 1000 })
  expect([0, 10, 20].map((now) => window.take(now).admitted)).toEqual([true, true, true])
  expect(window.take(30)).toEqual({ admitted: false, remaining: 0, retryAfterMs: 970 })
  expect(window.take(999).admitted).toBe(false)
  expect(window.take(1000).admitted).toBe(true)
  expect(window.take(1009).admitted).toBe(false)
})

test("gives no double allowance across a window's edge", () => {
  const window = new SlidingWindow({ limit: 100, windowMs: 1000 })
  const admitted = Array.from({ length: 400 }, (_, index) => (window.take(900 + index * 0.5).admitted ? 900 + index * 0.5 : null))
  expect(admitted.filter((time) => time !== null)).toHaveLength(100)
})

test('decides as an exact log does, for any times and limits', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 500 }),
      fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 300 }),
      (limit, windowMs, gaps) => {
        const window = new SlidingWindow({ limit, windowMs })
        const log: number[] = []
        let now = 0
        for (const gap of gaps) {
          now += gap
          const inside = log.filter((time) => time + windowMs > now)
          const { admitted, remaining, retryAfterMs } = window.take(now)
          expect(admitted).toBe(inside.length < limit)
          if (admitted) log.push(now)
          expect(remaining).toBe(Math.max(0, limit - inside.length - 1))
          if (!admitted) expect(retryAfterMs).toBe((inside[0] ?? 0) + windowMs - now)
        }
      },
    ),
  )
})

test('after the wait that it names, the next request is let in', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10 }), fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 100 }), (limit, gaps) => {
      const window = new SlidingWindow({ limit, windowMs: 100 })
      let now = 0
      for (const gap of gaps) {
        now += gap
        const verdict = window.take(now)
        if (verdict.admitted) continue
        now += verdict.retryAfterMs
        expect(window.take(now).admitted).toBe(true)
      }
    }),
  )
})

test('is idle when all that it remembers is over', () => {
  const window = new SlidingWindow({ limit: 2, windowMs: 100 })
  expect(window.isIdle(0)).toBe(true)
  window.take(0)
  expect(window.isIdle(99)).toBe(false)
  expect(window.isIdle(100)).toBe(true)
})
