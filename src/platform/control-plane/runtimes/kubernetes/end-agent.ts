import { setTimeout as sleep } from 'node:timers/promises'
import type { V1Deployment, V1Pod } from '@kubernetes/client-node'
import type { Cluster } from './cluster.ts'
import { isAway, reasonOf, statusOf } from './cluster-error.ts'
import { type Place, selectorOf } from './names.ts'

const PAUSE_MS = 250
const PAUSE_MAX_MS = 2000
/** What a cluster may take for an end beyond the grace, and how long one that is away is waited for then. */
const SLACK_MS = 30_000
/** The cluster removes the pods of what is deleted by itself; when it has not begun by then, they are deleted one by one. */
const COLLECTOR_MS = 5000

export interface EndOptions {
  readonly cluster: Cluster
  readonly place: Place
  readonly agentId: string
  readonly graceMs: number
}

/** Null when there is no such Deployment. */
export async function readDeployment(cluster: Cluster, place: Place): Promise<V1Deployment | null> {
  try {
    return await cluster.apps.readNamespacedDeployment(place)
  } catch (error) {
    if (statusOf(error) === 404) return null
    throw error
  }
}

/**
 * Deletes a Deployment, and with it all that belongs to it: its pods have `graceMs` to end in order. Resolves when all of it is gone.
 * @throws {Error} when the API stays away or refuses, or a node does not let go of a pod.
 */
export async function endAgent(options: EndOptions): Promise<void> {
  const { cluster, place, graceMs } = options
  const begun = Date.now()
  const shortened = new Set<string>()
  let deleted = false
  let failure: unknown = new Error('its pods did not end in time')
  for (let pause = PAUSE_MS; Date.now() < begun + graceMs + SLACK_MS; pause = Math.min(2 * pause, PAUSE_MAX_MS)) {
    try {
      if (!deleted) {
        await deleteDeployment(cluster, place)
        deleted = true
      }
      if (await isGone(options, { shortened, sinceMs: Date.now() - begun })) return
    } catch (error) {
      failure = error
      if (!isAway(error)) break
    }
    await sleep(pause)
  }
  throw new Error(`the Deployment ${place.namespace}/${place.name} could not be removed: ${reasonOf(failure)}`, {
    cause: failure,
  })
}

/** In the foreground: it is there until its pods are gone, so that no end is lost with a platform that is killed meanwhile. */
async function deleteDeployment(cluster: Cluster, place: Place): Promise<void> {
  try {
    await cluster.apps.deleteNamespacedDeployment({ ...place, propagationPolicy: 'Foreground' })
  } catch (error) {
    if (statusOf(error) !== 404) throw error
  }
}

async function isGone(
  { cluster, place, agentId, graceMs }: EndOptions,
  { shortened, sinceMs }: { shortened: Set<string>; sinceMs: number },
): Promise<boolean> {
  const { items: pods } = await cluster.core.listNamespacedPod({ namespace: place.namespace, labelSelector: selectorOf(agentId) })
  if (pods.length === 0) return (await readDeployment(cluster, place)) === null
  // Never zero: that forgets a pod instead of ending it.
  const graceSeconds = Math.max(1, Math.ceil((graceMs - sinceMs) / 1000))
  for (const pod of pods) {
    const name = pod.metadata?.name ?? ''
    if (shortened.has(name) || !isTooSlow(pod, { graceSeconds, sinceMs })) continue
    await deletePod(cluster, { place: { namespace: place.namespace, name }, graceSeconds })
    shortened.add(name)
  }
  return false
}

/** A pod ends with the grace of its making unless it is told of a shorter one. */
function isTooSlow({ metadata }: V1Pod, { graceSeconds, sinceMs }: { graceSeconds: number; sinceMs: number }): boolean {
  if (metadata?.deletionTimestamp === undefined) return sinceMs > COLLECTOR_MS
  return (metadata.deletionGracePeriodSeconds ?? 0) > graceSeconds
}

async function deletePod(cluster: Cluster, { place, graceSeconds }: { place: Place; graceSeconds: number }): Promise<void> {
  try {
    await cluster.core.deleteNamespacedPod({ ...place, gracePeriodSeconds: graceSeconds })
  } catch (error) {
    if (statusOf(error) !== 404) throw error
  }
}
