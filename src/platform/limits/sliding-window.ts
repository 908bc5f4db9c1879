/** Whether a request is let in, and how much is left. Times in milliseconds. */
export interface Admission {
  readonly admitted: boolean
  /** Requests that are still possible now. */
  readonly remaining: number
  /** Until one more request is possible; 0 while some are left. */
  readonly retryAfterMs: number
}

/**
 * An exact sliding window: in any `windowMs` no more than `limit` requests are let in, and never fewer than that are refused. It remembers
 * the time of each request that was let in, in a ring that grows up to `limit`. Refused requests do not count.
 */
export class SlidingWindow {
  #times = new Float64Array(8)
  #first = 0
  #count = 0
  readonly #limit: number
  readonly #windowMs: number

  constructor({ limit, windowMs }: { limit: number; windowMs: number }) {
    this.#limit = limit
    this.#windowMs = windowMs
  }

  /** Counts a request at `now`, which never goes back (a monotonic clock). */
  take(now: number): Admission {
    this.#forget(now)
    if (this.#count >= this.#limit) {
      return { admitted: false, remaining: 0, retryAfterMs: this.#oldest() + this.#windowMs - now }
    }
    this.#push(now)
    const remaining = this.#limit - this.#count
    return { admitted: true, remaining, retryAfterMs: remaining > 0 ? 0 : this.#oldest() + this.#windowMs - now }
  }

  /** True when nothing of it is inside the window any more: it can be dropped. */
  isIdle(now: number): boolean {
    this.#forget(now)
    return this.#count === 0
  }

  /** A request counts for `windowMs`: at exactly that age it is over. */
  #forget(now: number): void {
    while (this.#count > 0 && this.#oldest() + this.#windowMs <= now) {
      this.#first = (this.#first + 1) % this.#times.length
      this.#count -= 1
    }
  }

  #oldest(): number {
    return this.#times[this.#first] ?? 0
  }

  #push(now: number): void {
    if (this.#count === this.#times.length) this.#grow()
    this.#times[(this.#first + this.#count) % this.#times.length] = now
    this.#count += 1
  }

  #grow(): void {
    const grown = new Float64Array(Math.min(this.#limit, this.#times.length * 2))
    for (let index = 0; index < this.#count; index += 1) {
      grown[index] = this.#times[(this.#first + index) % this.#times.length] ?? 0
    }
    this.#times = grown
    this.#first = 0
  }
}
