import type { RateLimit } from '../../contract/rate-limits.ts'
import { type Admission, SlidingWindow } from './sliding-window.ts'

/** Counts requests by identity. `key` names the row and the identity together. */
export interface RateCounter {
  take(key: string, limit: RateLimit): Promise<Admission> | Admission
  /** Forgets everything that was counted. */
  clear(): Promise<void>
}

/** How often windows that nobody used any more are dropped. Milliseconds. */
const SWEEP_MS = 30_000

/** How many windows are kept at most; the one that was made first goes, which costs nobody anything but a moment's leniency. */
const WINDOWS_MAX = 100_000

/** Counts in this process's memory. `now` is a monotonic clock in milliseconds. */
export function createMemoryCounter({ now = () => performance.now() }: { now?: () => number } = {}): RateCounter & { size(): number } {
  const windows = new Map<string, SlidingWindow>()
  let sweptAt = now()

  const sweep = (time: number) => {
    for (const [key, window] of windows) if (window.isIdle(time)) windows.delete(key)
    sweptAt = time
  }
  return {
    take: (key, { count, seconds }) => {
      const time = now()
      if (time - sweptAt > SWEEP_MS) sweep(time)
      let window = windows.get(key)
      if (window === undefined) {
        window = new SlidingWindow({ limit: count, windowMs: seconds * 1000 })
        const [oldest] = windows.size >= WINDOWS_MAX ? windows.keys() : []
        if (oldest !== undefined) windows.delete(oldest)
        windows.set(key, window)
      }
      return window.take(time)
    },
    clear: async () => windows.clear(),
    size: () => windows.size,
  }
}
