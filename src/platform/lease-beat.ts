export interface LeaseBeatOptions {
  /** Asks the database for more time. True: it was given. False: it was not, and the caller knows what that means. */
  readonly renew: () => Promise<boolean>
  readonly leaseMs: number
  readonly heartbeatMs: number
  /** Called when the database has not answered for so long that another worker may have what is held. */
  readonly onSilence: () => void
}

/**
 * Makes the function that asks for more time, called at intervals and whenever there may be news. One question at a time: one that is
 * asked meanwhile is asked afterwards. An answer that does not come is no better than none: held is only what was renewed in time.
 */
export function createLeaseBeat({ renew, leaseMs, heartbeatMs, onSilence }: LeaseBeatOptions): () => void {
  let renewedAt = Date.now()
  let asking = false
  let again = false
  const isOver = () => Date.now() - renewedAt > leaseMs - heartbeatMs
  const ask = async () => {
    const askedAt = Date.now()
    try {
      if (await renew()) renewedAt = askedAt
    } catch {
      // The database is away. Past the end of the lease another may have what is held: stop before that.
      if (isOver()) onSilence()
    }
  }
  return () => {
    if (asking) {
      again = true
      if (isOver()) onSilence()
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
