import type { Effects } from '../client/effects.ts'
import type { RequestFailure } from '../client/failure.ts'
import type { RevisionAnswer } from '../contract/answers.ts'
import { isFinalRevisionStatus, isKnownRevisionStatus } from '../contract/status.ts'
import { formatDuration } from './parse/duration.ts'
import { ActionFailure } from './report/error-codes.ts'
import { requestFailure, sentence } from './report/request-failure.ts'
import { watch } from './watch.ts'

export type FollowOptions = {
  /** Asks once, without retries. */
  getRevision: (signal: AbortSignal) => Promise<RevisionAnswer>
  /** How long earlier revisions took, in milliseconds. */
  expected: number | undefined
  timeoutMs: number
  /** Ends the wait: cancelled, or its reason is a `TimeoutError`. */
  signal: AbortSignal
  effects: Effects
  info: (line: string) => void
  onStatus: (revision: RevisionAnswer, at: number) => void
  /** Called with the length of each wait that a 429 asked for. */
  onRateLimit: (waitedMs: number) => void
}

export type Followed = { end: 'final'; revision: RevisionAnswer } | { end: 'timeout'; lastStatus: string | undefined }

/** Follows one revision until it has ended or the time is over, as `watch` does. One that was deleted is `E_NOT_FOUND`. */
export async function follow({ getRevision, onStatus, expected, ...options }: FollowOptions): Promise<Followed> {
  const unknown = new Set<string>()
  let lastStatus: string | undefined
  const watched = await watch<RevisionAnswer>({
    ...options,
    what: 'revision',
    who: 'control plane',
    expected,
    ask: getRevision,
    onSeen: (revision, elapsedMs, say) => {
      if (revision.status === lastStatus) return
      lastStatus = revision.status
      onStatus(revision, options.effects.now())
      const message = revision.status_message === null ? '' : ` (${revision.status_message})`
      say(`${revision.status} after ${formatDuration(elapsedMs)}${message}`)
      reportUnknown(revision.status, unknown, say)
    },
    statusOf: ({ status }) => status,
    isFinal: ({ status }) => isFinalRevisionStatus(status),
    still: (revision, elapsedMs) => {
      const usual = expected === undefined ? '' : ` (earlier revisions took ${formatDuration(expected)})`
      return `Still ${revision?.status ?? 'no status'} after ${formatDuration(elapsedMs)}${usual}.`
    },
    refused,
  })
  return watched.end === 'final' ? { end: 'final', revision: watched.seen } : { end: 'timeout', lastStatus }
}

function refused(error: RequestFailure): ActionFailure {
  if (error.status !== 404) return requestFailure(error, 'Reading the status of the revision')
  return new ActionFailure({
    code: 'E_NOT_FOUND',
    happened: `The deployment or its revision was deleted meanwhile: ${sentence(error.message)}`,
    tried: `${error.method} ${error.path} was answered with 404 twice in a row.`,
    next: 'Find out who deleted it, then run the step again.',
    cause: error,
  })
}

function reportUnknown(status: string, unknown: Set<string>, say: (line: string) => void): void {
  if (unknown.has(status)) return
  if (status === 'UNKNOWN') say('The control plane does not know the status of the revision: waiting on.')
  else if (!isKnownRevisionStatus(status) && !isFinalRevisionStatus(status))
    say(`The status ${status} is not known to this version: waiting on.`)
  else return
  unknown.add(status)
}
