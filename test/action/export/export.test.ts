import { describe, expect, it, vi } from 'vitest'
import { destinationName } from '../../../src/action/export/destination.ts'
import { runPost } from '../../../src/action/post.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import {
  BUCKET,
  destinationAnswer,
  exportAnswer,
  exportDeps,
  exportStep,
  exportWish,
  fakeBulkExports,
  runAnswer,
  SCHEDULE,
  WISH,
} from './support.ts'

describe('exportTraces', () => {
  it('sends UTC, follows, and leaves its outputs', async () => {
    const { status, api, deps } = await exportStep({ wish: { filter: 'eq(is_root, true)', fields: ['id'] } })
    expect(status).toBe('exported')
    expect(vi.mocked(api.createExport).mock.calls[0]?.[0].body).toEqual({
      bulk_export_destination_id: 'd',
      session_id: 's',
      start_time: '2025-12-31T00:00:00.000Z',
      end_time: '2026-01-01T00:00:00.000Z',
      filter: 'eq(is_root, true)',
      export_fields: ['id'],
    })
    expect(deps.outputs).toMatchObject({
      'export-id': 'e',
      'export-status': 'COMPLETED',
      'export-rows': '5',
      'export-files': '1',
    })
    expect(deps.state).toMatchObject({ exportId: 'e', exportEnded: 'true', pending: '' })
  })

  it('tells progress on change and once a minute, and waits out what passes', async () => {
    const limited = httpFailure(429, { retryAfterMs: 300_000 })
    const answers = [exportAnswer('Running'), requestFailure(), limited, exportAnswer('Running'), exportAnswer('Completed')]
    const getExport = vi.fn(async () => {
      const next = answers.shift()
      if (next === undefined || next instanceof Error) throw next ?? new Error('asked too often')
      return next
    })
    const { status, deps } = await exportStep({
      api: { getExport, listRuns: vi.fn(async () => [runAnswer('Completed'), runAnswer('Running')]) },
    })
    expect(status).toBe('exported')
    const text = deps.lines.join('\n')
    expect(text).toContain('RUNNING after 0 s: 1 of 2 runs, 10 rows')
    expect(text).toContain('The service answers again')
    expect(deps.lines.filter((line) => line.startsWith('No answer for')).length).toBeGreaterThanOrEqual(4)
    expect(deps.journal.rateLimitWaitMs()).toBe(300_000)
  })

  it('is over when the time is', async () => {
    const { failure, api } = await exportStep({
      policy: { onTimeout: 'interrupt' },
      api: { getExport: vi.fn(async () => exportAnswer('Running')) },
    })
    expect(failure).toMatchObject({ code: 'E_EXPORT_TIMEOUT', message: expect.stringContaining('still RUNNING after 10 min') })
    expect(api.cancelExport).toHaveBeenCalledOnce()
  })

  it('tells a connection that was lost from an export that is slow', async () => {
    const getExport = vi
      .fn(async () => Promise.reject(requestFailure()))
      .mockImplementationOnce(async () => exportAnswer('Running') as never)
    const { failure } = await exportStep({ api: { getExport } })
    expect(failure).toMatchObject({
      code: 'E_UNAVAILABLE',
      message: expect.stringMatching(/for the last 9 min .*seen is RUNNING/s),
    })
  })

  it.each([
    ['Failed', 'E_EXPORT_FAILED'],
    ['CANCELLED', 'E_EXPORT_CANCELLED'],
    ['TimedOut', 'E_EXPORT_TIMEOUT'],
  ])('is red for %s', async (status, code) => {
    const errors = { retry_0: 'processing: no', retry_1: 'run_timeout: too slow' }
    const api = {
      getExport: vi.fn(async () => exportAnswer(status)),
      listRuns: vi.fn(async () => [runAnswer('Failed', { errors })]),
    }
    const { failure, deps } = await exportStep({ api })
    expect(failure).toMatchObject({ code, message: expect.stringContaining('run_timeout: too slow') })
    expect(deps.journal.export?.failures).toHaveLength(1)
  })

  it.each(['leave', 'interrupt'] as const)('when cancelled does as on-cancel: %s says', async (onCancel) => {
    const api = { getExport: vi.fn(async () => exportAnswer('Running')) }
    const { failure, api: used } = await exportStep({ policy: { onCancel }, api }, (deps) => deps.abort())
    expect(failure?.code).toBe('E_CANCELLED')
    expect(used.cancelExport).toHaveBeenCalledTimes(onCancel === 'interrupt' ? 1 : 0)
  })

  it('never cancels an export that it has not made', async () => {
    const live = exportAnswer('IntervalScheduled', { interval_hours: 24, session_id: 's', bulk_export_destination_id: 'd' })
    const api = { listExports: vi.fn(async () => [live]) }
    const { status, api: used, deps } = await exportWish(SCHEDULE, { policy: { onCancel: 'interrupt' }, api })
    expect(status).toBe('unchanged')
    expect(deps.outputs['export-id']).toBe('e')
    expect(deps.state['exportId']).toBeUndefined()
    expect(used.createExport).not.toHaveBeenCalled()
  })

  it('names the address that is to be checked', async () => {
    const refused = requestFailure({ path: '/api/v1/bulk-exports', code: 'ECONNREFUSED' })
    const { failure } = await exportStep({ api: { listExports: vi.fn(async () => Promise.reject(refused)) } })
    expect(failure).toMatchObject({
      code: 'E_UNAVAILABLE',
      next: 'Nothing listens there: check api-url, and that the service runs.',
    })
  })

  it('refuses a range that a long deploy has turned round', async () => {
    const { failure, api } = await exportStep({ wish: { start: { beforeMs: 0 }, end: { at: '2025-12-31T23:00:00Z' } } })
    expect(failure?.code).toBe('E_INPUT')
    expect(api.createExport).not.toHaveBeenCalled()
  })
})

