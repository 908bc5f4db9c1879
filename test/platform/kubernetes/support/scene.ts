import { afterEach } from 'vitest'
import { createKubernetesRuntime } from '../../../../src/platform/control-plane/runtimes/kubernetes/kubernetes.ts'
import type { ImageStart, Runtime, StartEffects } from '../../../../src/platform/control-plane/runtimes/runtime.ts'
import { memoryLog, type MemoryLog } from '../../support/memory-log.ts'
import { type ClusterDouble, startClusterDouble } from './cluster-double.ts'

export const INSTALLATION = '8f6f7a55-0d0f-4b4e-9f1f-0a4c9f7f5a10'

const open: ClusterDouble[] = []

afterEach(async () => {
  const ended = open.splice(0)
  await Promise.all(ended.map((double) => double.close()))
  // Whatever a test is about: nothing was asked that a real API server would refuse for its form.
  const faults = ended.flatMap((double) => double.faults)
  if (faults.length > 0) throw new Error(faults.join('\n'))
})

/** A cluster that ends with the test. */
export async function cluster(options: Parameters<typeof startClusterDouble>[0] = {}): Promise<ClusterDouble> {
  const double = await startClusterDouble(options)
  open.push(double)
  return double
}

export function runtimeOn(
  { env }: ClusterDouble,
  { installationId = INSTALLATION, pageSize = 250, more = {} } = {},
): Runtime<ImageStart> {
  return createKubernetesRuntime({ env: { ...env, ...more }, installationId, pollMs: 20, pageSize })
}

export interface HeardEffects extends StartEffects {
  readonly log: MemoryLog
  readonly images: string[]
}

export function effectsOf({ signal = new AbortController().signal, timeoutMs = 20_000 } = {}): HeardEffects {
  const images: string[] = []
  return { log: memoryLog(), signal, timeoutMs, images, onImage: (image) => void images.push(image) }
}
