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

describe('the reason of a cancellation', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGBREAK'])('is an abort that names %s', (name) => {
    const listeners = new Map<string, () => void>()
    const lines: string[] = []
    const signal = createCancellation({
      on: (heard, listener) => listeners.set(heard, listener),
      info: (line) => lines.push(line),
      giveUp: () => undefined,
    })
    expect(signal.aborted).toBe(false)
    listeners.get(name)?.()
    expect(signal.reason).toMatchObject({ name: 'AbortError', message: `received ${name}` })
    expect(lines).toEqual([`Received ${name}: ending.`])
  })
})

describe('withGrace', () => {
  const settle = () => new Promise((resolve) => setImmediate(resolve))

  it('ends its wait when it is stopped after the abort', async () => {
    const controller = new AbortController()
    const waits: AbortSignal[] = []
    const sleep = (_: number, until: AbortSignal) =>
      new Promise<void>((_resolve, reject) => {
        waits.push(until)
        until.addEventListener('abort', () => reject(until.reason as Error))
      })
    const grace = withGrace({ signal: controller.signal, ms: 1500, effects: { ...fakeEffects(), sleep } })
    controller.abort('why')
    grace.stop()
    await settle()
    expect(waits.map(({ aborted }) => aborted)).toEqual([true])
    expect(grace.signal.aborted).toBe(false)
  })

  it('begins no wait once it is stopped', async () => {
    const controller = new AbortController()
    const effects = fakeEffects()
    const sleep = vi.fn(effects.sleep)
    const grace = withGrace({ signal: controller.signal, ms: 1500, effects: { ...effects, sleep } })
    grace.stop()
    controller.abort('why')
    await settle()
    expect(sleep).not.toHaveBeenCalled()
  })

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