describe('a destination by its bucket', () => {
  const named = destinationAnswer({ display_name: destinationName(BUCKET) })
  const credentials = { access_key_id: 'id', secret_access_key: 'secret' }

  it('has a name that the service accepts and that follows from the place', () => {
    expect(destinationName(BUCKET)).toMatch(/^[a-zA-Z0-9\-_ ']+$/)
    expect(destinationName(BUCKET)).toBe(destinationName(structuredClone(BUCKET)))
    expect(destinationName({ config: { ...BUCKET.config, prefix: 'a b' } })).not.toBe(destinationName(BUCKET))
  })

  it('is created when it is absent, and never doubled', async () => {
    const made = await exportStep({ wish: { destination: BUCKET } })
    expect(made.api.createDestination).toHaveBeenCalledOnce()
    const found = await exportStep({ wish: { destination: BUCKET }, api: { listDestinations: vi.fn(async () => [named]) } })
    expect(found.api.createDestination).not.toHaveBeenCalled()
    expect(found.api.updateCredentials).not.toHaveBeenCalled()
  })

  it('gets new credentials, where the service can', async () => {
    const listDestinations = vi.fn(async () => [
      { ...named, id: 'later', created_at: '2026-01-02' },
      { ...named, created_at: '2026-01-01' },
    ])
    const updateCredentials = vi.fn(async () => Promise.reject(requestFailure({ kind: 'unsupported', status: 405 })))
    const { status, deps } = await exportStep({
      wish: { destination: { ...BUCKET, credentials } },
      api: { listDestinations, updateCredentials },
    })
    expect(status).toBe('exported')
    expect(updateCredentials).toHaveBeenCalledWith(expect.objectContaining({ id: 'd', credentials }))
    expect(deps.journal.notes.join()).toContain('cannot change the credentials')
  })

  it('is refused with the cause and its remedy', async () => {
    const detail = 'Destination refused: Key ID you provided does not exist.'
    const createDestination = vi.fn(async () => Promise.reject(httpFailure(400, { detail })))
    const { failure } = await exportStep({ wish: { destination: BUCKET }, api: { createDestination } })
    expect(failure).toMatchObject({ code: 'E_DESTINATION', next: expect.stringContaining('export-access-key-id') })
  })
})

describe('post', () => {
  const post = async (state: Record<string, string>, onCancel: 'leave' | 'interrupt' = 'interrupt') => {
    const fake = fakeBulkExports()
    const deps = exportDeps(fake)
    const connect = () => ({ onCancel, apiUrl: WISH.apiUrl, deps })
    await runPost({ getState: (key) => state[key] ?? '', connect, log: deps.log })
    return vi.mocked(fake.cancelExport).mock.calls.length
  }

  it.each([
    ['was made and not followed to its end', { exportId: 'e' }, 'interrupt', 1],
    ['could not be cancelled by main', { exportId: 'e', done: 'true', cancelExport: 'timeout' }, 'leave', 1],
    ['is to be left', { exportId: 'e' }, 'leave', 0],
    ['has ended', { exportId: 'e', exportEnded: 'true' }, 'interrupt', 0],
    ['was concluded', { exportId: 'e', done: 'true' }, 'interrupt', 0],
    ['was never made', {}, 'interrupt', 0],
  ] as const)('for an export that %s', async (_, state, onCancel, times) => {
    expect(await post(state, onCancel)).toBe(times)
  })
})
