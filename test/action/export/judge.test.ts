import { describe, expect, it } from 'vitest'
import { judgeExport } from '../../../src/action/export/judge.ts'
import { ERROR_CODES } from '../../../src/action/report/error-codes.ts'
import { exportAnswer, runAnswer } from './support.ts'

const failure = (day: string, attempts = 2) => ({
  day,
  status: 'FAILED',
  attempts,
  error: 'no space',
  remedy: `Make space for ${day}.`,
})
const RUNS = [runAnswer('Completed', { rows_exported: 1200 }), runAnswer('Failed', { rows_exported: 34 })]
const judge = (status: string, failures = [failure('2026-01-01')], changes = {}) =>
  judgeExport({ answer: exportAnswer(status, changes), runs: RUNS }, failures)

describe('the end of an export', () => {
  it('is no failure when it is complete', () => expect(judge('Completed')).toBeUndefined())

  it('tells of the first three runs that failed', () => {
    const failures = [failure('2026-01-01', 1), failure('2026-01-02'), failure('2026-01-03'), failure('2026-01-04')]
    expect(judge('Failed', failures)).toMatchObject({
      code: 'E_EXPORT_FAILED',
      message: [
        'The export e ended in FAILED.',
        '- 2026-01-01: FAILED after one attempt: no space',
        '- 2026-01-02: FAILED after 2 attempts: no space',
        '- 2026-01-03: FAILED after 2 attempts: no space',
      ].join('\n'),
      tried: '1 of 2 runs were completed, with 1,234 rows in the bucket.',
      next: 'Make space for 2026-01-01.',
    })
  })

  it('tells what the service says', () =>
    expect(judge('Failed', [], { status_message: 'out of luck' })?.message).toBe(
      'The export e ended in FAILED. The service says: out of luck.',
    ))

  it.each([
    ['Failed', 'E_EXPORT_FAILED'],
    ['Cancelled', 'E_EXPORT_CANCELLED'],
    ['TimedOut', 'E_EXPORT_TIMEOUT'],
    ['Vanished', 'E_EXPORT_FAILED'],
  ] as const)('%s without failing runs has the remedy of its code', (status, code) => {
    expect(judge(status, [])).toMatchObject({ code, next: ERROR_CODES[code].remedy })
  })

  it('is not remedied by a run when the export was stopped', () =>
    expect(judge('Cancelled')?.next).toBe(ERROR_CODES.E_EXPORT_CANCELLED.remedy))
})
