import { startDeadline } from '../client/deadline.ts'
import { RequestFailure } from '../client/failure.ts'
import type { Deps } from './deps.ts'

/**
 * Asks the control plane to stop a revision, within `timeoutMs`. A courtesy: it never throws. Returns whether that is settled
 * (done, or impossible for good), and a sentence on what became of it.
 */
export async function interruptRevision({
  deploymentId,
  revisionId,
  timeoutMs,
  deps,
}: {
  deploymentId: string
  revisionId: string
  timeoutMs: number
  deps: Pick<Deps, 'once' | 'effects'>
}): Promise<{ settled: boolean; sentence: string }> {
  // Not the step's own signal: that one has aborted already.
  const deadline = startDeadline({ timeoutMs, parent: new AbortController().signal, effects: deps.effects })
  try {
    await deps.once.interruptRevision({ deploymentId, revisionId, timeoutMs, signal: deadline.signal })
    return { settled: true, sentence: `The control plane was asked to interrupt the revision ${revisionId}.` }
  } catch (error) {
    if (error instanceof RequestFailure && error.kind === 'unsupported') {
      return {
        settled: true,
        sentence: `This control plane has no way to interrupt a revision: ${revisionId} goes on by itself.`,
      }
    }
    const why = error instanceof Error ? error.message : String(error)
    return { settled: false, sentence: `The revision ${revisionId} could not be interrupted, and may go on by itself: ${why}` }
  } finally {
    deadline.stop()
  }
}
