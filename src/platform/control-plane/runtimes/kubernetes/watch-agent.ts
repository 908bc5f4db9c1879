import type { V1Deployment, V1Pod } from '@kubernetes/client-node'
import type { BuildLog } from '../../build-log.ts'
import { writeAgentLine } from '../agent-log.ts'
import { createTail } from '../lines.ts'
import { describeExit } from '../process-group.ts'
import type { ProcessExit } from '../runtime.ts'
import type { Cluster } from './cluster.ts'
import { isAway } from './cluster-error.ts'
import { readPullTrouble } from './events.ts'
import { followObjects } from './follow.ts'
import { type Place, selectorOf } from './names.ts'
import { createPodLogs } from './pod-log.ts'
import { agentOf, exitOf, pullTroubleOf, type Rollout } from './rollout.ts'

const OUTPUT_LINES = 30

export interface AgentWatch {
  /** What is known at present; null before the cluster has told. */
  readonly rollout: () => Rollout | null
  /** Settles at the next news. */
  readonly news: () => Promise<void>
  /** Why nothing is heard; null while the cluster tells. */
  readonly trouble: () => unknown
  /** Settles when its Deployment is deleted, by whomever; an API that is away says nothing. Never rejects. */
  readonly exited: Promise<ProcessExit>
  /** The end of what it printed. */
  readonly tail: () => string[]
  /** Says in the log when a container ends and the cluster starts it again. */
  readonly tellRestarts: () => void
  /** Reads what is left of the logs, and hears no more. */
  readonly close: () => Promise<void>
}

/** Keeps up with the Deployment and the pods of one agent, and writes what they print to its log. */
export function watchAgent({
  cluster,
  place,
  agentId,
  log,
}: {
  cluster: Cluster
  place: Place
  agentId: string
  log: BuildLog
}): AgentWatch {
  const over = new AbortController()
  const exited = Promise.withResolvers<ProcessExit>()
  const tail = createTail(OUTPUT_LINES)
  const logs = createPodLogs({
    cluster,
    namespace: place.namespace,
    onLine: (line, stream) => tail.push(writeAgentLine(log, line, stream)),
  })
  const pullTroubles = new Map<string, string>()
  const restarts = new Map<string, number>()
  let telling = false
  let deployment: V1Deployment | null | undefined
  let pods: readonly V1Pod[] | undefined
  let trouble: unknown = null
  let news = Promise.withResolvers<void>()

  const tell = () => {
    news.resolve()
    news = Promise.withResolvers()
  }
  const common = {
    cluster,
    signal: over.signal,
    onTrouble: (error: unknown) => {
      trouble = error
      // One that is away is waited for; what it refuses is for whoever waits.
      if (!isAway(error)) tell()
    },
  }
  const seePullTrouble = (pod: V1Pod) => {
    const uid = pod.metadata?.uid ?? ''
    const said = pullTroubleOf(pod)
    if (said !== null && said !== undefined) pullTroubles.set(uid, said)
    if (said !== null || pullTroubles.has(uid)) return
    void readPullTrouble({ cluster, place }, pod).then((found) => {
      if (found === null || pullTroubles.has(uid)) return
      pullTroubles.set(uid, found)
      tell()
    })
  }
  const seeRestarts = (pod: V1Pod) => {
    const { restartCount = 0, lastState, state } = agentOf(pod) ?? {}
    const name = pod.metadata?.name ?? ''
    const before = restarts.get(name) ?? 0
    restarts.set(name, restartCount)
    const ended = lastState?.terminated ?? state?.terminated
    if (!telling || restartCount <= before || ended === undefined) return
    const memory = ended.reason === 'OOMKilled' ? ' (out of memory)' : ''
    log.write('ERROR', `The agent ${describeExit(exitOf(ended))}${memory} in the pod ${name}; the cluster starts it again`)
  }

  void followObjects<V1Deployment>({
    ...common,
    path: `/apis/apps/v1/namespaces/${place.namespace}/deployments`,
    selector: { fieldSelector: `metadata.name=${place.name}` },
    onChange: (found) => {
      trouble = null
      deployment = [...found.values()][0] ?? null
      if (deployment === null || deployment.metadata?.deletionTimestamp !== undefined)
        exited.resolve({ code: null, signal: null })
      tell()
    },
  })
  void followObjects<V1Pod>({
    ...common,
    path: `/api/v1/namespaces/${place.namespace}/pods`,
    selector: { labelSelector: selectorOf(agentId) },
    onChange: (found) => {
      trouble = null
      pods = [...found.values()]
      for (const pod of pods) {
        seePullTrouble(pod)
        seeRestarts(pod)
      }
      logs.see(pods)
      tell()
    },
  })

  return {
    rollout: () => (deployment === undefined || pods === undefined ? null : { deployment, pods, pullTroubles }),
    news: () => news.promise,
    trouble: () => trouble,
    exited: exited.promise,
    tail: () => tail.lines(),
    tellRestarts: () => {
      telling = true
    },
    close: async () => {
      await logs.end()
      over.abort()
    },
  }
}
