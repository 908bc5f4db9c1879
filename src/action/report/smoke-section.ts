import type { SmokeReport } from '../smoke/report.ts'
import { block, code, inline, table } from './markdown.ts'

/** What the job summary tells of the smoke test. */
export function smokeSection(report: SmokeReport | undefined): string {
  if (report === undefined) return ''
  const { result, assistant, streamMode, attempts, events, firstEventMs, endMs, said } = report
  const rows: [string, string | undefined][] = [
    ['Assistant', assistant === undefined ? undefined : code(assistant)],
    ['Stream mode', code(streamMode)],
    ['Attempts', attempts === 1 ? undefined : String(attempts)],
    ['Events', inline(events)],
    ['First event', milliseconds(firstEventMs)],
    ['End', milliseconds(endMs)],
  ]
  return [
    `#### Smoke test: ${result} ${result === 'passed' ? '✅' : '❌'}`,
    table(rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))),
    ...(said.length === 0 ? [] : ['What the agent said:', block(said)]),
  ].join('\n\n')
}

function milliseconds(value: number | undefined): string | undefined {
  return value === undefined ? undefined : `after ${value} ms`
}
