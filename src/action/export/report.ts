import type { ExportRunAnswer } from '../../client/bulk-export-answers.ts'

/** What the summary tells of an export. Every text is redacted before it is shown; none is escaped. */
export type ExportReport = {
  id: string | undefined
  status: string | undefined
  kind: 'one-off' | 'scheduled'
  projectId: string
  start: string
  /** Absent for a schedule. */
  end: string | undefined
  intervalHours: number | undefined
  filter: string | undefined
  fields: readonly string[] | undefined
  /** Name and id. */
  destination: string | undefined
  /** Where the files are: `s3://bucket/prefix/export_id=…/`. */
  path: string | undefined
  rows: number
  files: number
  days: readonly DayReport[]
  failures: readonly RunFailure[]
  /** Failing runs that are not among `failures`. */
  moreFailures: number
}

export type DayReport = { day: string; rows: number; runs: number; done: number }

/** An export run that did not end well: its last error, and what helps. */
export type RunFailure = { day: string; status: string; attempts: number; error: string; remedy: string }

/** Sums of the runs of each day, by the day; runs without a day come last. */
export function daysOf(runs: readonly ExportRunAnswer[]): DayReport[] {
  const days = new Map<string, DayReport>()
  for (const { day, status, rows } of runs) {
    const name = day ?? 'unknown'
    const before = days.get(name) ?? { day: name, rows: 0, runs: 0, done: 0 }
    days.set(name, { day: name, rows: before.rows + rows, runs: before.runs + 1, done: before.done + (status === 'COMPLETED' ? 1 : 0) })
  }
  return [...days.values()].toSorted((a, b) => (a.day < b.day ? -1 : 1))
}

export function totalsOf(runs: readonly ExportRunAnswer[]): { runs: number; done: number; rows: number; files: number } {
  return {
    runs: runs.length,
    done: runs.filter(({ status }) => status === 'COMPLETED').length,
    rows: runs.reduce((sum, run) => sum + run.rows, 0),
    files: runs.reduce((sum, run) => sum + run.files.length, 0),
  }
}

/** `12,345 rows in 3 files`. */
export function formatWritten({ rows, files }: { rows: number; files: number }): string {
  return `${formatCount(rows)} ${rows === 1 ? 'row' : 'rows'} in ${formatCount(files)} ${files === 1 ? 'file' : 'files'}`
}

/** A count for people: `12,345`. */
export function formatCount(count: number): string {
  return Math.round(count).toLocaleString('en-US')
}
