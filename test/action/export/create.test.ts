import { describe, expect, it, vi } from 'vitest'
import { createExport, inTime } from '../../../src/action/export/create.ts'
import { ActionFailure } from '../../../src/action/report/error-codes.ts'
import type { ExportBody } from '../../../src/client/bulk-export.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import type { TestDeps } from '../support/deps.ts'
import { exportAnswer, exportDeps, fakeBulkExports, NEVER } from './support.ts'

const BODY: ExportBody = { bulk_export_destination_id: 'd', session_id: 's', start_time: '2025-12-31T00:00:00.000Z' }
const SCHEDULE: ExportBody = { ...BODY, interval_hours: 24 }
const POST = { method: 'POST', path: '/api/v1/bulk-exports' } as const

function create({ body = BODY, error }: { body?: ExportBody; error?: unknown } = {}) {
  const states: string[] = []
  const api = fakeBulkExports({
    createExport: vi.fn(async () => {
      states.push(deps.state['pending'] ?? '')
      if (error !== undefined) throw error
      return exportAnswer('Created')
    }),
  })
  const deps: TestDeps = exportDeps(api)
  const known = [exportAnswer('Completed', { id: 'a' }), exportAnswer('Running', { id: 'b' })]
  return { api, deps, states, made: createExport({ body, api, known, signal: NEVER, deps }) }
}

