import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { beforeAbort } from '../../../src/action/github/before-abort.ts'

describe('what is waited for until a signal aborts', () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => void unhandled.push(reason)
  const settled = () => new Promise((resolve) => setImmediate(resolve))

  beforeEach(() => void process.on('unhandledRejection', note))
  afterEach(() => {
    process.off('unhandledRejection', note)
    unhandled.length = 0
  })

  it('is given, or fails, as it does by itself', async () => {
    const { signal } = new AbortController()
    expect(await beforeAbort(Promise.resolve('done'), signal)).toBe('done')
    await expect(beforeAbort(Promise.reject(new Error('broken')), signal)).rejects.toThrow('broken')
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('is left alone when it does not end by itself', async () => {
    const controller = new AbortController()
    const waiting = beforeAbort(new Promise(() => undefined), controller.signal)
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })

  it('is left alone at once under a signal that has aborted', async () => {
    await expect(beforeAbort(new Promise(() => undefined), AbortSignal.abort(new Error('before')))).rejects.toThrow('before')
  })

  it('may fail later, and the signal may abort later, without anybody to handle it', async () => {
    const controller = new AbortController()
    const late = Promise.withResolvers<never>()
    const waiting = beforeAbort(late.promise, controller.signal)
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    late.reject(new Error('too late'))
    const failed = beforeAbort(Promise.reject(new Error('broken')), AbortSignal.abort(new Error('before')))
    await expect(failed).rejects.toThrow('broken')
    await settled()
    expect(unhandled).toEqual([])
  })
})
