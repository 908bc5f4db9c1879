import { afterEach, describe, expect, it, vi } from 'vitest'
import { interruptRevision } from '../../src/action/interrupt.ts'
import { httpFailure, requestFailure } from '../support/request-failure.ts'
import { DEPLOYMENT_ID, NEW_REVISION_ID } from './support/answers.ts'
import { fakeDeps } from './support/deps.ts'

const wanted = { deploymentId: DEPLOYMENT_ID, revisionId: NEW_REVISION_ID, timeoutMs: 2000 }
const failing = (reason: unknown) => fakeDeps({ interruptRevision: async () => Promise.reject(reason) })

afterEach(() => {
  vi.useRealTimers()
})

describe('interruptRevision', () => {
  it('asks once, within its time, although the step was cancelled', async () => {
    const deps = fakeDeps()
    deps.abort()
    expect(await interruptRevision({ ...wanted, deps })).toEqual({
      settled: true,
      sentence: `The control plane was asked to interrupt the revision ${NEW_REVISION_ID}.`,
    })
    expect(deps.controlPlane.interruptRevision).toHaveBeenCalledTimes(1)
    const [asked] = vi.mocked(deps.controlPlane.interruptRevision).mock.calls[0]!
    expect(asked).toMatchObject(wanted)
    expect(asked.signal.aborted).toBe(false)
  })

  it.each([
    [
      'is settled where the control plane cannot interrupt',
      requestFailure({ kind: 'unsupported' }),
      true,
      `This control plane has no way to interrupt a revision: ${NEW_REVISION_ID} goes on by itself.`,
    ],
    [
      'is not settled after another refusal',
      httpFailure(503, { summary: 'answered 503' }),
      false,
      `The revision ${NEW_REVISION_ID} could not be interrupted, and may go on by itself: ${httpFailure(503).message}`,
    ],
    [
      'is not settled after whatever was thrown',
      'out of memory',
      false,
      `The revision ${NEW_REVISION_ID} could not be interrupted, and may go on by itself: out of memory`,
    ],
  ])('%s', async (_, error, settled, sentence) => {
    expect(await interruptRevision({ ...wanted, deps: failing(error) })).toEqual({ settled, sentence })
  })

  it('ends the request when its time is over', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const deps = fakeDeps({
      interruptRevision: ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    })
    const ended = interruptRevision({ ...wanted, deps })
    await vi.advanceTimersByTimeAsync(2000)
    expect(await ended).toEqual({
      settled: false,
      sentence: expect.stringContaining('may go on by itself: the time of 2000 ms is over') as string,
    })
  })

  it.each([
    ['well', fakeDeps()],
    ['badly', failing(httpFailure(500))],
  ])('leaves no timer behind when it ends %s', async (_, deps) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    await interruptRevision({ ...wanted, deps })
    expect(vi.getTimerCount()).toBe(0)
  })
})
