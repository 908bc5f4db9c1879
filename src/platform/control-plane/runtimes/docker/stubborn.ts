import { setTimeout as sleep } from 'node:timers/promises'
import type { BuildLog } from '../../build-log.ts'
import { StartFailure } from '../runtime.ts'
import { type Engine, isAway, reasonOf } from './engine.ts'

const PAUSE_MS = 1000

/**
 * Asks an engine until it answers: one that is restarted is away for a moment, and that is nobody's failure.
 * @throws {StartFailure} when the signal ends the wait; what the engine answers, when that is an error.
 */
export async function askStubbornly<T>(
  ask: () => Promise<T>,
  { engine, log, signal }: { engine: Engine; log: BuildLog; signal: AbortSignal },
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    let reason: string
    try {
      return await ask()
    } catch (error) {
      if (!isAway(error)) throw error
      reason = reasonOf(error)
    }
    if (attempt === 1) log.write('WARNING', `The container engine at ${engine.name} does not answer; trying again: ${reason}`)
    await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) throw new StartFailure(`The container engine at ${engine.name} did not answer: ${reason}.`)
  }
}
