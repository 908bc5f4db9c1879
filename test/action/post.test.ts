import { describe, expect, it, vi } from 'vitest'
import type { BulkExports } from '../../src/client/bulk-export.ts'
import { runPost } from '../../src/action/post.ts'
import { httpFailure } from '../support/request-failure.ts'
import { fakeDeps } from './support/deps.ts'

const made = { isPost: 'true', deploymentId: 'd', revisionId: 'r' }

async function post(state: Record<string, string>, onCancel: 'leave' | 'interrupt' = 'interrupt', deps = fakeDeps()) {
  const connect = vi.fn(() => ({ onCancel, deps }))
  await runPost({ getState: (key) => state[key] ?? '', connect, log: deps.log })
  return {
    said: [...deps.lines, ...deps.warnings].join('\n'),
    interrupted: vi.mocked(deps.controlPlane.interruptRevision).mock.calls.length,
    connect,
  }
}

describe('post', () => {
  it.each([
    ['main has concluded', { ...made, done: 'true' }],
    ['main never began', {}],
  ])('says and does nothing when %s', async (_, state) => {
    expect(await post(state)).toMatchObject({ said: '', interrupted: 0 })
  })

  it('interrupts what main had no time to interrupt', async () => {
    expect(await post(made)).toMatchObject({ interrupted: 1, said: expect.stringContaining('asked to interrupt the revision r') })
    expect((await post({ ...made, done: 'true', interrupt: 'cancel' }, 'leave')).interrupted).toBe(1)
    expect((await post({ ...made, done: 'true', interrupt: 'timeout' }, 'leave')).interrupted).toBe(1)
  })

  it('leaves it alone when it is told to, and says that it goes on', async () => {
    expect(await post(made, 'leave')).toMatchObject({ interrupted: 0, said: expect.stringContaining('goes on by itself') })
  })

  it('does not interrupt what has ended', async () => {
    expect(await post({ ...made, ended: 'true' })).toMatchObject({ interrupted: 0 })
  })

  it('says what may have been left behind', async () => {
    expect((await post({ isPost: 'true', pending: "create the deployment 'agent'" })).said).toContain(
      "asked to create the deployment 'agent'",
    )
  })

  it('never throws', async () => {
    const deps = fakeDeps({ interruptRevision: vi.fn(async () => Promise.reject(httpFailure(500))) })
    expect((await post(made, 'interrupt', deps)).said).toContain('could not be interrupted')
    const broken = fakeDeps()
    await runPost({
      getState: (key) => ({ ...made })[key as keyof typeof made] ?? '',
      connect: () => {
        throw new Error('no inputs')
      },
      log: broken.log,
    })
    expect(broken.warnings).toEqual([expect.stringContaining('no inputs')])
  })
})

describe('what post says', () => {
  const asked = 'The control plane was asked to interrupt the revision r.'
  const leaves = 'The step was stopped before it was done. on-cancel is leave: the revision r of d goes on by itself.'
  const pending = {
    pending: 'update it',
    deploymentId: 'd',
  }
  const doubt = 'The step was stopped after it had asked to update it and before it saw an answer: it may have happened.'

  it.each<[Record<string, string>, 'leave' | 'interrupt', string[], string[], number]>([
    [made, 'interrupt', [asked], [], 1],
    [made, 'leave', [leaves], [], 1],
    [{ ...made, interrupt: 'cancel' }, 'leave', [asked], [], 1],
    [{ ...made, ended: 'true' }, 'interrupt', [], [], 0],
    [{ ...made, ended: 'true', interrupt: 'cancel' }, 'interrupt', [], [], 0],
    [pending, 'interrupt', [], [doubt], 0],
    [{ ...pending, revisionId: 'r' }, 'interrupt', [asked], [doubt], 1],
    [{ ...pending, done: 'true' }, 'interrupt', [], [], 0],
    [{ ...made, ...pending, done: 'true', interrupt: 'timeout' }, 'leave', [asked], [], 1],
  ])('of %j with on-cancel %s', async (state, onCancel, lines, warnings, connected) => {
    const deps = fakeDeps()
    const { connect } = await post(state, onCancel, deps)
    expect([deps.lines, deps.warnings]).toEqual([lines, warnings])
    expect(connect).toHaveBeenCalledTimes(connected)
  })

  it('gives the control plane ten seconds', async () => {
    const deps = fakeDeps()
    await post(made, 'interrupt', deps)
    expect(deps.controlPlane.interruptRevision).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ deploymentId: 'd', revisionId: 'r', timeoutMs: 10_000 }),
    )
  })

  it.each([
    [new Error('no inputs'), 'no inputs'],
    ['out of order', 'out of order'],
  ])('of a step whose inputs cannot be read: %s', async (error, words) => {
    const { lines, warnings, log } = fakeDeps()
    const state: Record<string, string> = { ...made, exportId: 'e' }
    const connect = () => {
      throw error
    }
    await runPost({ getState: (key) => state[key] ?? '', connect, log })
    expect([lines, warnings]).toEqual([
      [],
      [`The export e may go on by itself: ${words}`, `The revision r of d may go on by itself: ${words}`],
    ])
  })

  it('of an interruption that failed', async () => {
    const deps = fakeDeps({ interruptRevision: vi.fn(async () => Promise.reject(httpFailure(500))) })
    await post(made, 'interrupt', deps)
    expect([deps.lines, deps.warnings]).toEqual([
      [],
      ['The revision r could not be interrupted, and may go on by itself: GET /v2/deployments answered 500'],
    ])
  })
})

