import { describe, expect, it, vi } from 'vitest'
import { followExport, progressLine } from '../../../src/action/export/follow.ts'
import type { ExportAnswer, ExportRunAnswer } from '../../../src/client/bulk-export-answers.ts'
import { requestFailure } from '../../support/request-failure.ts'
import { fakeEffects } from '../support/effects.ts'
import { exportAnswer, NEVER, runAnswer } from './support.ts'

const DONE = runAnswer('Completed')
const OPEN = runAnswer('Running', { rows_exported: 0 })

type Answer = { answer: ExportAnswer; runs?: ExportRunAnswer[] } | Error

/** Follows an export that answers this, and at last again and again. */
async function follow(answers: readonly Answer[], timeoutMs = 600_000) {
  const effects = fakeEffects()
  const lines: string[] = []
  const waits: number[] = []
  const onSeen = vi.fn()
  let asked = 0
  const current = () => answers[Math.min(asked, answers.length) - 1]
  const getExport = vi.fn(async (): Promise<ExportAnswer> => {
    asked++
    const next = current()
    if (next === undefined || next instanceof Error) throw next ?? new Error('no answer was given')
    return next.answer
  })
  const listRuns = vi.fn(async (): Promise<ExportRunAnswer[]> => {
    const next = current()
    return next === undefined || next instanceof Error ? [] : (next.runs ?? [])
  })
  const info = (line: string) => void lines.push(line)
  const onRateLimit = (ms: number) => void waits.push(ms)
  const once = { getExport, listRuns }
  const options = { exportId: 'e', once, timeoutMs, signal: NEVER, effects, info, onSeen, onRateLimit }
  const end = await followExport(options).catch((error: unknown) => error)
  return { end, lines, onSeen, getExport, listRuns, waits }
}

describe('following an export', () => {
  it('ends with the final answer, and passes on each one that was seen', async () => {
    const running = { answer: exportAnswer('Running'), runs: [OPEN] }
    const last = { answer: exportAnswer('Completed'), runs: [DONE] }
    const { end, onSeen, getExport, listRuns } = await follow([running, last])
    expect(end).toEqual({ end: 'final', seen: last })
    expect(onSeen.mock.calls).toEqual([[running], [last]])
    expect(getExport).toHaveBeenLastCalledWith('e', NEVER)
    expect(listRuns).toHaveBeenLastCalledWith('e', NEVER)
  })

  it.each(['Failed', 'Cancelled', 'TimedOut'])('ends with %s', async (status) => {
    expect(await follow([{ answer: exportAnswer(status) }])).toMatchObject({ end: { end: 'final' } })
  })

  it('tells what is new, and nothing twice', async () => {
    const { lines } = await follow([
      { answer: exportAnswer('Created') },
      { answer: exportAnswer('Created') },
      { answer: exportAnswer('Running'), runs: [OPEN, OPEN] },
      { answer: exportAnswer('Running'), runs: [OPEN, OPEN] },
      { answer: exportAnswer('Running'), runs: [DONE, OPEN] },
      { answer: exportAnswer('Completed'), runs: [DONE, DONE] },
    ])
    expect(lines).toEqual([
      'CREATED after 0 s: 0 of 0 runs, 0 rows',
      'RUNNING after 2 s: 0 of 2 runs, 0 rows',
      'RUNNING after 4 s: 1 of 2 runs, 5 rows (1 rows/s), about 4 s left',
      'COMPLETED after 5 s: 2 of 2 runs, 10 rows (2 rows/s)',
    ])
  })

  it('tells once that it does not know a status', async () => {
    const odd = (runs: ExportRunAnswer[] = []) => ({ answer: exportAnswer('Paused'), runs })
    const { lines } = await follow([odd(), odd(), odd([OPEN]), { answer: exportAnswer('Completed') }])
    expect(lines).toEqual([
      'PAUSED after 0 s: 0 of 0 runs, 0 rows',
      'The status PAUSED is not known to this version: waiting on.',
      'PAUSED after 2 s: 0 of 1 runs, 0 rows',
      'COMPLETED after 3 s: 0 of 0 runs, 0 rows',
    ])
  })

  it('tells the progress of a minute without news', async () => {
    const { end, lines } = await follow([{ answer: exportAnswer('Running'), runs: [OPEN] }], 150_000)
    expect(end).toMatchObject({ end: 'timeout', seen: { answer: { status: 'RUNNING' } } })
    expect(lines).toHaveLength(3)
    expect(lines[0]).toBe('RUNNING after 0 s: 0 of 1 runs, 0 rows')
    expect(lines[1]).toMatch(/^RUNNING after 1 min( \d+ s)?: 0 of 1 runs, 0 rows$/)
    expect(lines[2]).toMatch(/^RUNNING after 2 min( \d+ s)?: 0 of 1 runs, 0 rows$/)
  })

  it('tells what could not be read, of the export and by the service', async () => {
    const { end, lines } = await follow([requestFailure()], 10_000)
    expect(lines[0]).toBe('The status could not be read: GET /v2/deployments got no answer. Asking again until 10 s are over.')
    expect(end).toMatchObject({
      code: 'E_UNAVAILABLE',
      message: expect.stringContaining('Reading the status of the export failed'),
    })
    expect(end).toMatchObject({ message: expect.stringMatching(/^The connection to the service was lost/) })
  })

  it('counts the waits for a rate limit', async () => {
    const limited = requestFailure({ kind: 'http', status: 429, retryAfterMs: 7000 })
    expect((await follow([limited, { answer: exportAnswer('Completed') }])).waits).toEqual([7000])
  })
})

