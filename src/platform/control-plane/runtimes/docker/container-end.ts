import { setTimeout as sleep } from 'node:timers/promises'
import type { Container, ContainerInspectInfo } from 'dockerode'
import type { ProcessExit } from '../runtime.ts'
import { type Engine, isAway, reasonOf, statusOf } from './engine.ts'

/** A wait is asked anew after this: a connection may be dead without a word. */
const WAIT_MS = 60_000
const PAUSE_MS = 1000
/** What an engine may take for an end beyond the grace, and how long one that is away is waited for then. */
const SLACK_MS = 20_000

/** How a container ended. */
export interface ContainerEnd extends ProcessExit {
  readonly outOfMemory: boolean
}

export interface OneContainer {
  readonly engine: Engine
  readonly container: Container
}

/** Settles when the container has ended or is gone; waits through every absence of the engine. Never rejects. */
export async function watchEnd({ engine, container }: OneContainer): Promise<ContainerEnd> {
  for (;;) {
    try {
      const { StatusCode: code } = (await container.wait({ abortSignal: AbortSignal.timeout(WAIT_MS) })) as { StatusCode: number }
      const info = await inspectOrNull({ engine, container }).catch(() => null)
      return { code, signal: null, outOfMemory: info?.State.OOMKilled === true }
    } catch (error) {
      if (statusOf(error) === 404) return { code: null, signal: null, outOfMemory: false }
      // Its own limit; it goes on.
      if (!(error instanceof Error && error.name === 'AbortError')) await sleep(PAUSE_MS)
    }
  }
}

/** Null when there is no such container. */
export async function inspectOrNull({ engine, container }: OneContainer): Promise<ContainerInspectInfo | null> {
  try {
    return await container.inspect(engine.limited())
  } catch (error) {
    if (statusOf(error) === 404) return null
    throw error
  }
}

/**
 * Ends a container in order, with what `graceMs` gives it, and removes it with all that it wrote.
 * @throws {Error} when the engine stays away or refuses.
 */
export async function endContainer({ engine, container, graceMs }: OneContainer & { graceMs: number }): Promise<void> {
  const killAt = Date.now() + graceMs
  const attempt = async () => {
    const left = killAt - Date.now()
    if (left > 0) await stop(container, left)
    await remove({ engine, container })
  }
  for (;;) {
    try {
      await attempt()
      return
    } catch (error) {
      if (!isAway(error) || Date.now() > killAt + SLACK_MS) {
        throw new Error(`the container ${container.id} could not be removed: ${reasonOf(error)}`, { cause: error })
      }
      await sleep(PAUSE_MS)
    }
  }
}

async function stop(container: Container, graceMs: number): Promise<void> {
  try {
    await container.stop({ t: Math.ceil(graceMs / 1000), abortSignal: AbortSignal.timeout(graceMs + SLACK_MS) })
  } catch (error) {
    // Whatever it is that keeps it from stopping in order (it has ended, it never started): it is removed by force.
    if (isAway(error)) throw error
  }
}

async function remove({ engine, container }: OneContainer): Promise<void> {
  try {
    await container.remove({ force: true, v: true, ...engine.limited() })
  } catch (error) {
    // Gone, or going: somebody else removes it at the same moment.
    if (statusOf(error) !== 404 && statusOf(error) !== 409) throw error
  }
}
