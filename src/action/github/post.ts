import { startDeadline } from '../../client/deadline.ts'
import type { Effects } from '../../client/effects.ts'
import type { Io } from '../io.ts'
import type { Log } from '../report/log.ts'
import type { GithubContext } from './context.ts'
import type { Github } from './github.ts'
import { closeRecord, readOpenRecord, type RecordEnd, runAddress } from './records.ts'

const POST_MS = 6000

/**
 * Brings the deployment record to its end that main could not: main was stopped, or GitHub did not answer it. Without that the
 * deployments page would show it as in progress for ever. Never throws.
 */
export async function postRecord({
  getState,
  github,
  context,
  effects,
  log,
}: {
  getState: Io['getState']
  github: () => Github | undefined
  context: GithubContext
  effects: Effects
  log: Pick<Log, 'info' | 'warning'>
}): Promise<void> {
  const record = readOpenRecord(getState('deploymentRecord'))
  if (record === undefined) return
  // A sweep knows a preview by the revisions that its records name.
  const revision = getState('revisionId')
  const stopped: RecordEnd = {
    state: 'error',
    description: `The step was stopped before it was done; the revision ${revision === '' ? '' : `${revision} `}may go on by itself`,
  }
  const end = record.end ?? stopped
  const deadline = startDeadline({ timeoutMs: POST_MS, parent: new AbortController().signal, effects })
  try {
    const client = github()
    if (client === undefined) return
    await closeRecord({ github: client, record, end, logUrl: runAddress(context), signal: deadline.signal })
    log.info(`The deployment record of '${record.environment}' was set to ${end.state}: ${end.description}.`)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    log.warning(`environment: ${why}. The deployment record of '${record.environment}' may stay as it is.`)
  } finally {
    deadline.stop()
  }
}
