import type { ExportRunAnswer } from '../../client/bulk-export-answers.ts'
import { DESTINATION_ERRORS, type DestinationError } from '../../contract/destination.ts'
import { clip, plainLine } from '../report/plain.ts'
import type { RunFailure } from './report.ts'

const FAILURES_MAX = 20
const ERROR_CHARACTERS = 300

/** What helps with each of the four causes for which a destination is refused (specification 7.2). */
export const DESTINATION_REMEDIES: Readonly<Record<DestinationError, string>> = {
  'Access denied': 'Give the key pair permission to write objects to the bucket, and check export-secret-access-key and the session token.',
  'Bucket is not valid': 'Create the bucket, or correct export-bucket and export-bucket-region.',
  'Key ID you provided does not exist': 'Correct export-access-key-id: the store does not know this key.',
  'Invalid endpoint':
    'Correct export-endpoint-url: it has to be an S3-compatible endpoint that the service can reach. For the original ' +
    'object-storage provider leave it out and set export-bucket-region.',
}

/** The cause that a text of the service names. */
export function causeOf(text: string): DestinationError | undefined {
  const lower = text.toLowerCase()
  return (Object.keys(DESTINATION_ERRORS) as DestinationError[]).find((cause) => lower.includes(cause.toLowerCase()))
}

/** The rules of specification 7.3, by the words of an error; the first that fits counts. */
const REMEDIES: readonly (readonly [words: RegExp, remedy: string])[] = [
  [/destination_deleted|destination[^.]{0,40}(deleted|not found|removed)/i, 'Recreate the destination and start the export again.'],
  [/workflow[_ ]timeout|export[_ ]timeout/i, 'Reduce the scope of the export, or split it.'],
  [/time[d_ -]*out|time limit/i, 'Narrow the date range, add a filter, or limit the fields (leave out inputs and outputs).'],
  [
    /^destination\b|access ?denied|bucket|credential|key id|invalid endpoint|permission|forbidden|signature/i,
    'Fix the destination and create a new export: this is not retried.',
  ],
  [/interruption|interrupted|restart|worker/i, 'Nothing was wrong with the export: create a new one.'],
]
const OTHERWISE = 'Look at what the error names; leaving the field or the day out shows whether it is the cause.'

export function remedyOf(error: string): string {
  const cause = causeOf(error)
  const remedy = REMEDIES.find(([words]) => words.test(error))?.[1] ?? OTHERWISE
  return cause === undefined ? remedy : `${remedy} ${DESTINATION_REMEDIES[cause]}`
}

/** The runs that failed, with their last errors; `more` is the number of those that are left out. */
export function failuresOf(
  runs: readonly ExportRunAnswer[],
  redact: (text: string) => string,
): { failures: RunFailure[]; more: number } {
  const failing = runs.filter(
    ({ status, errors }) => status === 'FAILED' || status === 'TIMEDOUT' || (errors.length > 0 && status !== 'COMPLETED'),
  )
  const failures = failing.slice(0, FAILURES_MAX).map(({ id, day, status, errors }) => {
    // Redacted before it is cut: half a secret would not be known again.
    const text = redact(errors.at(-1) ?? '').replace(/\s+/g, ' ').trim()
    const error = text === '' ? 'no error is told' : clip(plainLine(text), ERROR_CHARACTERS)
    return { day: day ?? id, status, attempts: Math.max(1, errors.length), error, remedy: remedyOf(text || status) }
  })
  return { failures, more: failing.length - failures.length }
}
