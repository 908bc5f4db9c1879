import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { startDuty } from '../../src/platform/duty.ts'
import { until } from './support/processes.ts'

const silent = pino({ level: 'silent' })

/** A duty that counts its rounds. */
function counting(round: (count: number) => Promise<boolean | void> = async () => undefined, intervalMs = 60_000, log = silent) {
  const seen = { rounds: 0, together: 0, most: 0 }
  const duty = startDuty({
    name: 'test',
    intervalMs,
    log,
    round: async () => {
      seen.rounds += 1
      seen.together += 1
      seen.most = Math.max(seen.most, seen.together)
      try {
        return await round(seen.rounds)
      } finally {
        seen.together -= 1
      }
    },
  })
  return { duty, seen }
}

describe('a duty', () => {
  test('looks at once, then at the interval', async () => {
    const slow = counting(undefined, 60_000)
    await until(() => slow.seen.rounds === 1)
    await sleep(50)
    expect(slow.seen.rounds).toBe(1)
    await slow.duty.stop()
    const began = performance.now()
    const { duty, seen } = counting(undefined, 50)
    await until(() => seen.rounds >= 4)
    expect(performance.now() - began, 'three intervals').toBeGreaterThan(3 * 50 - 10)
    await duty.stop()
  })

  test('goes on at once as long as it finds work', async () => {
    const { duty, seen } = counting(async (count) => count < 50)
    await until(() => seen.rounds === 50)
    await sleep(20)
    expect(seen.rounds).toBe(50)
    await duty.stop()
  })

  test('is woken, also in the middle of a round, and never runs twice at a time', async () => {
    const { duty, seen } = counting(() => sleep(20))
    await sleep(5)
    duty.wake()
    duty.wake()
    await until(() => seen.rounds === 2)
    await sleep(50)
    expect(seen.rounds, 'two wishes within one round are one').toBe(2)
    duty.wake()
    await until(() => seen.rounds === 3)
    expect(seen.most).toBe(1)
    await duty.stop()
  })

  test('goes on after failures at its interval, whoever wakes it, and tells of fewer and fewer', async () => {
    const lines: string[] = []
    const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) })
    const { duty, seen } = counting(() => Promise.reject(new Error('the database is away')), 5, log)
    const waking = setInterval(() => duty.wake(), 1)
    const began = Date.now()
    await until(() => seen.rounds >= 20)
    clearInterval(waking)
    expect(Date.now() - began).toBeGreaterThanOrEqual(19 * 4)
    await duty.stop()
    expect(lines.map((line) => (JSON.parse(line) as { failures: number }).failures).slice(0, 5)).toEqual([1, 2, 4, 8, 16])
  })

  test('stops after the round in hand, and begins none afterwards', async () => {
    let ended = false
    const { duty, seen } = counting(async () => {
      await sleep(30)
      ended = true
      return true
    })
    await duty.stop()
    expect(ended).toBe(true)
    duty.wake()
    await sleep(20)
    expect(seen.rounds).toBe(1)
  })
})
