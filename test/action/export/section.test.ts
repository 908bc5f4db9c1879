import { describe, expect, it } from 'vitest'
import { chart, exportSection } from '../../../src/action/export/section.ts'
import type { DayReport, ExportReport } from '../../../src/action/export/report.ts'

function days(count: number): DayReport[] {
  const day = (index: number) => new Date(Date.UTC(2026, 0, 1 + index)).toISOString().slice(0, 10)
  return Array.from({ length: count }, (_, index) => ({ day: day(index), rows: index, runs: 1, done: 1 }))
}

const REPORT: ExportReport = {
  id: 'export-1',
  status: 'COMPLETED',
  kind: 'one-off',
  projectId: 'project-1',
  start: '2026-01-01T00:00:00Z',
  end: '2026-01-03T00:00:00Z',
  intervalHours: undefined,
  filter: undefined,
  fields: undefined,
  destination: 'lake (1)',
  path: 's3://lake/export_id=export-1/',
  rows: 1,
  files: 2,
  days: days(2),
  failures: [],
  moreFailures: 0,
}

describe('the chart', () => {
  it('has a bar for each day', () => {
    expect(chart(days(3))).toContain('x-axis ["01-01", "01-02", "01-03"]\n  y-axis "rows" 0 --> 2\n  bar [0, 1, 2]')
  })

  it('is not drawn for one day, and never has more than 31 bars', () => {
    expect(chart(days(1))).toBe('')
    const bars = /bar \[(.*)\]/.exec(chart(days(3660)))?.[1]?.split(', ').map(Number) ?? []
    expect(bars).toHaveLength(31)
    expect(bars.reduce((sum, rows) => sum + rows, 0)).toBe((3659 * 3660) / 2)
  })

  it('has a height when there are no rows', () => {
    expect(chart(days(2).map((day) => ({ ...day, rows: 0 })))).toContain('0 --> 1')
  })

  it('leaves out what is no date', () => {
    expect(chart([...days(2), { day: '"] evil', rows: 1, runs: 1, done: 1 }])).not.toContain('evil')
  })
})

describe('the section', () => {
  it('is empty without an export', () => expect(exportSection(undefined)).toBe(''))

  it('escapes what comes from elsewhere', () => {
    const evil = '`|<img src=x>[a](javascript:b)'
    const failures = [{ day: evil, status: evil, attempts: 1, error: evil, remedy: evil }]
    const text = exportSection({ ...REPORT, destination: evil, filter: evil, path: evil, status: evil, failures })
    expect(text).not.toContain('<img')
    expect(text).not.toContain('[a](')
    expect(text).not.toContain('`|')
  })

  it('cuts the middle out of a long table', () => {
    const text = exportSection({ ...REPORT, days: days(3660), moreFailures: 0 })
    expect(text).toContain('3598 more days')
    expect(text.length).toBeLessThan(6000)
  })
})
