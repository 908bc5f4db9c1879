import type { V1Pod } from '@kubernetes/client-node'
import type { Cluster } from './cluster.ts'
import { oneLine } from './cluster-error.ts'
import type { Place } from './names.ts'
import type { Rollout } from './rollout.ts'

const EVENTS_MAX = 200

/** Said again and again, in fewer words than what came before it. */
const ECHO = /^(Error: |Back-off )/

/** What the cluster warns of about a pod, the latest last. Empty when it does not tell. */
async function readWarnings({ cluster, place }: { cluster: Cluster; place: Place }, { metadata }: V1Pod): Promise<string[]> {
  try {
    const fieldSelector = `involvedObject.uid=${metadata?.uid ?? ''},type=Warning`
    const { items } = await cluster.core.listNamespacedEvent({ namespace: place.namespace, fieldSelector, limit: EVENTS_MAX })
    return items.toSorted((a, b) => timeOf(a) - timeOf(b)).map(({ message }) => message ?? '')
  } catch {
    // It only adds to what is known.
    return []
  }
}

/** The last thing that the cluster warns of about the agent's pods, as a sentence after a space; empty when there is none. */
export async function warningsOf(where: { cluster: Cluster; place: Place }, { pods }: Rollout): Promise<string> {
  for (const pod of pods) {
    const last = (await readWarnings(where, pod)).findLast((message) => message !== '' && !ECHO.test(message))
    if (last !== undefined) return ` The cluster says: ${oneLine(last)}.`
  }
  return ''
}

/** What the registry said to the node of a pod, when the pod itself no longer says it. */
export async function readPullTrouble(where: { cluster: Cluster; place: Place }, pod: V1Pod): Promise<string | null> {
  const said = (await readWarnings(where, pod)).map((message) => /^Failed to pull image "[^"]*": (.+)$/s.exec(message)?.[1])
  return said.findLast((message) => message !== undefined) ?? null
}

function timeOf({ lastTimestamp, eventTime }: { lastTimestamp?: Date | null; eventTime?: Date | null }): number {
  return new Date(lastTimestamp ?? eventTime ?? 0).getTime()
}
