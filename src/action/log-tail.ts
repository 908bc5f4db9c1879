import { startDeadline } from '../client/deadline.ts'
import type { LogEntryAnswer } from '../contract/answers.ts'
import type { LogType } from '../contract/log.ts'
import type { Deps } from './deps.ts'
import type { LogTail } from './journal.ts'

const TAIL_LINES = 200
/** A log is worth a short wait, and no more: the revision has failed already. */
const TAIL_TIMEOUT_MS = 30_000

/**
 * The end of the log that explains a failed revision, oldest line first: the build log, or the deploy log when the build was
 * done. Never throws: a log that cannot be read becomes a note.
 */
export async function readLogTail({
  deploymentId,
  revisionId,
  status,
  deps,
}: {
  deploymentId: string
  revisionId: string
  status: string
  deps: Deps
}): Promise<LogTail | undefined> {
  const types: readonly LogType[] = status === 'BUILD_FAILED' || status === 'CREATE_FAILED' ? ['build'] : ['deploy', 'build']
  const deadline = startDeadline({ timeoutMs: TAIL_TIMEOUT_MS, parent: deps.signal, effects: deps.effects })
  try {
    for (const type of types) {
      const { entries } = await deps.controlPlane.revisionLogs({
        deploymentId,
        revisionId,
        type,
        limit: TAIL_LINES,
        order: 'desc',
        timeoutMs: TAIL_TIMEOUT_MS,
        signal: deadline.signal,
      })
      const lines = entries.toReversed().flatMap(showEntry).slice(-TAIL_LINES)
      if (lines.length > 0) return { title: `The end of the ${type} log`, lines }
    }
    deps.journal.note(`The control plane has no ${types.join(' and no ')} log of this revision.`)
  } catch (error) {
    deps.journal.note(`The log of the revision could not be read: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    deadline.stop()
  }
  return undefined
}

function showEntry({ message, level, timestamp }: LogEntryAnswer): string[] {
  const time = timestamp === null || Math.abs(timestamp) > 8.64e15 ? '' : `${new Date(timestamp).toISOString().slice(11, 19)} `
  const mark = level === null || level === 'INFO' ? '' : `${level} `
  return message
    .replace(/[\r\n]+$/, '')
    .split(/\r\n|\n/)
    .map((line) => `${time}${mark}${line}`)
}
