import type { Database } from '../../database/schema.ts'
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
  let renewedAt = Date.now()
  let asking = false
  const beat = async () => {
    if (asking) return
    asking = true
    const askedAt = Date.now()
    try {
      if (await renewLease(db, claim, settings)) renewedAt = askedAt
      else stop(new LeaseLost(`the lease of the export run ${claim.run.id} was lost`))
    } catch {
      // The database is away. Past the end of the lease the run may be another's: stop before that.
      if (Date.now() - renewedAt > settings.leaseMs - settings.heartbeatMs) stop(new LeaseLost('the database was away for too long'))
    }
    asking = false
  }
  const onStopping = () => stop(new Stopping('the platform stops'))
  const timer = setInterval(() => void beat(), settings.heartbeatMs)
  const limit = setTimeout(
    () => stop(new ExportFailure('run_timeout', `the time limit of one run, ${settings.runLimitMs / 1000} s, passed`)),
    Math.min(settings.runLimitMs, 2 ** 31 - 1),
  )
  const letGo = hand(() => void beat())
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
