import { DESTINATION_ERRORS } from '../../../contract/destination.ts'
import { isUnavailable } from '../../http/unavailable.ts'
import { judgeBucketError } from '../bucket/bucket-error.ts'
import { WriterFailure } from '../parquet/writer.ts'

/**
 * What can go wrong with an export run (specification 7.3). Each has its own rule; `interruption` is nobody's fault and costs no retry.
 */
export const FAILURES = {
  interruption: { retried: true, advice: 'it is taken up again from its last checkpoint' },
  run_timeout: { retried: true, advice: 'if it persists, narrow the date range, add filters, or limit the fields' },
  destination: { retried: false, advice: 'fix the destination and create a new export' },
  destination_deleted: { retried: false, advice: 'recreate the destination and create a new export' },
  bucket_unavailable: { retried: true, advice: "if it persists, look at the bucket's store" },
  processing: { retried: true, advice: 'if it persists, look at what the error names' },
} as const
export type FailureKind = keyof typeof FAILURES

/** An attempt of an export run failed. The message is what `errors` shows. */
export class ExportFailure extends Error {
  readonly kind: FailureKind

  constructor(kind: FailureKind, message: string) {
    super(message)
    this.kind = kind
  }
}

/** What `errors` shows of a failure. */
export function sentenceOf({ kind, message }: ExportFailure): string {
  return `${kind}: ${message}; ${FAILURES[kind].advice}`
}

/** Longest text of an error that is kept: an engine may quote a whole row. */
const TEXT_MAX = 500

/** The failure of a request to the bucket while an export runs. `doing`: what was tried. */
export function bucketFailure(error: unknown, doing: string): ExportFailure {
  if (error instanceof ExportFailure) return error
  const { kind, word, code } = judgeBucketError(error)
  if (kind === 'refused' && word !== null) return new ExportFailure('destination', `${word}: ${DESTINATION_ERRORS[word]} (${code}, while ${doing})`)
  return new ExportFailure('bucket_unavailable', `the bucket's store did not answer as it should (${code}, while ${doing})`)
}

/** Any other error of an attempt. Those of the database that pass by themselves are interruptions. */
export function failureOf(error: unknown): ExportFailure {
  if (error instanceof ExportFailure) return error
  const { message } = error as Error
  if (error instanceof WriterFailure) {
    if (error.code === '57014') return new ExportFailure('run_timeout', 'a statement of the database took longer than the time limit of one run')
    if (isUnavailable(Object.assign(new Error(message), { code: error.code ?? '' }))) {
      return new ExportFailure('interruption', 'the database did not answer')
    }
    return new ExportFailure('processing', cut(message))
  }
  if (isUnavailable(error)) return new ExportFailure('interruption', 'the database did not answer')
  return new ExportFailure('processing', cut(message))
}

/** The first line only: what follows may quote rows. */
function cut(text: string): string {
  const [line = ''] = text.split('\n')
  return line.length > TEXT_MAX ? `${line.slice(0, TEXT_MAX)}…` : line
}