describe('a line of progress', () => {
  const RUNS = [runAnswer('Completed', { rows_exported: 1000 }), runAnswer('Running', { rows_exported: 500 }), OPEN]
  const line = (elapsedMs: number, changes: Record<string, unknown> = {}, runs = RUNS, status = 'Running') =>
    progressLine({ answer: exportAnswer(status, changes), runs }, elapsedMs)
  const told = (seconds: number | null) => ({ progress: { estimated_seconds_left: seconds } })

  it.each([
    ['without time', line(0), 'RUNNING after 0 s: 1 of 3 runs, 1,500 rows, about 0 s left'],
    ['within the first second', line(999), 'RUNNING after 1 s: 1 of 3 runs, 1,500 rows, about 2 s left'],
    ['after a second', line(1000), 'RUNNING after 1 s: 1 of 3 runs, 1,500 rows (1,500 rows/s), about 2 s left'],
    ['later', line(30_000), 'RUNNING after 30 s: 1 of 3 runs, 1,500 rows (50 rows/s), about 1 min left'],
    [
      'with most of it done',
      line(30_000, {}, [DONE, DONE, OPEN]),
      'RUNNING after 30 s: 2 of 3 runs, 10 rows (0 rows/s), about 15 s left',
    ],
    ['before the first run is done', line(30_000, {}, [OPEN]), 'RUNNING after 30 s: 0 of 1 runs, 0 rows'],
    ['without runs', line(30_000, {}, []), 'RUNNING after 30 s: 0 of 0 runs, 0 rows'],
    [
      'by the estimate of the service',
      line(30_000, told(12)),
      'RUNNING after 30 s: 1 of 3 runs, 1,500 rows (50 rows/s), about 12 s left',
    ],
    [
      'by an estimate of nothing',
      line(30_000, told(0)),
      'RUNNING after 30 s: 1 of 3 runs, 1,500 rows (50 rows/s), about 0 s left',
    ],
    [
      'without an estimate',
      line(30_000, told(null)),
      'RUNNING after 30 s: 1 of 3 runs, 1,500 rows (50 rows/s), about 1 min left',
    ],
    ['with a message', line(0, { status_message: 'queued' }, []), 'RUNNING after 0 s: 0 of 0 runs, 0 rows (queued)'],
    ['at the end', line(30_000, told(12), RUNS, 'Failed'), 'FAILED after 30 s: 1 of 3 runs, 1,500 rows (50 rows/s)'],
  ])('%s', (_, text, expected) => expect(text).toBe(expected))
})
