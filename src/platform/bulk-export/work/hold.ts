import type { Database } from '../../database/schema.ts'
import { createLeaseBeat } from '../../lease-beat.ts'
import type { ExportSettings } from '../settings.ts'
import { LeaseLost } from './checkpoint.ts'
import { ExportFailure } from './failure.ts'
import { type Claim, renewLease } from './lease.ts'

/** The platform stops: what is in hand is handed back. */
export class Stopping extends Error {}

export interface HoldOptions<T> {
  readonly db: Database
  readonly claim: Claim
  readonly settings: ExportSettings
  readonly stopping: AbortSignal
  readonly work: (signal: AbortSignal) => Promise<T>
  /** Called with a function that looks at the lease now, while the work lasts. */
  readonly hand: (look: () => void) => () => void
}

/**
 * Runs `work` under a lease: renews it, and aborts the work when it is lost (a user cancelled, another worker has the run), when the time
 * limit of an attempt passes, or when the platform stops. Returns only when the work has ended.
 * @throws {LeaseLost | ExportFailure | Stopping} when it was stopped from outside; else what the work throws.
 */
export async function holdLease<T>({ db, claim, settings, stopping, work, hand }: HoldOptions<T>): Promise<T> {
  const controller = new AbortController()
  let reason: Error | null = null
  const stop = (why: Error) => {
    reason ??= why
    controller.abort(reason)
  }
  const renew = async () => {
    const isHeld = await renewLease(db, claim, settings)
    if (!isHeld) stop(new LeaseLost(`the lease of the export run ${claim.run.id} was lost`))
    return isHeld
  }
  const onSilence = () => stop(new LeaseLost('the database did not answer for too long'))
  const beat = createLeaseBeat({ renew, leaseMs: settings.leaseMs, heartbeatMs: settings.heartbeatMs, onSilence })
  const onStopping = () => stop(new Stopping('the platform stops'))
  const timer = setInterval(beat, settings.heartbeatMs)
  const limit = setTimeout(
    () => stop(new ExportFailure('run_timeout', `the time limit of one run, ${settings.runLimitMs / 1000} s, passed`)),
    Math.min(settings.runLimitMs, 2 ** 31 - 1),
  )
  const letGo = hand(beat)
  stopping.addEventListener('abort', onStopping)
  if (stopping.aborted) onStopping()
  try {
    const result = await work(controller.signal)
    return result
  } catch (error) {
    throw reason ?? error
  } finally {
    letGo()
    stopping.removeEventListener('abort', onStopping)
    clearInterval(timer)
    clearTimeout(limit)
  }
}
