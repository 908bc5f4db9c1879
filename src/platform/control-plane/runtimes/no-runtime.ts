import { type Runtime, StartFailure } from './runtime.ts'

/** The runtime of a source that this platform cannot run, with the reason: one sentence without a full stop. */
export function createNoRuntime(reason: string): Runtime<unknown> {
  return {
    unavailable: async () => reason,
    start: async () => {
      throw new StartFailure(`The agent cannot be started: ${reason}.`)
    },
    endStray: async () => false,
    list: async () => [],
  }
}
