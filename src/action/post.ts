import type { Deps } from './deps.ts'
import { cancelExport } from './export/cancel.ts'
import type { Inputs } from './inputs.ts'
import { interruptRevision } from './interrupt.ts'
import type { Io } from './io.ts'

const INTERRUPT_MS = 10_000

/**
 * What main had no time for. Acts only when main was stopped before it had concluded, or could not interrupt the revision within
 * its time. `connect` reads the inputs and makes the client, and may throw.
 */
export async function runPost({
  getState,
  connect,
  log,
}: {
  getState: Io['getState']
  connect: () => { onCancel: Inputs['onCancel']; apiUrl?: string | undefined; deps: Pick<Deps, 'once' | 'effects' | 'bulkExports'> }
  log: Pick<Deps['log'], 'info' | 'warning'>
}): Promise<void> {
  const concluded = getState('done') !== ''
  await postExport()
  const unfinished = getState('interrupt')
  const [deploymentId, revisionId] = [getState('deploymentId'), getState('revisionId')]
  if (concluded && unfinished === '') return
  if (!concluded && getState('pending') !== '') {
    log.warning(
      `The step was stopped after it had asked to ${getState('pending')} and before it saw an answer: it may have happened.`,
    )
  }
  if (revisionId === '' || getState('ended') !== '') return
  try {
    const { onCancel, deps } = connect()
    if (unfinished === '' && onCancel === 'leave') {
      log.info(
        `The step was stopped before it was done. on-cancel is leave: ` +
          `the revision ${revisionId} of ${deploymentId} goes on by itself.`,
      )
      return
    }
    const { settled, sentence } = await interruptRevision({ deploymentId, revisionId, timeoutMs: INTERRUPT_MS, deps })
    if (settled) log.info(sentence)
    else log.warning(sentence)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    log.warning(`The revision ${revisionId} of ${deploymentId} may go on by itself: ${why}`)
  }

  /** The same for an export that main has created; never for another's. */
  async function postExport(): Promise<void> {
    const exportId = getState('exportId')
    const uncancelled = getState('cancelExport')
    if (exportId === '' || getState('exportEnded') !== '' || (concluded && uncancelled === '')) return
    try {
      const { onCancel, apiUrl, deps } = connect()
      if (uncancelled === '' && onCancel === 'leave') {
        log.info(`The step was stopped before it was done. on-cancel is leave: the export ${exportId} goes on by itself.`)
        return
      }
      if (apiUrl === undefined) return
      const { once } = deps.bulkExports(apiUrl)
      const { settled, sentence } = await cancelExport({ exportId, timeoutMs: INTERRUPT_MS, once, effects: deps.effects })
      if (settled) log.info(sentence)
      else log.warning(sentence)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      log.warning(`The export ${exportId} may go on by itself: ${why}`)
    }
  }
}
