import { ActionFailure, type ErrorCode } from '../report/error-codes.ts'
import type { Seen } from './follow.ts'
import { formatCount, type RunFailure, totalsOf } from './report.ts'

const CODES: Readonly<Record<string, ErrorCode>> = {
  FAILED: 'E_EXPORT_FAILED',
  CANCELLED: 'E_EXPORT_CANCELLED',
  TIMEDOUT: 'E_EXPORT_TIMEOUT',
}
const FAILURES_TOLD = 3

/** The failure of an export that did not end well; undefined for one that did. */
export function judgeExport({ answer, runs }: Seen, failures: readonly RunFailure[]): ActionFailure | undefined {
  if (answer.status === 'COMPLETED') return undefined
  const totals = totalsOf(runs)
  const says = answer.status_message === null ? '' : ` The service says: ${answer.status_message}.`
  const told = failures.slice(0, FAILURES_TOLD).map(({ day, status, attempts, error }) => {
    const times = attempts === 1 ? 'one attempt' : `${attempts} attempts`
    return `- ${day}: ${status} after ${times}: ${error}`
  })
  const [first] = failures
  return new ActionFailure({
    code: CODES[answer.status] ?? 'E_EXPORT_FAILED',
    happened: [`The export ${answer.id} ended in ${answer.status}.${says}`, ...told].join('\n'),
    tried: `${totals.done} of ${totals.runs} runs were completed, with ${formatCount(totals.rows)} rows in the bucket.`,
    ...(answer.status === 'FAILED' && first !== undefined ? { next: first.remedy } : {}),
  })
}
