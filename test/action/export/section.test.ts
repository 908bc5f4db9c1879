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
    const bars =
      /bar \[(.*)\]/
        .exec(chart(days(3660)))?.[1]
        ?.split(', ')
        .map(Number) ?? []
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

describe('the chart in full', () => {
  const drawing = (title: string, labels: string, highest: number, bars: string) =>
    [
      '```mermaid',
      'xychart-beta',
      `  title "${title}"`,
      `  x-axis [${labels}]`,
      `  y-axis "rows" 0 --> ${highest}`,
      `  bar [${bars}]`,
      '```',
    ].join('\n')

  it('is a block of Mermaid', () => {
    expect(chart(days(2))).toBe(drawing('Rows of each day', '"01-01", "01-02"', 1, '0, 1'))
  })

  it('has a bar for each few days when there are more than 31', () => {
    expect(chart(days(31))).toContain('title "Rows of each day"')
    const text = chart(days(32))
    expect(text).toContain('title "Rows of each 2 days"')
    expect(text).toContain('x-axis ["01-01", "01-03", ')
    expect(text).toContain('--> 61\n  bar [1, 5, 9, ')
  })

  it('shows years only when there are more than 300 days', () => {
    expect(chart(days(300))).toContain('x-axis ["01-01", "01-11", ')
    expect(chart(days(301))).toContain('x-axis ["2026-01-01", "2026-01-11", ')
  })

  it.each(['2026-01-05T00:00', 'x2026-01-05', 'unknown'])('has no bar for %s', (day) => {
    expect(chart([...days(2), { day, rows: 7, runs: 1, done: 1 }])).toBe(chart(days(2)))
  })
})

describe('the section in full', () => {
  const DAYS = ['| Day (UTC) | Rows | |', '|---|---:|---|', '| 2026-01-01 | 0 | done |', '| 2026-01-02 | 1 | done |']

  it('tells of a one-off export', () => {
    expect(exportSection(REPORT)).toBe(
      [
        '#### Export',
        '',
        '| | |',
        '|---|---|',
        '| Export | <code>export-1</code> |',
        '| Status | <code>COMPLETED</code> |',
        '| Tracing project | <code>project-1</code> |',
        '| Range | 2026-01-01T00&#58;00&#58;00Z to 2026-01-03T00&#58;00&#58;00Z |',
        '| Filter | none |',
        '| Fields | all |',
        '| Destination | lake (1) |',
        '| Path | <code>s3&#58;//lake/export_id=export-1/</code> |',
        '| Written | 1 row in 2 files |',
        '',
        chart(days(2)),
        '',
        ...DAYS,
      ].join('\n'),
    )
  })

  it('tells of a schedule, and leaves out what is not known', () => {
    const schedule = { kind: 'scheduled', id: 'schedule-1', end: undefined, intervalHours: 24, days: [] } as const
    const fields = { filter: 'eq(is_root, true)', fields: ['id', 'name'] }
    expect(exportSection({ ...REPORT, ...schedule, ...fields, status: undefined, destination: undefined, path: undefined })).toBe(
      [
        '#### Export',
        '',
        '| | |',
        '|---|---|',
        '| Schedule | <code>schedule-1</code> |',
        '| Tracing project | <code>project-1</code> |',
        '| Range | from 2026-01-01T00&#58;00&#58;00Z, every 24 h |',
        '| Filter | <code>eq(is_root, true)</code> |',
        '| Fields | id, name |',
      ].join('\n'),
    )
  })

  it('has no row for an id that is not there yet', () => {
    expect(exportSection({ ...REPORT, id: undefined })).not.toContain('| Export |')
  })

  it('shows the beginning of a long filter', () => {
    expect(exportSection({ ...REPORT, filter: 'x'.repeat(1001) })).toContain(`| Filter | <code>${'x'.repeat(1000)}</code> |`)
  })

  it('lists the runs that failed, and how many more there are', () => {
    const failures = [
      { day: '2026-01-01', status: 'FAILED', attempts: 3, error: 'no space', remedy: 'Make space' },
      { day: '2026-01-02', status: 'TIMEDOUT', attempts: 1, error: 'slow', remedy: 'Split it' },
    ]
    const lines = [
      '| Day | Status | Attempts | Last error | What helps |',
      '|---|---|---|---|---|',
      '| 2026-01-01 | FAILED | 3 | no space | Make space |',
      '| 2026-01-02 | TIMEDOUT | 1 | slow | Split it |',
    ]
    const text = (moreFailures: number) => exportSection({ ...REPORT, failures, moreFailures, days: [] })
    expect(text(0).endsWith(`\n\n${lines.join('\n')}`)).toBe(true)
    expect(text(7).endsWith(`\n\n${[...lines, '', 'And 7 more.'].join('\n')}`)).toBe(true)
  })

  it('shows the progress of each day, and all of 62 days', () => {
    const text = exportSection({ ...REPORT, days: [{ day: '2026-01-01', rows: 1234, runs: 3, done: 2 }] })
    expect(text.endsWith('| 2026-01-01 | 1,234 | 2 of 3 runs |')).toBe(true)
    const whole = exportSection({ ...REPORT, days: days(62) })
    expect(whole).not.toContain('more days')
    expect(whole.match(/\| done \|/g)).toHaveLength(62)
    const cut = exportSection({ ...REPORT, days: days(63) })
    expect(cut).toContain('| 2026-01-31 | 30 | done |\n| 1 more days | … | … |\n| 2026-02-02 | 32 | done |')
    expect(cut.match(/\| done \|/g)).toHaveLength(62)
  })
})
