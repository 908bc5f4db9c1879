import { describe, expect, it } from 'vitest'
import { daysOf, formatCount, formatWritten, totalsOf } from '../../../src/action/export/report.ts'

const run = (day: string | null, status: string, rows: number, files: string[] = []) => ({
  id: 'r',
  day,
  status,
  rows,
  files,
  errors: [],
})

describe('the days of an export', () => {
  it('are the sums of their runs, in order, with those without a day at the end', () => {
    const runs = [
      run(null, 'RUNNING', 1),
      run('2026-01-02', 'COMPLETED', 10),
      run('2026-01-03', 'FAILED', 0),
      run('2026-01-01', 'COMPLETED', 3),
      run('2026-01-02', 'COMPLETED', 5),
      run('2026-01-02', 'CREATED', 0),
    ]
    expect(daysOf(runs)).toEqual([
      { day: '2026-01-01', rows: 3, runs: 1, done: 1 },
      { day: '2026-01-02', rows: 15, runs: 3, done: 2 },
      { day: '2026-01-03', rows: 0, runs: 1, done: 0 },
      { day: 'unknown', rows: 1, runs: 1, done: 0 },
    ])
    expect(daysOf([])).toEqual([])
  })
})

describe('the totals', () => {
  it('count runs, rows and files', () => {
    const runs = [
      run('2026-01-01', 'COMPLETED', 3, ['a', 'b']),
      run('2026-01-02', 'RUNNING', 4, ['c']),
      run('2026-01-03', 'FAILED', 0),
    ]
    expect(totalsOf(runs)).toEqual({ runs: 3, done: 1, rows: 7, files: 3 })
    expect(totalsOf([])).toEqual({ runs: 0, done: 0, rows: 0, files: 0 })
  })

  it.each([
    [0, 0, '0 rows in 0 files'],
    [1, 1, '1 row in 1 file'],
    [12_345, 3, '12,345 rows in 3 files'],
    [2, 1000, '2 rows in 1,000 files'],
  ])('are written out: %i and %i', (rows, files, text) => expect(formatWritten({ rows, files })).toBe(text))

  it('are whole numbers', () => expect(formatCount(1234.5)).toBe('1,235'))
})
