export interface LeaseBeatOptions {
  /** Asks the database for more time. True: it was given. False: it was not, and the caller knows what that means. */
  readonly renew: () => Promise<boolean>
  readonly leaseMs: number
  readonly heartbeatMs: number
  /** Called when the database has not answered for so long that another worker may have what is held. */
  readonly onSilence: () => void
}

/**
 * Makes the function that asks for more time, called at intervals and whenever there may be news. One question at a time: one
 * that is asked meanwhile is asked afterwards. An answer that does not come is no better than none: held is only what was
 * renewed in time. That the process slept is no silence of the database: it has a heartbeat's time from when its answer is first
 * missed.
 */
export function createLeaseBeat({ renew, leaseMs, heartbeatMs, onSilence }: LeaseBeatOptions): () => void {
  let renewedAt = Date.now()
  let missedSince: number | null = null
  let asking = false
  let again = false
  const miss = () => {
    const now = Date.now()
    missedSince ??= now
    // Past the end of the lease another may have what is held: stop before that.
    if (now - renewedAt > leaseMs - heartbeatMs && now - missedSince >= heartbeatMs) onSilence()
  }
  const ask = async () => {
    const askedAt = Date.now()
    try {
      if (await renew()) renewedAt = askedAt
      missedSince = null
    } catch {
      // The database is away, or only the connection is broken.
      miss()
    }
  }
  return () => {
    if (asking) {
      again = true
      miss()
      return
    }
    asking = true
    void (async () => {
      do {
        again = false
        await ask()
      } while (again)
      asking = false
    })()
  }
}
