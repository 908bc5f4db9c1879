import type { Effects } from '../../../src/client/effects.ts'

/** Time that passes only when somebody sleeps. `onSleep` is called before each sleep, with the time at which it begins. */
export function fakeEffects(
  onSleep: (now: number) => void = () => undefined,
): Effects & { slept: number[]; advance: (ms: number) => void } {
  let now = Date.UTC(2026, 0, 1)
  const slept: number[] = []
  return {
    slept,
    advance: (ms) => {
      now += ms
    },
    now: () => now,
    random: () => 0.5,
    sleep: async (ms, signal) => {
      onSleep(now)
      if (signal.aborted) throw signal.reason
      slept.push(ms)
      now += ms
      await Promise.resolve()
      if (signal.aborted) throw signal.reason
    },
  }
}
