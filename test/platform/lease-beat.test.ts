import { setImmediate as settled } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createLeaseBeat } from '../../src/platform/lease-beat.ts'

const LEASE_MS = 30_000
const HEARTBEAT_MS = 5000

/** A beat whose time and whose database are in the test's hand. */
function setBeat() {
  const questions: PromiseWithResolvers<boolean>[] = []
  const onSilence = vi.fn()
  const renew = () => {
    const question = Promise.withResolvers<boolean>()
    questions.push(question)
    return question.promise
  }
  const look = createLeaseBeat({ renew, leaseMs: LEASE_MS, heartbeatMs: HEARTBEAT_MS, onSilence })
  const last = () => questions.at(-1) as PromiseWithResolvers<boolean>
  return {
    onSilence,
    questions,
    look: async () => {
      look()
      await settled()
    },
    answers: async () => {
      last().resolve(true)
      await settled()
    },
    fails: async () => {
      last().reject(new Error('away'))
      await settled()
    },
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})
const passes = (milliseconds: number) => vi.setSystemTime(Date.now() + milliseconds)

describe('a database that does not answer', () => {
  test('is silent before the lease ends, whether it keeps the question or refuses it', async () => {
    for (const refuses of [false, true]) {
      const beat = setBeat()
      await beat.look()
      await beat.answers()
      for (let at = HEARTBEAT_MS; at <= LEASE_MS - HEARTBEAT_MS; at += HEARTBEAT_MS) {
        passes(HEARTBEAT_MS)
        await beat.look()
        if (refuses) await beat.fails()
      }
      expect(beat.onSilence).not.toHaveBeenCalled()
      passes(1)
      await beat.look()
      if (refuses) await beat.fails()
      expect(beat.onSilence).toHaveBeenCalled()
    }
  })

  test('is asked one question at a time; news that comes meanwhile is one more', async () => {
    const beat = setBeat()
    for (let news = 0; news < 5; news += 1) await beat.look()
    expect(beat.questions).toHaveLength(1)
    await beat.answers()
    expect(beat.questions).toHaveLength(2)
    await beat.answers()
    expect(beat.questions).toHaveLength(2)
  })
})

describe('a process that slept until its lease was over', () => {
  const asleep = async ({ asked = false } = {}) => {
    const beat = setBeat()
    await beat.look()
    if (!asked) await beat.answers()
    passes(LEASE_MS)
    return beat
  }

  test('has asked nobody meanwhile: news before the first answer is no silence', async () => {
    const beat = await asleep()
    await beat.look()
    await beat.look()
    await beat.answers()
    await beat.answers()
    expect(beat.onSilence).not.toHaveBeenCalled()
    passes(LEASE_MS - HEARTBEAT_MS)
    await beat.look()
    await beat.look()
    expect(beat.onSilence, 'what was renewed counts from then on').not.toHaveBeenCalled()
  })

  test('may find the answer to a question of before', async () => {
    const beat = await asleep({ asked: true })
    await beat.look()
    await beat.answers()
    await beat.answers()
    expect(beat.onSilence).not.toHaveBeenCalled()
  })

  test('may find its connection broken, and asks again on another', async () => {
    const beat = await asleep()
    await beat.look()
    await beat.fails()
    expect(beat.onSilence).not.toHaveBeenCalled()
    passes(HEARTBEAT_MS)
    await beat.look()
    await beat.answers()
    expect(beat.onSilence).not.toHaveBeenCalled()
  })

  test('waits for an answer from when it is missed, and no longer than a heartbeat', async () => {
    for (const refuses of [false, true]) {
      const beat = await asleep()
      await beat.look()
      if (refuses) await beat.fails()
      else {
        passes(HEARTBEAT_MS)
        await beat.look()
      }
      passes(HEARTBEAT_MS - 1)
      await beat.look()
      expect(beat.onSilence).not.toHaveBeenCalled()
      passes(1)
      await beat.look()
      if (refuses) await beat.fails()
      expect(beat.onSilence).toHaveBeenCalled()
    }
  })
})
