import type { Effects } from '../../../src/client/effects.ts'

export type VirtualEffects = Effects & { sleeps: number[]; advance(ms: number): void }

/** A clock that only sleeping moves; `random` is the jitter's draw, the highest by default so that waits are exact. */
export function virtualEffects({ random = () => 1, start = Date.UTC(2026, 0, 1) } = {}): VirtualEffects {
  let now = start
  const sleeps: number[] = []
  return {
    sleeps,
    now: () => now,
    random,
    advance: (ms) => {
      now += ms
    },
    sleep: async (ms, signal) => {
      signal.throwIfAborted()
      sleeps.push(ms)
      now += ms
      await new Promise((resolve) => setImmediate(resolve))
      signal.throwIfAborted()
    },
  }
}
