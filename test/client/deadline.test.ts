import { describe, expect, it, vi } from 'vitest'
import { abortKind, deadlineOf, startDeadline } from '../../src/client/deadline.ts'
import { realEffects } from '../../src/client/effects.ts'
import { unaborted } from './support/fixtures.ts'
import { virtualEffects } from './support/virtual-effects.ts'

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

describe('startDeadline', () => {
  it('aborts when the time is over, with a reason that says so', async () => {
    const deadline = startDeadline({ timeoutMs: 20, parent: unaborted(), effects: realEffects })
    const alive = setTimeout(() => undefined, 5000)
    await aborted(deadline.signal)
    clearTimeout(alive)
    expect(abortKind(deadline.signal)).toBe('deadline')
  })

  it('says in its reason how long the time was', () => {
    vi.useFakeTimers()
    try {
      const deadline = startDeadline({ timeoutMs: 5000, parent: unaborted(), effects: realEffects })
      vi.advanceTimersByTime(5000)
      expect(deadline.signal.reason).toMatchObject({ name: 'TimeoutError', message: 'the time of 5000 ms is over' })
    } finally {
      vi.useRealTimers()
    }
  })

  it('aborts with its parent, and for its reason', () => {
    const parent = new AbortController()
    const deadline = startDeadline({ timeoutMs: 60_000, parent: parent.signal, effects: realEffects })
    parent.abort(new Error('SIGINT'))
    expect(deadline.signal.reason).toEqual(new Error('SIGINT'))
    expect(abortKind(deadline.signal)).toBe('cancelled')
    deadline.stop()
  })

  it('is over at once under a parent that is', () => {
    const deadline = startDeadline({ timeoutMs: 60_000, parent: AbortSignal.abort(), effects: realEffects })
    expect(deadline.signal.aborted).toBe(true)
    deadline.stop()
  })

  it('knows what is left, and never more than its parent has', () => {
    const effects = virtualEffects({ start: 1000 })
    const outer = startDeadline({ timeoutMs: 5000, parent: unaborted(), effects })
    const inner = startDeadline({ timeoutMs: 60_000, parent: outer.signal, effects })
    expect([outer.remainingMs(), inner.remainingMs()]).toEqual([5000, 5000])
    expect(deadlineOf(inner.signal)).toBe(6000)
    effects.advance(5500)
    expect(outer.remainingMs()).toBe(0)
    inner.stop()
    outer.stop()
  })

  it('does not fire after it was stopped', async () => {
    const parent = new AbortController()
    const deadline = startDeadline({ timeoutMs: 5, parent: parent.signal, effects: realEffects })
    deadline.stop()
    parent.abort()
    await realEffects.sleep(30, unaborted())
    expect(deadline.signal.aborted).toBe(false)
  })

  it('takes a time that is longer than a timer can be', async () => {
    const deadline = startDeadline({ timeoutMs: 90 * 86_400_000, parent: unaborted(), effects: realEffects })
    await realEffects.sleep(20, unaborted())
    expect(deadline.signal.aborted).toBe(false)
    deadline.stop()
  })
})

describe('deadlineOf', () => {
  it('is null for a signal without one', () => {
    expect(deadlineOf(unaborted())).toBeNull()
  })
})

describe('realEffects', () => {
  it('sleeps about as long as it is told', async () => {
    const since = realEffects.now()
    await realEffects.sleep(30, unaborted())
    expect(realEffects.now() - since).toBeGreaterThanOrEqual(28)
  })

  it('wakes up with the reason when its signal aborts, before or during the sleep', async () => {
    const controller = new AbortController()
    const during = realEffects.sleep(60_000, controller.signal)
    controller.abort(new Error('enough'))
    await expect(during).rejects.toThrow('enough')
    await expect(realEffects.sleep(60_000, controller.signal)).rejects.toThrow('enough')
  })

  it('draws numbers from 0 to 1', () => {
    const drawn = Array.from({ length: 100 }, () => realEffects.random())
    expect(drawn.every((number) => number >= 0 && number < 1)).toBe(true)
  })
})
