import type { Database } from '../../database/schema.ts'
import { createLeaseBeat } from '../../lease-beat.ts'
import { type Claim, heartbeat, HEARTBEAT_MS, LEASE_MS } from './lease.ts'

/** How long stopped work may take to end, with all its processes, before it is given up. Milliseconds. */
export const END_LIMIT_MS = 60_000

/** Why work on a claimed revision was stopped from outside. */
export type StopReason = 'interrupted' | 'lost' | 'stopping' | 'time limit'

/** Thrown by `hold` when the work was stopped from outside; the work's own error is not the story then. */
export class WorkStopped extends Error {
  readonly reason: StopReason
  /** The work did not end when it was told to. */
  readonly abandoned: boolean

  constructor(reason: StopReason, { abandoned = false } = {}) {
    super(`the work was stopped: ${reason}`)
    this.reason = reason
    this.abandoned = abandoned
  }
}

/** Work in progress, so that it can be told to look at what is wished of it. */
export interface WorkInHand {
  readonly revisionId: string
  look(): void
}

/** Everything that this process works on, and whether it may go on. */
export interface Hands {
  readonly inHand: Set<WorkInHand>
  /** Aborted when the platform stops: what is in hand, and what is taken up a moment later, is handed back. */
  readonly stopping: AbortSignal
}

export interface HoldOptions<T> {
  readonly claim: Claim
  readonly limitMs: number
  readonly hands: Hands
  readonly work: (signal: AbortSignal) => Promise<T>
  readonly endLimitMs?: number
}

/**
 * Runs `work` under a claim: renews the lease, and aborts the work's signal when a user interrupts, the lease is lost, the time limit
 * passes or the platform stops. Returns only when the work has ended, with all its processes; work that does not end is given up after
 * `endLimitMs`, so that nothing holds up a queue for ever.
 * @throws {WorkStopped} when it was stopped from outside; otherwise what the work throws.
 */
export async function hold<T>(
  db: Database,
  { claim, limitMs, hands, work, endLimitMs = END_LIMIT_MS }: HoldOptions<T>,
): Promise<T> {
  const controller = new AbortController()
  const abandonment = Promise.withResolvers<never>()
  let reason: StopReason | null = null
  let giveUp: NodeJS.Timeout | undefined
  const stop = (why: StopReason) => {
    if (reason !== null) return
    reason = why
    controller.abort(new WorkStopped(why))
    giveUp = setTimeout(() => abandonment.reject(new WorkStopped(why, { abandoned: true })), endLimitMs)
  }
  const renew = async () => {
    const heard = await heartbeat(db, claim)
    if (heard !== 'go on') stop(heard)
    return heard === 'go on'
  }
  const beat = createLeaseBeat({ renew, leaseMs: LEASE_MS, heartbeatMs: HEARTBEAT_MS, onSilence: () => stop('lost') })
  const onStopping = () => stop('stopping')
  const timer = setInterval(beat, HEARTBEAT_MS)
  const limit = setTimeout(() => stop('time limit'), limitMs)
  const hand: WorkInHand = { revisionId: claim.id, look: beat }
  hands.inHand.add(hand)
  hands.stopping.addEventListener('abort', onStopping)
  // The wish to stop may be older than this claim.
  if (hands.stopping.aborted) onStopping()
  try {
    controller.signal.throwIfAborted()
    const result = await Promise.race([work(controller.signal), abandonment.promise])
    if (reason !== null) throw new WorkStopped(reason)
    return result
  } catch (error) {
    if (reason === null || (error instanceof WorkStopped && error.abandoned)) throw error
    throw new WorkStopped(reason)
  } finally {
    hands.inHand.delete(hand)
    hands.stopping.removeEventListener('abort', onStopping)
    clearInterval(timer)
    clearTimeout(limit)
    clearTimeout(giveUp)
  }
}