describe('an export in post', () => {
  const begun = { exportId: 'e' }
  const cancelled = 'The export e was cancelled: it is CANCELLED.'
  const leaves = 'The step was stopped before it was done. on-cancel is leave: the export e goes on by itself.'

  async function postExport(
    state: Record<string, string>,
    {
      onCancel = 'interrupt',
      apiUrl = 'https://api.example.com',
      error,
    }: { onCancel?: 'leave' | 'interrupt'; apiUrl?: string | null; error?: Error } = {},
  ) {
    const { lines, warnings, log, ...deps } = fakeDeps()
    const asked: [string, string, number | undefined][] = []
    const bulkExports = (url: string) => {
      const once = {
        cancelExport: async ({ id, timeoutMs }: { id: string; timeoutMs?: number }) => {
          asked.push([url, id, timeoutMs])
          if (error !== undefined) throw error
          return { id, status: 'CANCELLED' }
        },
      } as unknown as BulkExports
      return { api: once, once }
    }
    await runPost({
      getState: (key) => state[key] ?? '',
      connect: () => ({ onCancel, apiUrl: apiUrl ?? undefined, deps: { ...deps, bulkExports } }),
      log,
    })
    return { lines, warnings, asked }
  }
  const once: [string, string, number] = ['https://api.example.com', 'e', 10_000]

  it.each<[Record<string, string>, 'leave' | 'interrupt', string[], number]>([
    [begun, 'interrupt', [cancelled], 1],
    [begun, 'leave', [leaves], 0],
    [{ ...begun, done: 'true' }, 'interrupt', [], 0],
    [{ ...begun, done: 'true', cancelExport: 'true' }, 'leave', [cancelled], 1],
    [{ ...begun, cancelExport: 'true' }, 'leave', [cancelled], 1],
    [{ ...begun, exportEnded: 'true' }, 'interrupt', [], 0],
    [{ cancelExport: 'true' }, 'interrupt', [], 0],
  ])('%j with on-cancel %s', async (state, onCancel, lines, times) => {
    expect(await postExport(state, { onCancel })).toEqual({
      lines,
      warnings: [],
      asked: Array.from({ length: times }, () => once),
    })
  })

  it('is left alone without an address', async () => {
    expect(await postExport(begun, { apiUrl: null })).toEqual({ lines: [], warnings: [], asked: [] })
  })

  it('is a warning when it may go on', async () => {
    expect(await postExport(begun, { error: httpFailure(503) })).toMatchObject({
      lines: [],
      warnings: ['The export e could not be cancelled, and may go on by itself: GET /v2/deployments answered 503'],
    })
  })

  it('comes before the revision', async () => {
    const { lines } = await postExport({ ...begun, ...made })
    expect(lines).toEqual([cancelled, 'The control plane was asked to interrupt the revision r.'])
  })
})
