import type { Effects } from './effects.ts'

const ends = new WeakMap<AbortSignal, number>()

/** Longest delay of a timer; a later deadline is still known to `deadlineOf`. */
const TIMER_MAX_MS = 2_147_483_647

export type Deadline = {
  /** Aborts when the time is over (reason: a `TimeoutError`) or when the parent aborts (with its reason). */
  readonly signal: AbortSignal
  remainingMs(): number
  /** Ends the timer. Call it when the work is done; the timer alone never keeps the process alive. */
  stop(): void
}

/** A total time for a piece of work. Requests that get its signal know how much of it is left, and begin no wait beyond it. */
export function startDeadline({ timeoutMs, parent, effects }: {
  timeoutMs: number
  parent: AbortSignal
  effects: Pick<Effects, 'now'>
}): Deadline {
  const controller = new AbortController()
  const end = Math.min(effects.now() + timeoutMs, deadlineOf(parent) ?? Infinity)
  ends.set(controller.signal, end)
  const follow = () => controller.abort(parent.reason)
  const expire = () => controller.abort(new DOMException(`the time of ${timeoutMs} ms is over`, 'TimeoutError'))
  const timer = setTimeout(expire, Math.min(timeoutMs, TIMER_MAX_MS)).unref()
  if (parent.aborted) follow()
  else parent.addEventListener('abort', follow, { once: true })
  return {
    signal: controller.signal,
    remainingMs: () => Math.max(0, end - effects.now()),
    stop: () => {
      clearTimeout(timer)
      parent.removeEventListener('abort', follow)
    },
  }
}

/** When the work under this signal has to end, in epoch milliseconds; null for a signal without a deadline. */
export function deadlineOf(signal: AbortSignal): number | null {
  return ends.get(signal) ?? null
}

/** What an aborted signal stands for: the total time is over, or somebody cancelled. */
export function abortKind(signal: AbortSignal): 'deadline' | 'cancelled' {
  const reason: unknown = signal.reason
  return reason instanceof Error && reason.name === 'TimeoutError' ? 'deadline' : 'cancelled'
}
