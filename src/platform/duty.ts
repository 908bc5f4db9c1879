import type { Log } from './log.ts'

/** Work that a process does again and again until it stops. */
export interface Duty {
  /** Looks for work now instead of at the next interval. */
  wake(): void
  /** No new round begins; resolves when the present one is over. */
  stop(): Promise<void>
}

export interface DutyOptions {
  readonly name: string
  readonly intervalMs: number
  readonly round: () => Promise<boolean | void>
  readonly log: Log
}

/**
 * Runs `round` at every `wake()` and at the latest every `intervalMs`. A round that returns true found work and is followed by another at
 * once. After a round that fails the next one comes at the interval, whatever wakes it: a duty never ends by itself, and never spins.
 */
export function startDuty({ name, intervalMs, round, log }: DutyOptions): Duty {
  const stopping = new AbortController()
  let woken = false
  let failures = 0
  let rouse: (() => void) | null = null

  const rest = (wakeable: boolean) =>
    new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer)
        stopping.signal.removeEventListener('abort', end)
        rouse = null
        resolve()
      }
      const timer = setTimeout(end, intervalMs)
      stopping.signal.addEventListener('abort', end)
      if (wakeable) rouse = end
    })
  const run = async () => {
    while (!stopping.signal.aborted) {
      woken = false
      let found: boolean | void = false
      try {
        found = await round()
        failures = 0
      } catch (error) {
        failures += 1
        // The 1st, 2nd, 4th, 8th … in a row: a database that is away for an hour does not fill the disk with lines.
        const telling = Number.isInteger(Math.log2(failures))
        if (telling) log.error({ duty: name, failures, error: (error as Error).stack ?? String(error) }, 'a duty failed; it goes on')
      }
      if (stopping.signal.aborted || (failures === 0 && (found === true || woken))) continue
      await rest(failures === 0)
    }
  }
  const ended = run()
  return {
    wake: () => {
      woken = true
      rouse?.()
    },
    stop: async () => {
      stopping.abort()
      await ended
    },
  }
}
