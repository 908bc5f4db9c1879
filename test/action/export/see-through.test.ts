import { describe, expect, it, vi } from 'vitest'
import type { ExportPolicy } from '../../../src/action/export/deps.ts'
import type { ExportReport } from '../../../src/action/export/report.ts'
import { seeThrough } from '../../../src/action/export/see-through.ts'
import type { BulkExports } from '../../../src/client/bulk-export.ts'
import { httpFailure } from '../../support/request-failure.ts'
import { exportAnswer, exportDeps, fakeBulkExports, POLICY, runAnswer, WISH } from './support.ts'

async function see(api: Partial<BulkExports> = {}, policy: Partial<ExportPolicy> = {}, timeoutMs = WISH.timeoutMs) {
  const once = fakeBulkExports(api)
  const deps = exportDeps(once)
  const told: Partial<ExportReport>[] = []
  const saved: [string, string][] = []
  const save = deps.journal.save
  deps.journal.save = (key, value) => {
    saved.push([key, value])
    save(key, value)
  }
  const options = { wish: { ...WISH, timeoutMs }, made: exportAnswer('Created'), policy: { ...POLICY, ...policy }, once, deps }
  const failure: unknown = await seeThrough({ ...options, tell: (changes) => told.push(changes) }).catch(
    (error: unknown) => error,
  )
  return { failure, once, deps, told, saved }
}

const running = { getExport: vi.fn(async () => exportAnswer('Running')) }

describe('seeing an export through', () => {
  it('tells how it began and how it ended', async () => {
    const answers = [exportAnswer('Running'), exportAnswer('Completed')]
    const getExport = vi.fn(async () => answers.shift() ?? exportAnswer('Completed'))
    const { failure, deps, told, saved } = await see({ getExport })
    expect(failure).toBeUndefined()
    expect(deps.lines.at(0)).toBe('Waiting for the export e, 10 min at most.')
    expect(deps.lines.at(-1)).toBe('The export e is complete: 5 rows in 1 file, after 1 s.')
    expect(deps.outputs).toEqual({ 'export-status': 'COMPLETED', 'export-rows': '5', 'export-files': '1' })
    expect(told.map(({ status }) => status)).toEqual(['RUNNING', 'COMPLETED'])
    expect(told.at(-1)).toEqual({
      status: 'COMPLETED',
      rows: 5,
      files: 1,
      days: [{ day: '2025-12-31', rows: 5, runs: 1, done: 1 }],
      failures: [],
      moreFailures: 0,
    })
    expect(deps.groups).toEqual([])
    expect(saved).toEqual([['exportEnded', 'true']])
  })

  it('lists the runs that failed, without secrets', async () => {
    const errors = { retry_0: 'the moon is full for key-of-the-test' }
    const listRuns = vi.fn(async () => [runAnswer('Failed', { errors })])
    const { failure, deps, told, saved } = await see({ getExport: vi.fn(async () => exportAnswer('Failed')), listRuns })
    expect(failure).toMatchObject({ code: 'E_EXPORT_FAILED', message: expect.stringContaining('the moon is full for ***') })
    const remedy = 'Look at what the error names; leaving the field or the day out shows whether it is the cause.'
    expect(deps.groups).toEqual([
      { title: 'Failing export runs', lines: [`2025-12-31: FAILED: the moon is full for *** → ${remedy}`] },
    ])
    expect(told.at(-1)?.failures).toEqual([
      { day: '2025-12-31', status: 'FAILED', attempts: 1, error: 'the moon is full for ***', remedy },
    ])
    expect(saved).toEqual([['exportEnded', 'true']])
  })

  it('lists the errors of runs that are tried again in an export that is complete', async () => {
    const runs = [runAnswer('Completed'), runAnswer('Failed', { errors: { retry_0: 'no' } })]
    const { failure, deps } = await see({ listRuns: vi.fn(async () => runs) })
    expect(failure).toBeUndefined()
    expect(deps.groups).toHaveLength(1)
  })
})

