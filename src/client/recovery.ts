import type { RevisionAnswer, SourceRevisionConfigAnswer } from '../contract/answers.ts'
import { isImageOf } from '../contract/image.ts'
import type { SourceRevisionConfigInput } from '../contract/revision.ts'
import type { ControlPlaneContext } from './context.ts'
import { abortKind } from './deadline.ts'
import { RequestFailure } from './failure.ts'
import { backoffMs, DEFAULT_RETRY_POLICY } from './retry.ts'

/** `found`: the lost answer's effect; `absent`: the request was not carried out; `unclear`: it cannot be told. */
export type Recovery<T> = { outcome: 'found'; value: T } | { outcome: 'absent' } | { outcome: 'unclear'; because: string }

/** How often a write is sent at most. */
const SENDS_MAX = 2
/** A request whose answer was lost may still be at work: it gets this long before anybody looks for its effect. */
const SETTLE_MS = 1000

/**
 * Sends a write that must not happen twice. After an ambiguous failure it looks for the write's effect, and sends again only when
 * there is none. A 409 to the second sending means that the first one had its effect late: it is looked for once more.
 */
export async function withRecovery<T>({ context, signal, send, recover }: {
  context: Pick<ControlPlaneContext, 'effects' | 'onRetry'>
  signal: AbortSignal
  send: () => Promise<T>
  recover: () => Promise<Recovery<T>>
}): Promise<T> {
  const { effects, onRetry } = context
  let attempts = 0
  for (let sends = 1; ; sends++) {
    try {
      return await send()
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      attempts += error.attempts
      const failure = error.with({ attempts })
      const lateEffect = sends > 1 && failure.status === 409
      if (signal.aborted || !(failure.ambiguous || lateEffect)) throw failure
      const waitMs = SETTLE_MS + backoffMs({ attempt: sends, policy: DEFAULT_RETRY_POLICY, random: effects.random })
      const { method, path, status, summary } = failure
      onRetry?.({ attempt: sends, waitMs, reason: `${summary}; looking whether it was carried out`, method, path, status })
      const recovery = await attemptRecovery({ failure, recover, signal, pause: () => effects.sleep(waitMs, signal) })
      if (recovery.outcome === 'found') return recovery.value
      if (recovery.outcome === 'unclear') throw failure.with({ summary: `${summary}; ${recovery.because}` })
      if (sends >= SENDS_MAX || lateEffect) throw failure
    }
  }
}

/** When even the looking fails, the first failure is the one to report. */
async function attemptRecovery<T>({ failure, recover, signal, pause }: {
  failure: RequestFailure
  recover: () => Promise<Recovery<T>>
  signal: AbortSignal
  pause: () => Promise<void>
}): Promise<Recovery<T>> {
  try {
    await pause()
    return await recover()
  } catch (second) {
    const kind = signal.aborted ? abortKind(signal) : failure.kind
    const why = second instanceof Error ? second.message : 'the look-up was cancelled'
    const summary = `${failure.summary}, and it could not be found out whether it was carried out (${why})`
    throw failure.with({ kind, summary })
  }
}

/** True unless a field that was sent came back with another value. An image may come back with its digest. */
export function matchesSent(
  answer: { source_revision_config: SourceRevisionConfigAnswer },
  sent: { source_revision_config?: SourceRevisionConfigInput | null | undefined },
): boolean {
  const got = answer.source_revision_config
  const wanted = sent.source_revision_config ?? {}
  return (['repo_ref', 'graph_config_path', 'image_uri'] as const).every((field) => {
    const value = wanted[field] ?? null
    const recorded = got[field]
    if (value === null || recorded === null) return true
    return field === 'image_uri' ? isImageOf(recorded, value) : recorded === value
  })
}

/** The revisions made after the previous one, newest first; null when the previous one is not in the list. */
export function newerRevisions(revisions: readonly RevisionAnswer[], previousId: string | null): RevisionAnswer[] | null {
  const dated = revisions.every((revision) => !Number.isNaN(madeAt(revision)))
  // Where a time is missing, the service's own order stands: newest first, too.
  const newestFirst = dated ? revisions.toSorted((a, b) => madeAt(b) - madeAt(a)) : revisions
  if (previousId === null) return [...newestFirst]
  const index = newestFirst.findIndex((revision) => revision.id === previousId)
  return index === -1 ? null : newestFirst.slice(0, index)
}

function madeAt(revision: RevisionAnswer): number {
  return Date.parse(revision.created_at ?? '')
}
