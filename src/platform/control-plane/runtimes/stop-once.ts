import type { AgentProcess } from './runtime.ts'

/** The way to stop an agent, and whether it was taken. */
export interface Stopping {
  readonly stop: AgentProcess['stop']
  /** True from the first call on, until it fails. */
  isStopping(): boolean
}

/** Stops an agent once, however often it is asked; after a stop that failed, the next call tries again. */
export function stopOnce(stop: (graceMs: number) => Promise<void>): Stopping {
  let stopping: Promise<void> | undefined
  return {
    stop: ({ graceMs }) => {
      stopping ??= stop(graceMs).catch((error: Error) => {
        stopping = undefined
        throw error
      })
      return stopping
    },
    isStopping: () => stopping !== undefined,
  }
}
