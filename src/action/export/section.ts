import { code, inline, table } from '../report/markdown.ts'
import { type DayReport, type ExportReport, formatCount, formatWritten } from './report.ts'

/** More days than this are cut out of the middle of the table. */
const DAYS_SHOWN = 62
/** More days than this share the bars of the chart. */
const BARS_MAX = 31
const FILTER_CHARACTERS = 1000

/** What the job summary tells of the export. */
export function exportSection(report: ExportReport | undefined): string {
  if (report === undefined) return ''
  const { id, status, kind, start, end, intervalHours, filter, fields, destination, path, rows, files, days } = report
  const range = kind === 'scheduled' ? `from ${start}, every ${intervalHours ?? '?'} h` : `${start} to ${end ?? '?'}`
  const facts: [string, string | undefined][] = [
    [kind === 'scheduled' ? 'Schedule' : 'Export', id === undefined ? undefined : code(id)],
    ['Status', status === undefined ? undefined : code(status)],
    ['Tracing project', code(report.projectId)],
    ['Range', inline(range)],
    ['Filter', filter === undefined ? 'none' : code(filter.slice(0, FILTER_CHARACTERS))],
    ['Fields', fields === undefined ? 'all' : inline(fields.join(', '))],
    ['Destination', destination === undefined ? undefined : inline(destination)],
    ['Path', path === undefined ? undefined : code(path)],
    ['Written', days.length === 0 ? undefined : formatWritten({ rows, files })],
  ]
  return [
    '#### Export',
    table(facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))),
    failureTable(report),
    chart(days),
    dayTable(days),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function failureTable({ failures, moreFailures }: ExportReport): string {
  if (failures.length === 0) return ''
  const rows = failures.map(({ day, status, attempts, error, remedy }) =>
    `| ${inline(day)} | ${inline(status)} | ${attempts} | ${inline(error)} | ${inline(remedy)} |`,
  )
  const more = moreFailures === 0 ? [] : ['', `And ${moreFailures} more.`]
  return ['| Day | Status | Attempts | Last error | What helps |', '|---|---|---|---|---|', ...rows, ...more].join('\n')
}

/** Rows of each day, or of each few days, as a Mermaid bar chart. Labels are dates of our own writing: nothing can break out. */
export function chart(days: readonly DayReport[]): string {
  const dated = days.filter(({ day }) => /^\d{4}-\d\d-\d\d$/.test(day))
  if (dated.length < 2) return ''
  const size = Math.ceil(dated.length / BARS_MAX)
  const bars: { label: string; rows: number }[] = []
  for (let from = 0; from < dated.length; from += size) {
    const group = dated.slice(from, from + size)
    bars.push({ label: (group[0]?.day ?? '').slice(dated.length > 300 ? 0 : 5), rows: group.reduce((sum, { rows }) => sum + rows, 0) })
  }
  const highest = Math.max(1, ...bars.map(({ rows }) => rows))
  return [
    '```mermaid',
    'xychart-beta',
    `  title "${size === 1 ? 'Rows of each day' : `Rows of each ${size} days`}"`,
    `  x-axis [${bars.map(({ label }) => `"${label}"`).join(', ')}]`,
    `  y-axis "rows" 0 --> ${highest}`,
    `  bar [${bars.map(({ rows }) => rows).join(', ')}]`,
    '```',
  ].join('\n')
}

function dayTable(days: readonly DayReport[]): string {
  if (days.length === 0) return ''
  const half = DAYS_SHOWN / 2
  const left = days.length - DAYS_SHOWN
  const shown =
    left <= 0 ? days.map(dayRow) : [...days.slice(0, half).map(dayRow), `| ${left} more days | … | … |`, ...days.slice(-half).map(dayRow)]
  return ['| Day (UTC) | Rows | |', '|---|---:|---|', ...shown].join('\n')
}

function dayRow({ day, rows, runs, done }: DayReport): string {
  return `| ${inline(day)} | ${formatCount(rows)} | ${done === runs ? 'done' : `${done} of ${runs} runs`} |`
}
