import { setTimeout as sleep } from 'node:timers/promises'
import { type ImageStart, type Runtime, StartFailure } from '../runtime.ts'
import { LABELS } from './container.ts'
import { endContainer, inspectOrNull } from './container-end.ts'
import { type Engine, type EngineEnvironment, isAway, ping } from './engine.ts'
import { fetchImage } from './image.ts'
import { startContainer } from './start-container.ts'

const STRAY_GRACE_MS = 3000
/** An engine that answered this short a while ago is only away for a moment. */
const MOMENT_MS = 10 * 60_000
const PAUSE_MS = 1000
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export interface DockerRuntimeOptions {
  readonly engine: Engine
  /** Tells its containers from those of other platforms on the same engine. */
  readonly installationId: string
  readonly env: EngineEnvironment
  /** Between two questions whether the agent answers. */
  readonly pollMs?: number
}

/** Runs each agent as a container of an engine with the Docker API. */
export function createDockerRuntime({ engine, installationId, env, pollMs = 100 }: DockerRuntimeOptions): Runtime<ImageStart> {
  const { docker } = engine
  let seenAt = Number.NEGATIVE_INFINITY
  const ours = JSON.stringify({ label: [`${LABELS.installation}=${installationId}`] })

  return {
    async unavailable() {
      let reason = await ping(engine)
      if (reason !== null && Date.now() - seenAt > MOMENT_MS) {
        await sleep(PAUSE_MS)
        reason = await ping(engine)
        if (reason !== null)
          return `no container engine answers at ${engine.name} (${reason}): start one there, or name another by DOCKER_HOST`
      }
      if (reason === null) seenAt = Date.now()
      return null
    },

    async start(request, effects) {
      const { log, signal, timeoutMs, onImage } = effects
      signal.throwIfAborted()
      try {
        const image = await fetchImage({ engine, uri: request.imageUri, env, log, signal })
        onImage?.(image.exactUri)
        const limit = AbortSignal.timeout(timeoutMs)
        const either = AbortSignal.any([signal, limit])
        try {
          return await startContainer({ engine, request, image, installationId, env, log, signal: either, pollMs })
        } catch (error) {
          if (!limit.aborted || error instanceof StartFailure) throw error
          throw new StartFailure(`The agent did not answer GET /ok within ${timeoutMs / 1000} s.`)
        }
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof StartFailure)) throw error
        log.write('ERROR', error.message)
        throw error
      }
    },

    async endStray(reference) {
      const [, id] = /^docker:([0-9a-f]{64})$/.exec(reference) ?? []
      if (id === undefined) return false
      const container = docker.getContainer(id)
      const info = await inspectOrNull({ engine, container })
      if (info === null || info.Config.Labels[LABELS.installation] !== installationId) return false
      await endContainer({ engine, container, graceMs: STRAY_GRACE_MS })
      return true
    },

    async list() {
      try {
        const containers = await docker.listContainers({ all: true, filters: ours, ...engine.limited() })
        return containers.flatMap(({ Id, Labels }) => {
          const agentId = Labels[LABELS.agent]
          return agentId === undefined || !UUID.test(agentId) ? [] : [{ agentId, reference: `docker:${Id}` }]
        })
      } catch (error) {
        // Looked at again: it is no news here that there is no engine.
        if (isAway(error)) return []
        throw error
      }
    },
  }
}
