import type { Effects } from '../client/effects.ts'

/** Signals that the runner sends to end a step; the last is Windows'. */
export const CANCEL_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGBREAK'] as const

/** One abort for all of them. The second signal is obeyed at once, by `giveUp`. */
export function createCancellation({
  on,
  info,
  giveUp,
}: {
  on: (signal: (typeof CANCEL_SIGNALS)[number], listener: () => void) => void
  info: (line: string) => void
  giveUp: () => void
}): AbortSignal {
  const controller = new AbortController()
  for (const name of CANCEL_SIGNALS) {
    on(name, () => {
      if (controller.signal.aborted) {
        giveUp()
        return
      }
      controller.abort(new DOMException(`received ${name}`, 'AbortError'))
      info(`Received ${name}: ending.`)
    })
  }
  return controller.signal
}

/**
 * A signal that aborts `ms` after `signal` does: for a request that changes something, so that its answer, and with it the id of
 * what was made, is not thrown away at the last moment. Call `stop` when the request is over.
 */
export function withGrace({ signal, ms, effects }: { signal: AbortSignal; ms: number; effects: Effects }): {
  signal: AbortSignal
  stop: () => void
} {
  const late = new AbortController()
  const stopped = new AbortController()
  const begin = (): void => {
    effects.sleep(ms, stopped.signal).then(
      () => late.abort(signal.reason),
      () => undefined,
    )
  }
  if (signal.aborted) begin()
  else signal.addEventListener('abort', begin, { once: true })
  return {
    signal: late.signal,
    stop: () => {
      signal.removeEventListener('abort', begin)
      stopped.abort()
    },
  }
}
