/** A status and the moment (epoch milliseconds) at which the step first saw it. */
export type Transition = { status: string; at: number }

/** Below this Mermaid would put several ticks into one second, all with the same label. */
const SHORT_MS = 10_000

const FAILED = /_FAILED$|^INTERRUPTED$|^SKIPPED$/
const SECTIONS: Readonly<Record<string, string>> = {
  CREATING: 'Queue',
  QUEUED: 'Queue',
  AWAITING_BUILD: 'Queue',
  BUILDING: 'Build',
  BUILD_FAILED: 'Build',
  AWAITING_DEPLOY: 'Deploy',
  DEPLOYING: 'Deploy',
  DEPLOY_FAILED: 'Deploy',
  DEPLOYED: 'Deploy',
}

/**
 * The timeline of a revision as a Mermaid gantt chart: one bar for each status that was observed, from when it was first seen to
 * when the next one was. The times are those of the polls. Returns `''` when there is nothing to draw.
 */
export function gantt(transitions: readonly Transition[], end: number): string {
  const [first] = transitions
  if (first === undefined) return ''
  const lines = ['```mermaid', 'gantt', '  dateFormat x', '  axisFormat %H:%M:%S', '  todayMarker off']
  if (end - first.at < SHORT_MS) lines.push('  tickInterval 1second')
  let section = ''
  transitions.forEach(({ status, at }, index) => {
    const next = Object.hasOwn(SECTIONS, status) ? (SECTIONS[status] ?? 'Other') : 'Other'
    if (next !== section) lines.push(`  section ${next}`)
    section = next
    const until = Math.max(transitions[index + 1]?.at ?? end, at)
    lines.push(`  ${label(status)} :${mark(status)}s${index}, ${Math.round(at)}, ${Math.round(until)}`)
  })
  return [...lines, '```'].join('\n')
}

function mark(status: string): string {
  if (FAILED.test(status)) return 'crit, milestone, '
  return status === 'DEPLOYED' ? 'done, milestone, ' : ''
}

/** A status may be anything that the service sends: only what Mermaid cannot misread, as a separator or as a keyword, is kept. */
function label(status: string): string {
  if (Object.hasOwn(SECTIONS, status)) return status
  return `status ${status
    .replace(/[^A-Za-z0-9_-]+/g, ' ')
    .trim()
    .slice(0, 40)}`.trim()
}