async function failed(thrown: unknown, body?: ExportBody): Promise<{ failure: ActionFailure; deps: TestDeps }> {
  const { made, deps } = create({ error: thrown, ...(body === undefined ? {} : { body }) })
  try {
    await made
  } catch (error) {
    if (error instanceof ActionFailure) return { failure: error, deps }
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('creating an export', () => {
  it.each([
    ['an export', BODY, 'create the export', 'Created the export e.'],
    ['a schedule', SCHEDULE, 'create the scheduled export', 'Created the scheduled export e.'],
  ])('leaves for post that %s is asked for, until it is there', async (_, body, pending, line) => {
    const { api, deps, states, made } = create({ body })
    expect(await made).toEqual(exportAnswer('Created'))
    expect(api.createExport).toHaveBeenCalledExactlyOnceWith({ body, known: ['a', 'b'], signal: expect.any(AbortSignal) })
    expect(states).toEqual([pending])
    expect(deps.state).toEqual({ exportId: 'e', pending: '' })
    expect(deps.lines).toEqual([line])
  })

  it('asks for nothing in a step that is cancelled already', async () => {
    const api = fakeBulkExports()
    const deps = exportDeps(api)
    deps.abort()
    await expect(createExport({ body: BODY, api, known: [], signal: NEVER, deps })).rejects.toMatchObject({
      code: 'E_CANCELLED',
      message: 'The step was cancelled before anything was exported.',
    })
    expect(api.createExport).not.toHaveBeenCalled()
    expect(deps.state).toEqual({})
  })

  it('does not act on a signal that comes after the answer', async () => {
    const controller = new AbortController()
    const api = fakeBulkExports()
    const deps = exportDeps(api)
    await createExport({ body: BODY, api, known: [], signal: controller.signal, deps })
    controller.abort()
    await Promise.resolve()
    expect(deps.effects.slept).toEqual([])
  })

  it('waits for the answer for 1.5 s after the step was cancelled', async () => {
    const controller = new AbortController()
    const api = fakeBulkExports({
      createExport: vi.fn(async ({ signal }) => {
        controller.abort()
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
        throw requestFailure({ ...POST, kind: 'cancelled', summary: 'was cancelled', ambiguous: true })
      }),
    })
    const deps = exportDeps(api)
    await expect(createExport({ body: BODY, api, known: [], signal: controller.signal, deps })).rejects.toMatchObject({
      code: 'E_CANCELLED',
    })
    expect(deps.effects.slept).toEqual([1500])
  })

  it.each([
    ['cancelled', 'E_CANCELLED', BODY, 'create the export'],
    ['deadline', 'E_EXPORT_TIMEOUT', BODY, 'create the export'],
    ['deadline', 'E_EXPORT_TIMEOUT', SCHEDULE, 'create the scheduled export'],
  ] as const)('leaves the doubt of an answer that was not seen (%s)', async (kind, code, body, pending) => {
    const { failure, deps } = await failed(requestFailure({ ...POST, kind, summary: 'had no time' }), body)
    const sentence = `The step asked to ${pending} and saw no answer: it may have happened.`
    expect(failure).toMatchObject({
      code,
      message: 'Creating the export failed: POST /api/v1/bulk-exports had no time.',
      tried: 'POST /api/v1/bulk-exports was sent once.',
    })
    expect(deps.lines).toEqual([sentence])
    expect(deps.journal.notes).toEqual([sentence])
    expect(deps.state).toEqual({ pending })
  })

  it.each([
    [
      'the cap of an hour',
      { status: 429, detail: 'You may create 100 exports each hour.' },
      'E_RATE_LIMITED',
      'This is no rate limit but the cap on exports that a workspace may create in an hour: run the step later, or export less often.',
    ],
    [
      'the cap on schedules',
      { status: 429, detail: 'Too many active schedules.' },
      'E_RATE_LIMITED',
      'This is no rate limit but the cap on active schedules: cancel one that is not needed any more. Waiting does not help.',
    ],
    [
      'something that is not there',
      { status: 404, detail: 'Session not found.' },
      'E_NOT_FOUND',
      'Check export-project-id, the destination and workspace-id: one of them does not exist in this workspace.',
    ],
    [
      'a plan without exports',
      { status: 403, detail: 'Not on this plan.' },
      'E_AUTH',
      'Check api-key and workspace-id; bulk export is part of the Plus and Enterprise plans only.',
    ],
  ])('tells what helps with %s', async (_, { status, detail }, code, next) => {
    const error = httpFailure(status, { ...POST, detail })
    const { failure, deps } = await failed(error)
    expect(failure).toMatchObject({
      code,
      message: `Creating the export failed: POST /api/v1/bulk-exports answered ${status}: ${detail}`,
      tried: 'POST /api/v1/bulk-exports was sent once.',
      next,
      cause: error,
    })
    expect(deps.state).toEqual({ pending: '' })
    expect(deps.lines).toEqual([])
    expect(deps.journal.notes).toEqual([])
  })

  it.each([
    ['a rate limit', httpFailure(429, { ...POST, detail: 'Slow down.' }), 'E_RATE_LIMITED'],
    ['a server that fails', httpFailure(500, POST), 'E_UNAVAILABLE'],
    ['a body that is refused', httpFailure(422, { ...POST, detail: 'filter: no' }), 'E_VALIDATION'],
  ])('passes on what is known of %s', async (_, error, code) => {
    const { failure } = await failed(error)
    expect(failure.code).toBe(code)
    expect(failure.next).not.toMatch(/This is no rate limit|Check export-project-id|Plus and Enterprise/)
  })

  it('passes on a failure that is none of a request', async () => {
    const error = new ActionFailure({ code: 'E_AUTH', happened: 'No.', next: 'Ask somebody.' })
    expect((await failed(error)).failure).toMatchObject({
      code: 'E_AUTH',
      message: 'No.',
      tried: undefined,
      next: 'Ask somebody.',
    })
  })
})

describe('the time that is over', () => {
  it('is that of the export', () => {
    const cause = new Error('cause')
    const whole = inTime(new ActionFailure({ code: 'E_TIMEOUT', happened: 'Late.', tried: 'Once.', cause }))
    expect(whole).toMatchObject({ code: 'E_EXPORT_TIMEOUT', message: 'Late.', tried: 'Once.', cause })
    expect(whole.next).toContain('export-timeout')
    expect(inTime(new ActionFailure({ code: 'E_TIMEOUT', happened: 'Late.' }))).toMatchObject({
      code: 'E_EXPORT_TIMEOUT',
      tried: undefined,
    })
  })

  it('is nothing to other failures', () => {
    const failure = new ActionFailure({ code: 'E_AUTH', happened: 'No.' })
    expect(inTime(failure)).toBe(failure)
  })
})
