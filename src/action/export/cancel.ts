import type { BulkExports } from '../../client/bulk-export.ts'
import { startDeadline } from '../../client/deadline.ts'
import type { Effects } from '../../client/effects.ts'
import { RequestFailure } from '../../client/failure.ts'
import type { ExportDeps, ExportPolicy } from './deps.ts'

/** Why a step gives up an export. Cancelled, it tells what happened in what is left of the time that the runner gives it. */
const LIMIT_MS = { cancel: 2000, timeout: 10_000 }

/**
 * Ends the export that this step has created, if the input for this `occasion` asks for that, and writes down what became of it.
 * Never throws. @returns that sentence.
 */
export async function cancelOrLeave({
  exportId,
  occasion,
  policy,
  once,
  deps: { effects, journal, log },
}: {
  exportId: string
  occasion: keyof typeof LIMIT_MS
  policy: ExportPolicy
  once: Pick<BulkExports, 'cancelExport'>
  deps: Pick<ExportDeps, 'effects' | 'journal' | 'log'>
}): Promise<string> {
  let sentence = `on-${occasion} is leave: the export ${exportId} goes on by itself.`
  if ({ cancel: policy.onCancel, timeout: policy.onTimeout }[occasion] === 'interrupt') {
    journal.save('cancelExport', occasion)
    const cancelled = await cancelExport({ exportId, timeoutMs: LIMIT_MS[occasion], once, effects })
    if (cancelled.settled) journal.save('cancelExport', '')
    journal.set('export-status', cancelled.status)
    sentence = cancelled.sentence
  }
  log.info(sentence)
  journal.note(sentence)
  return sentence
}

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
