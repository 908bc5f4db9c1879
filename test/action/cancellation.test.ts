import { describe, expect, it, vi } from 'vitest'
import { createCancellation, withGrace } from '../../src/action/cancellation.ts'
import { fakeEffects } from './support/effects.ts'

describe('createCancellation', () => {
  it('aborts at the first signal and gives up at the second, whichever they are', () => {
    const listeners = new Map<string, () => void>()
    const giveUp = vi.fn()
    const info = vi.fn()
    const signal = createCancellation({ on: (name, listener) => listeners.set(name, listener), info, giveUp })
    expect([...listeners.keys()]).toEqual(['SIGINT', 'SIGTERM', 'SIGBREAK'])
    listeners.get('SIGINT')?.()
    expect(signal.aborted).toBe(true)
    expect(info).toHaveBeenCalledWith('Received SIGINT: ending.')
    expect(giveUp).not.toHaveBeenCalled()
    listeners.get('SIGTERM')?.()
    expect(giveUp).toHaveBeenCalledTimes(1)
  })
})

describe('withGrace', () => {
  const settle = () => new Promise((resolve) => setImmediate(resolve))

  it('aborts later than the signal that it follows, with its reason', async () => {
    const controller = new AbortController()
    const effects = fakeEffects()
    const grace = withGrace({ signal: controller.signal, ms: 1500, effects })
    controller.abort('why')
    expect(grace.signal.aborted).toBe(false)
    await settle()
    expect(effects.slept).toEqual([1500])
    expect(grace.signal.reason).toBe('why')
  })

  it('follows a signal that has aborted before, and nothing any more once it is stopped', async () => {
    const effects = fakeEffects()
    const late = withGrace({ signal: AbortSignal.abort('why'), ms: 10, effects })
    await settle()
    expect(late.signal.aborted).toBe(true)
    const controller = new AbortController()
    const stopped = withGrace({ signal: controller.signal, ms: 10, effects })
    stopped.stop()
    controller.abort()
    await settle()
    expect(stopped.signal.aborted).toBe(false)
  })
})