describe('an export that takes too long', () => {
  it('is left alone by on-timeout: leave', async () => {
    const { failure, once, deps, saved } = await see(running)
    const tried = 'on-timeout is leave: the export e goes on by itself.'
    expect(failure).toMatchObject({ code: 'E_EXPORT_TIMEOUT', message: 'The export e was still RUNNING after 10 min.', tried })
    expect(once.cancelExport).not.toHaveBeenCalled()
    expect(deps.lines.at(-1)).toBe(tried)
    expect(deps.journal.notes).toEqual([tried])
    expect(saved).toEqual([])
  })

  it('is cancelled by on-timeout: interrupt', async () => {
    const { failure, once, deps, saved } = await see(running, { onTimeout: 'interrupt' })
    const tried = 'The export e was cancelled: it is CANCELLED.'
    expect(failure).toMatchObject({ code: 'E_EXPORT_TIMEOUT', message: 'The export e was still RUNNING after 10 min.', tried })
    expect(once.cancelExport).toHaveBeenCalledExactlyOnceWith({ id: 'e', timeoutMs: 10_000, signal: expect.any(AbortSignal) })
    expect(deps.outputs['export-status']).toBe('CANCELLED')
    expect(deps.lines.at(-1)).toBe(tried)
    expect(deps.journal.notes).toEqual([tried])
    expect(saved).toEqual([
      ['cancelExport', 'timeout'],
      ['cancelExport', ''],
    ])
  })

  it('is left to post when it could not be cancelled', async () => {
    const cancelExport = vi.fn(async () => Promise.reject(httpFailure(500)))
    const { failure, deps, saved } = await see({ ...running, cancelExport }, { onTimeout: 'interrupt' })
    expect(failure).toMatchObject({ code: 'E_EXPORT_TIMEOUT', tried: expect.stringContaining('could not be cancelled') })
    expect(deps.outputs['export-status']).toBe('RUNNING')
    expect(saved).toEqual([['cancelExport', 'timeout']])
  })

  describe('and is not answered for at the end', () => {
    const away = { getExport: vi.fn(async () => Promise.reject(httpFailure(503))) }

    it('is cancelled by on-timeout: interrupt all the same', async () => {
      const { failure, once, deps, saved } = await see(away, { onTimeout: 'interrupt' })
      expect(failure).toMatchObject({ code: 'E_UNAVAILABLE', message: expect.stringContaining('was lost') })
      expect(once.cancelExport).toHaveBeenCalledExactlyOnceWith({ id: 'e', timeoutMs: 10_000, signal: expect.any(AbortSignal) })
      expect(deps.journal.notes).toEqual(['The export e was cancelled: it is CANCELLED.'])
      expect(saved).toEqual([
        ['cancelExport', 'timeout'],
        ['cancelExport', ''],
      ])
    })

    it('is left alone by on-timeout: leave', async () => {
      const { failure, once, deps } = await see(away)
      expect(failure).toMatchObject({ code: 'E_UNAVAILABLE' })
      expect(once.cancelExport).not.toHaveBeenCalled()
      expect(deps.journal.notes).toEqual(['on-timeout is leave: the export e goes on by itself.'])
    })

    it('is left alone when it was refused before the time was over', async () => {
      const refused = { getExport: vi.fn(async () => Promise.reject(httpFailure(403))) }
      const { failure, once, deps } = await see(refused, { onTimeout: 'interrupt' })
      expect(failure).toMatchObject({ code: 'E_AUTH' })
      expect(once.cancelExport).not.toHaveBeenCalled()
      expect(deps.journal.notes).toEqual([])
    })
  })

  it('leaves no timer behind', async () => {
    vi.useFakeTimers()
    try {
      await see()
      await see({ getExport: vi.fn(async () => exportAnswer('Failed')) })
      await see(running, { onTimeout: 'interrupt' })
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it('may have no status at all', async () => {
    vi.useFakeTimers()
    try {
      const getExport = vi.fn(
        (_: string, signal: AbortSignal) =>
          new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      )
      const seen = see({ getExport }, {}, 5000)
      await vi.advanceTimersByTimeAsync(5000)
      expect((await seen).failure).toMatchObject({
        code: 'E_EXPORT_TIMEOUT',
        message: 'The export e was still without a status after 5 s.',
      })
    } finally {
      vi.useRealTimers()
    }
  })
})
