import { describe, expect, it, vi } from 'vitest'
import { exportTraces } from '../../../src/action/export/export.ts'
import { toFailure } from '../../../src/action/report/error-codes.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import type { TestDeps } from '../support/deps.ts'
import { BUCKET, exportAnswer, exportDeps, exportStep, exportWish, fakeBulkExports, POLICY, SCHEDULE, WISH } from './support.ts'

describe('what a step tells of its export', () => {
  it('is a report of the whole', async () => {
    const { deps } = await exportStep({ wish: { filter: 'eq(is_root, true)', fields: ['id'] } })
    expect(deps.journal.export).toEqual({
      id: 'e',
      status: 'COMPLETED',
      kind: 'one-off',
      projectId: 's',
      start: '2025-12-31T00:00:00.000Z',
      end: '2026-01-01T00:00:00.000Z',
      intervalHours: undefined,
      filter: 'eq(is_root, true)',
      fields: ['id'],
      destination: 'lake (d)',
      path: 's3://lake/a/export_id=e/',
      rows: 5,
      files: 1,
      days: [{ day: '2025-12-31', rows: 5, runs: 1, done: 1 }],
      failures: [],
      moreFailures: 0,
    })
    expect(deps.lines.slice(0, 2)).toEqual([
      'Exporting the traces of the tracing project s through https://api.example.com.',
      'Created the export e.',
    ])
    expect(deps.warnings).toEqual([])
    expect(deps.journal.notes).toEqual([])
  })

  it('is what is wanted, when nothing could be read', async () => {
    const error = httpFailure(500, { path: '/api/v1/bulk-exports' })
    const { failure, deps } = await exportStep({ api: { listExports: vi.fn(async () => Promise.reject(error)) } })
    expect(failure?.message).toBe('Listing the exports failed: GET /api/v1/bulk-exports answered 500.')
    expect(deps.journal.export).toMatchObject({
      kind: 'one-off',
      id: undefined,
      destination: undefined,
      path: undefined,
      days: [],
      failures: [],
    })
  })

  it('is the path without an id until there is one', async () => {
    const createExport = vi.fn(async () => Promise.reject(httpFailure(500)))
    const { deps } = await exportStep({ api: { createExport } })
    expect(deps.journal.export).toMatchObject({ destination: 'lake (d)', path: 's3://lake/a/export_id=…/', id: undefined })
  })

  it('is the path without an id for a schedule, which has one for each of its exports', async () => {
    const createExport = vi.fn(async () => exportAnswer('IntervalScheduled', { interval_hours: 24 }))
    const { status, api, deps } = await exportWish({ ...SCHEDULE, formatVersion: 'v2_beta' }, { api: { createExport } })
    expect(status).toBe('exported')
    expect(vi.mocked(api.createExport).mock.calls[0]?.[0].body).toStrictEqual({
      bulk_export_destination_id: 'd',
      session_id: 's',
      start_time: '2025-12-31T00:00:00.000Z',
      interval_hours: 24,
      format_version: 'v2_beta',
    })
    expect(api.getExport).not.toHaveBeenCalled()
    expect(deps.journal.export).toMatchObject({
      kind: 'scheduled',
      end: undefined,
      intervalHours: 24,
      path: 's3://lake/a/export_id=…/',
      id: 'e',
    })
    expect(deps.outputs).toEqual({ 'export-id': 'e', 'export-status': 'INTERVAL_SCHEDULED' })
    expect(deps.state).toMatchObject({ exportId: 'e', exportEnded: 'true' })
    expect(deps.lines.at(-1)).toBe('A schedule has no end to wait for: the export e was accepted and is not followed.')
  })

  it('ends with the creation by export-wait: false', async () => {
    const { status, api, deps } = await exportStep({ wish: { wait: false } })
    expect(status).toBe('exported')
    expect(api.getExport).not.toHaveBeenCalled()
    expect(deps.state).toMatchObject({ exportId: 'e', exportEnded: 'true' })
    expect(deps.lines.at(-1)).toBe('export-wait: false: the export e was accepted and is not followed.')
    expect(vi.mocked(api.createExport).mock.calls[0]?.[0].body).toStrictEqual({
      bulk_export_destination_id: 'd',
      session_id: 's',
      start_time: '2025-12-31T00:00:00.000Z',
      end_time: '2026-01-01T00:00:00.000Z',
    })
  })

  describe('of a schedule that is there', () => {
    const live = (changes = {}) =>
      exportAnswer('IntervalScheduled', {
        interval_hours: 24,
        session_id: 's',
        bulk_export_destination_id: 'd',
        start_time: '2025-12-31',
        ...changes,
      })
    const listing = (changes = {}) => ({ api: { listExports: vi.fn(async () => [live(changes)]) } })

    it('is that nothing is to be done', async () => {
      const { status, deps } = await exportWish(SCHEDULE, listing({ start_time: '2020-01-01' }))
      expect(status).toBe('unchanged')
      expect(deps.lines.at(-1)).toBe('The schedule e is there already, with the same settings: nothing to do.')
      expect(deps.outputs).toEqual({ 'export-id': 'e', 'export-status': 'INTERVAL_SCHEDULED' })
    })

    it('is that its beginning differs from one that is fixed', async () => {
      const start = { at: '2025-12-31T00:00:00.000000Z' }
      expect((await exportWish({ ...SCHEDULE, start }, listing())).status).toBe('unchanged')
      expect((await exportWish({ ...SCHEDULE, start }, listing({ start_time: '2020-01-01' }))).failure).toMatchObject({
        code: 'E_CONFLICT',
        message: expect.stringContaining('start_time is 2020-01-01T00:00:00.000000Z, wanted is 2025-12-31T00:00:00.000000Z'),
      })
    })

    it('is nothing to a one-off export', async () => {
      const { status, api } = await exportStep(listing())
      expect(status).toBe('exported')
      expect(vi.mocked(api.createExport).mock.calls[0]?.[0].known).toEqual(['e'])
    })
  })

  describe('in a dry run', () => {
    const policy = { dryRun: true }

    it('is the plan of a one-off export', async () => {
      const { status, api, deps } = await exportStep({ policy, wish: { filter: 'eq(is_root, true)', fields: ['id', 'name'] } })
      expect(status).toBe('planned')
      expect(api.createExport).not.toHaveBeenCalled()
      expect(deps.groups).toEqual([
        {
          title: 'Plan: create the export',
          lines: [
            'destination: d',
            'range: 2025-12-31T00:00:00.000Z to 2026-01-01T00:00:00.000Z',
            'filter: eq(is_root, true)',
            'fields: id, name',
          ],
        },
      ])
      expect(deps.lines.at(-1)).toBe('dry-run: nothing was exported.')
      expect(deps.state).toEqual({})
    })

    it('is the plan of a schedule to a destination that is not there', async () => {
      const { status, api, deps } = await exportWish({ ...SCHEDULE, destination: BUCKET }, { policy })
      expect(status).toBe('planned')
      expect(api.createDestination).not.toHaveBeenCalled()
      expect(deps.groups[0]?.lines).toEqual([
        'destination: would be created',
        'range: 2025-12-31T00:00:00.000Z to every 24 h',
        'filter: none',
        'fields: all',
      ])
      expect(deps.journal.export).toMatchObject({ destination: undefined, path: undefined })
    })
  })

  describe('of its range', () => {
    const future = (end: string) =>
      `The range ends in the future (${end}): traces that arrive after the export has read their day are missed.`

    it.each([
      ['2026-01-01T00:00:00.000Z', []],
      ['2026-01-01T00:00:00.001Z', [future('2026-01-01T00:00:00.001Z')]],
    ])('is a warning when it ends in the future: %s', async (at, warnings) => {
      const { status, deps } = await exportStep({ wish: { end: { at } } })
      expect(status).toBe('exported')
      expect(deps.warnings).toEqual(warnings)
      expect(deps.journal.notes).toEqual(warnings)
    })

    it('is what is wrong with it, before anything is asked', async () => {
      const { failure, api, deps } = await exportStep({ wish: { start: { beforeMs: 0 } } })
      expect(failure).toMatchObject({
        code: 'E_INPUT',
        message:
          'export-end is not later than export-start (2026-01-01T00:00:00.000Z to 2026-01-01T00:00:00.000Z): the end is exclusive.',
        tried: 'Nothing was exported.',
      })
      expect(api.getDestination).not.toHaveBeenCalled()
      expect(deps.journal.export).toBeUndefined()
    })
  })

  describe('when it is cancelled', () => {
    const running = { getExport: vi.fn(async () => exportAnswer('Running')) }
    const abort = (deps: TestDeps) => deps.abort()

    it('is that the export goes on, by on-cancel: leave', async () => {
      const { deps } = await exportStep({ api: running }, abort)
      const sentence = 'on-cancel is leave: the export e goes on by itself.'
      expect(deps.lines.at(-1)).toBe(sentence)
      expect(deps.journal.notes).toEqual([sentence])
      expect(deps.outputs['export-status']).toBe('RUNNING')
      expect(deps.state['cancelExport']).toBeUndefined()
    })

    it('is that the export was cancelled, by on-cancel: interrupt', async () => {
      const { api, deps } = await exportStep({ policy: { onCancel: 'interrupt' }, api: running }, abort)
      const sentence = 'The export e was cancelled: it is CANCELLED.'
      expect(api.cancelExport).toHaveBeenCalledExactlyOnceWith({ id: 'e', timeoutMs: 2000, signal: expect.any(AbortSignal) })
      expect(deps.lines.at(-1)).toBe(sentence)
      expect(deps.journal.notes).toEqual([sentence])
      expect(deps.outputs['export-status']).toBe('CANCELLED')
      expect(deps.state['cancelExport']).toBe('')
    })

    it('is left to post when it could not be done', async () => {
      const cancelExport = vi.fn(async () => Promise.reject(httpFailure(500)))
      const { deps } = await exportStep({ policy: { onCancel: 'interrupt' }, api: { ...running, cancelExport } }, abort)
      expect(deps.lines.at(-1)).toContain('The export e could not be cancelled, and may go on by itself: ')
      expect(deps.outputs['export-status']).toBe('RUNNING')
      expect(deps.state['cancelExport']).toBe('cancel')
    })

    it('is nothing of an export that was not made', async () => {
      const listExports = vi.fn(async () => Promise.reject(requestFailure({ kind: 'cancelled', summary: 'was cancelled' })))
      const { failure, api, deps } = await exportStep({ policy: { onCancel: 'interrupt' }, api: { listExports } })
      expect(failure?.code).toBe('E_CANCELLED')
      expect(api.cancelExport).not.toHaveBeenCalled()
      expect(deps.journal.notes).toEqual([])
    })

    it('is nothing of an export that has ended by another failure', async () => {
      const { failure, api, deps } = await exportStep({
        policy: { onCancel: 'interrupt' },
        api: { getExport: vi.fn(async () => exportAnswer('Failed')) },
      })
      expect(failure?.code).toBe('E_EXPORT_FAILED')
      expect(api.cancelExport).not.toHaveBeenCalled()
      expect(deps.journal.notes).toEqual([])
    })

    it('is nothing of an export that had ended by then', async () => {
      const api = {
        createExport: vi.fn(async () => exportAnswer('Completed')),
        getExport: vi.fn(async () => Promise.reject(requestFailure())),
      }
      const { failure, api: used, deps } = await exportStep({ policy: { onCancel: 'interrupt' }, api }, abort)
      expect(failure).toMatchObject({ code: 'E_CANCELLED', message: 'The step was cancelled while it waited for the export.' })
      expect(used.cancelExport).not.toHaveBeenCalled()
      expect(deps.journal.notes).toEqual([])
    })

    it.each([
      [true, { code: 'E_CANCELLED', message: 'The step was cancelled during the export.' }],
      [false, toFailure(new Error('broken pipe'))],
    ])('is why something else broke off (%s)', async (cancelled, { code, message }) => {
      const broken = new Error('broken pipe')
      const deps = exportDeps(fakeBulkExports())
      deps.log.info = () => {
        if (cancelled) deps.abort()
        throw broken
      }
      await expect(exportTraces({ wish: WISH, policy: POLICY, deps })).rejects.toMatchObject({ code, message, cause: broken })
    })
  })

  it('leaves no timer behind', async () => {
    vi.useFakeTimers()
    try {
      await exportStep()
      await exportStep({ wish: { start: { beforeMs: 0 } } })
      await exportStep({ api: { getExport: vi.fn(async () => exportAnswer('Failed')) } })
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })
})
