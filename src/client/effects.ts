/** The outside world of the clients: epoch milliseconds, a sleep that rejects when its signal aborts, a number in [0, 1). */
export type Effects = {
  now(): number
  sleep(ms: number, signal: AbortSignal): Promise<void>
  random(): number
}

export const realEffects: Effects = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason)
        return
      }
      const finish = () => {
        signal.removeEventListener('abort', stop)
        resolve()
      }
      const stop = () => {
        clearTimeout(timer)
        reject(signal.reason)
      }
      const timer = setTimeout(finish, ms)
      signal.addEventListener('abort', stop, { once: true })
    }),
}
