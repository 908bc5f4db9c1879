/** What the work gives, or the signal's reason as soon as it aborts, however long the work goes on: no fetch may hold the step for longer. */
export async function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort)
  try {
    // A failure of whichever comes second is handled by the race, and nobody's any more.
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
