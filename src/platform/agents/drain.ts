/** One request, stream or socket that a target is busy with. */
export interface Exchange {
  /** Ends it at once, on both sides. Calls its `finish`. */
  cut(): void
}

/** Counts what is in flight, so that a target can be let go without cutting anything that still has time. */
export interface InFlight {
  readonly size: number
  /** Counts it until the returned function is called. */
  begin(exchange: Exchange): () => void
  /** Waits until nothing is in flight; what is left after `limitMs` is cut. Resolves with how many were. */
  drained(limitMs: number): Promise<{ cut: number }>
}

export function createInFlight(): InFlight {
  const exchanges = new Set<Exchange>()
  const waiting = new Set<() => void>()
  return {
    get size() {
      return exchanges.size
    },
    begin(exchange) {
      exchanges.add(exchange)
      return () => {
        if (exchanges.delete(exchange) && exchanges.size === 0) for (const resume of waiting) resume()
      }
    },
    async drained(limitMs) {
      if (exchanges.size === 0) return { cut: 0 }
      const inTime = await new Promise<boolean>((resolve) => {
        const settle = (empty: boolean) => {
          clearTimeout(timer)
          waiting.delete(onEmpty)
          resolve(empty)
        }
        const onEmpty = () => settle(true)
        const timer = setTimeout(() => settle(false), limitMs)
        waiting.add(onEmpty)
      })
      if (inTime) return { cut: 0 }
      const left = [...exchanges]
      for (const exchange of left) exchange.cut()
      return { cut: left.length }
    },
  }
}
