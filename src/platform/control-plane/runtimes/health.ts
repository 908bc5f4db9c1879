import { setTimeout as sleep } from 'node:timers/promises'
import { StartFailure, type ProcessExit } from './runtime.ts'
import { describeExit } from './process-group.ts'

export interface HealthCheck {
  readonly host: string
  readonly port: number
  readonly pollMs: number
  /** Ends the wait with its reason. */
  readonly signal: AbortSignal
  readonly exited: Promise<ProcessExit>
}

/**
 * Asks `GET /ok` until it answers `{"ok":true}`, or asks who is there.
 * @throws {StartFailure} when the process ends first.
 */
export async function waitUntilHealthy({ host, port, pollMs, signal, exited }: HealthCheck): Promise<void> {
  let ended: ProcessExit | undefined
  void exited.then((exit) => {
    ended = exit
  })
  while (!(await isHealthy({ host, port, signal }))) {
    signal.throwIfAborted()
    if (ended !== undefined) throw new StartFailure(`The agent ${describeExit(ended)} before it answered.`)
    await sleep(pollMs, undefined, { signal })
  }
}

/** One question, answered in two seconds or not at all. */
export async function isHealthy({ host, port, signal }: Pick<HealthCheck, 'host' | 'port' | 'signal'>): Promise<boolean> {
  try {
    const response = await fetch(`http://${host}:${port}/ok`, {
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(2000)]),
    })
    if (response.status !== 200) {
      await response.body?.cancel()
      // The JavaScript server puts an agent's own authorisation before this route as well: what judges requests, answers them.
      return response.status === 401 || response.status === 403
    }
    const body = (await response.json()) as { ok?: unknown } | null
    return body?.ok === true
  } catch {
    return false
  }
}
