import { describe, expect, it, vi } from 'vitest'
import { cancelExport } from '../../../src/action/export/cancel.ts'
import type { BulkExports } from '../../../src/client/bulk-export.ts'
import { deadlineOf } from '../../../src/client/deadline.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { fakeEffects } from '../support/effects.ts'
import { exportAnswer } from './support.ts'

const cancel = (answer: BulkExports['cancelExport']) => {
  const ask = vi.fn(answer)
  const effects = fakeEffects()
  return { ask, effects, told: cancelExport({ exportId: 'e', timeoutMs: 2000, once: { cancelExport: ask }, effects }) }
}
const failing = (thrown: unknown) => cancel(async () => Promise.reject(thrown)).told

describe('cancelling an export', () => {
  it('asks for this export, within the time that is left', async () => {
    const { ask, effects, told } = cancel(async () => exportAnswer('Cancelled'))
    expect(await told).toEqual({ settled: true, status: 'CANCELLED', sentence: 'The export e was cancelled: it is CANCELLED.' })
    expect(ask).toHaveBeenCalledExactlyOnceWith({ id: 'e', timeoutMs: 2000, signal: expect.any(AbortSignal) })
    const signal = ask.mock.calls[0]?.[0].signal
    expect(signal === undefined ? null : deadlineOf(signal)).toBe(effects.now() + 2000)
  })

  it.each([404, 409])('is settled when the service answers %i', async (status) => {
    expect(await failing(httpFailure(status, { method: 'PATCH', path: '/api/v1/bulk-exports/e' }))).toEqual({
      settled: true,
      status: undefined,
      sentence: `The export e had ended before it could be cancelled: PATCH /api/v1/bulk-exports/e answered ${status}`,
    })
  })

  it.each([
    ['a server that fails', httpFailure(500), 'GET /v2/deployments answered 500'],
    ['no answer', requestFailure(), 'GET /v2/deployments got no answer'],
    ['an operation that is not there', httpFailure(404, { kind: 'unsupported' }), 'GET /v2/deployments answered 404'],
    ['an answer that is none of the service', httpFailure(409, { kind: 'protocol' }), 'GET /v2/deployments answered 409'],
    ['an error of another kind', Object.assign(new Error('broken'), { kind: 'http', status: 404 }), 'broken'],
    ['what is no error', 'a word', 'a word'],
  ])('is not settled by %s', async (_, error, why) => {
    expect(await failing(error)).toEqual({
      settled: false,
      status: undefined,
      sentence: `The export e could not be cancelled, and may go on by itself: ${why}`,
    })
  })

  it('leaves no timer behind', async () => {
    vi.useFakeTimers()
    try {
      await cancel(async () => exportAnswer('Cancelled')).told
      await failing(httpFailure(500))
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })
})
