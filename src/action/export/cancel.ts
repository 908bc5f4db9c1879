import type { BulkExports } from '../../client/bulk-export.ts'
import { startDeadline } from '../../client/deadline.ts'
import type { Effects } from '../../client/effects.ts'
import { RequestFailure } from '../../client/failure.ts'

/**
 * Asks the service to cancel an export, within `timeoutMs`. A courtesy: it never throws. Returns whether that is settled (done, or
 * impossible for good), and a sentence on what became of it.
 */
export async function cancelExport({
  exportId,
  timeoutMs,
  once,
  effects,
}: {
  exportId: string
  timeoutMs: number
  once: Pick<BulkExports, 'cancelExport'>
  effects: Effects
}): Promise<{ settled: boolean; status: string | undefined; sentence: string }> {
  // Not the step's own signal: that one has aborted already.
  const deadline = startDeadline({ timeoutMs, parent: new AbortController().signal, effects })
  try {
    const { status } = await once.cancelExport({ id: exportId, timeoutMs, signal: deadline.signal })
    return { settled: true, status, sentence: `The export ${exportId} was cancelled: it is ${status}.` }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    if (error instanceof RequestFailure && error.kind === 'http' && (error.status === 404 || error.status === 409)) {
      return { settled: true, status: undefined, sentence: `The export ${exportId} had ended before it could be cancelled: ${why}` }
    }
    return { settled: false, status: undefined, sentence: `The export ${exportId} could not be cancelled, and may go on by itself: ${why}` }
  } finally {
    deadline.stop()
  }
}
