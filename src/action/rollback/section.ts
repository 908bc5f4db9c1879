import type { LogTail } from '../journal.ts'
import { gantt, type Transition } from '../report/gantt.ts'
import { block, code, inline, shortCommit, table } from '../report/markdown.ts'
import { smokeSection } from '../report/smoke-section.ts'
import type { SmokeReport } from '../smoke/report.ts'

/** What a rollback did, for the job summary. */
export type RollbackReport = {
  failedRevisionId: string
  goodRevisionId: string
  /** The revision that was made, or found still serving, for the rollback. */
  revisionId: string | undefined
  status: string | undefined
  commit: string | undefined
  /** What the last good revision was made from, as far as the control plane tells. */
  ref?: string | undefined
  configPath?: string | undefined
  transitions: readonly Transition[]
  smokeTest: SmokeReport | undefined
  logTail: LogTail | undefined
}

const LOG_LINES = 50

/** What the job summary tells of a rollback, besides its story. `endedAt`: epoch milliseconds. */
export function rollbackSection(report: RollbackReport | undefined, endedAt: number): string {
  if (report === undefined) return ''
  const { failedRevisionId, goodRevisionId, revisionId, status, commit, transitions, smokeTest, logTail } = report
  const rows: [string, string | undefined][] = [
    ['Failed revision', code(failedRevisionId)],
    ['Last good revision', code(goodRevisionId)],
    ['Brought back by', revisionId === undefined || revisionId === goodRevisionId ? undefined : code(revisionId)],
    ['Status', status === undefined ? undefined : code(status)],
    ['Commit', commit === undefined ? undefined : code(shortCommit(commit))],
  ]
  const lines = logTail?.lines.slice(-LOG_LINES) ?? []
  return [
    '#### Rollback',
    table(rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))),
    gantt(transitions, endedAt),
    smokeSection(smokeTest).replace('#### Smoke test', '#### Smoke test after the rollback'),
    logTail === undefined
      ? ''
      : `<details><summary>${inline(logTail.title)} (${lines.length} lines)</summary>\n\n${block(lines)}\n\n</details>`,
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}
