import type { Log } from '../../log.ts'
import { createDockerRuntime } from './docker/docker.ts'
import { createDoorway } from './docker/doorway.ts'
import { EngineAddressError, type EngineEnvironment, engineOf } from './docker/engine.ts'
import { createKubernetesRuntime } from './kubernetes/kubernetes.ts'
import { createNoRuntime } from './no-runtime.ts'
import type { ImageStart, Runtime } from './runtime.ts'

export const CONTAINER_RUNTIMES = ['docker', 'kubernetes', 'none'] as const

/** Where images run, and the address by which they reach the platform. */
export interface ImageHosting {
  readonly runtime: Runtime<ImageStart>
  /** Null: there is no way from the agents to the platform. */
  traceUrl(): Promise<string | null>
  stop(): Promise<void>
}

export interface ImageHostingOptions {
  readonly env: EngineEnvironment
  /** Marks what is started, so that it is found again. */
  readonly installationId: string
  /** The platform's address on this machine. */
  readonly platformUrl: string
  readonly log: Log
}

/**
 * The runtime for images that `PLATFORM_CONTAINER_RUNTIME` names: `docker` (the default: an engine with the Docker API, which need not be
 * there yet), `kubernetes` or `none`.
 * @throws {Error} when the variables make no sense.
 */
export function createImageHosting({ env, installationId, platformUrl, log }: ImageHostingOptions): ImageHosting {
  const wanted = env['PLATFORM_CONTAINER_RUNTIME'] || 'docker'
  if (wanted === 'none') return without('this platform has no container host to run images on')
  if (wanted === 'kubernetes') {
    // A cluster reaches this machine by no address that is known here: PLATFORM_TRACES_URL names one.
    return { runtime: createKubernetesRuntime({ env, installationId }), traceUrl: async () => null, stop: async () => undefined }
  }
  if (wanted !== 'docker') {
    throw new Error(`PLATFORM_CONTAINER_RUNTIME is '${wanted}': give ${CONTAINER_RUNTIMES.join(' or ')}`)
  }
  try {
    const engine = engineOf(env)
    const doorway = createDoorway({ engine, env, platformUrl, log })
    return { runtime: createDockerRuntime({ engine, installationId, env }), traceUrl: doorway.url, stop: doorway.close }
  } catch (error) {
    // Set for other programs of this machine, perhaps: whoever deploys an image reads it.
    if (error instanceof EngineAddressError) return without(error.message)
    throw error
  }
}

function without(reason: string): ImageHosting {
  return { runtime: createNoRuntime(reason), traceUrl: async () => null, stop: async () => undefined }
}
