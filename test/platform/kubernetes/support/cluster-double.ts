import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'
import { type ApiRequest, type ApiServer, startApiServer } from './api-server.ts'
import { createObjects, now, type Objects, type Stored } from './objects.ts'
import { kubeconfigOf } from './kubeconfig.ts'
import { comesUp, type PodActs, podActs } from './pod-acts.ts'
import { createPodLogBook } from './pod-logs.ts'

export type AgentHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  agent: { env: Record<string, string>; pod: Stored },
) => void

export interface ClusterDouble extends ApiServer {
  readonly objects: Objects
  /** For a platform that runs outside of this cluster. */
  readonly env: Record<string, string>
  /** What happens to each new pod. Default: it comes up. */
  behaviour: (acts: PodActs, pod: Stored) => void
  /** What answers for the agents. */
  agent: AgentHandler
  /** How long a pod takes to end after it was told to; it never takes longer than its grace. */
  endsAfterMs: number
  /** Why the cluster makes no pods. */
  quota: string | null
  pods(): Stored[]
  acts(pod: Stored): PodActs
  /** All that is there of agents: empty when nothing is left. */
  left(): string[]
  /** Namespaces in which the platform has no rights at all. */
  readonly denied: Set<string>
  /** What the example Role allows, as `used` tells it. */
  granted(): string[]
  /** The requests that came, each kind once: `create deployments`. */
  used(): string[]
}

const RIGHTS = path.join(import.meta.dirname, '../../../../examples/kubernetes/rights.yaml')

interface Rule {
  readonly apiGroups: string[]
  readonly resources: string[]
  readonly verbs: string[]
}

/**
 * A cluster with one API server, its controllers and its kubelets as far as an agent's life needs them. The platform has the rights of
 * the example Role, and no others.
 */
export async function startClusterDouble({
  namespaces = ['agents'],
  tls,
}: {
  namespaces?: readonly string[]
  tls?: { key: string; cert: string; ca: string; clientKey: string; clientCert: string }
} = {}): Promise<ClusterDouble> {
  const objects = createObjects()
  const logs = createPodLogBook()
  const rules = parseAllDocuments(readFileSync(RIGHTS, 'utf8'))
    .map((document) => (document as { toJS(): { kind: string; rules?: Rule[] } }).toJS())
    .flatMap((document) => (document.kind === 'Role' ? (document.rules ?? []) : []))
  const grants = ({ group, resource, verb, namespace }: ApiRequest) =>
    namespaces.includes(namespace) &&
    rules.some((rule) => rule.apiGroups.includes(group) && rule.resources.includes(resource) && rule.verbs.includes(verb))
  const denied = new Set<string>()
  const timers = new Set<NodeJS.Timeout>()
  const doors = new Map<string, Server>()
  const later = (ms: number, work: () => void) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      work()
    }, ms)
    timers.add(timer)
  }
  const acts = (pod: Stored) => podActs({ pod, objects, logs, later })
  const server = await startApiServer({
    objects,
    namespaces,
    // Where a namespace is missing the cluster says so, whoever asks.
    allowed: (asked) => !denied.has(asked.namespace) && (grants(asked) || !namespaces.includes(asked.namespace)),
    onLog: (pod, query, response) => logs.answer(pod, query, response),
    onCreate: async (collection, object) => {
      if (collection === 'deployments') later(5, () => makePods(object))
      if (collection === 'services') await openDoor(object)
      const [owner] = object.metadata.ownerReferences ?? []
      if (owner !== undefined) later(5, () => collectOrphan(collection, object, owner.uid))
    },
    onDelete: (collection, object, { propagation, graceSeconds }) => {
      if (collection === 'pods') return endPod(object, graceSeconds)
      if (collection !== 'deployments') return objects.remove(collection, object)
      if (propagation !== 'Foreground') {
        objects.remove(collection, object)
        return collect(object)
      }
      object.metadata.deletionTimestamp ??= now()
      objects.touch(collection, object)
      collect(object)
    },
    tls,
  })

  /** Makes what has lost its owner go, as the garbage collector does: some time later. */
  const collect = (owner: Stored) =>
    later(15, () => {
      const pods = podsOf(owner)
      for (const pod of pods) if (pod.metadata.deletionTimestamp === undefined) endPod(pod, null)
      if (pods.length > 0) return collect(owner)
      objects.remove('deployments', owner)
      for (const collection of ['secrets', 'services']) {
        for (const object of objects.all(collection)) {
          if (object.metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid) !== true) continue
          objects.remove(collection, object)
          doors.get(object.metadata.uid)?.close()
        }
      }
    })

  /** What names an owner that is no longer there goes as well. */
  const collectOrphan = (collection: string, object: Stored, uid: string) => {
    if (objects.all('deployments').some(({ metadata }) => metadata.uid === uid)) return
    objects.remove(collection, object)
    doors.get(object.metadata.uid)?.close()
  }

  const podsOf = ({ spec }: Stored) => {
    const entries = Object.entries(spec.selector.matchLabels as Record<string, string>)
    return objects.all('pods').filter(({ metadata }) => entries.every(([key, value]) => metadata.labels?.[key] === value))
  }

  const makePods = (deployment: Stored) => {
    if (double.quota !== null) {
      const conditions = [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: double.quota }]
      deployment.status = { observedGeneration: 1, conditions }
      return objects.touch('deployments', deployment)
    }
    const { template, replicas } = deployment.spec
    const living = podsOf(deployment).filter(({ status }) => status?.phase !== 'Failed')
    for (let index = living.length; index < replicas; index += 1) {
      const { namespace, name } = deployment.metadata
      const metadata = {
        ...template.metadata,
        namespace,
        name: `${name}-${randomBytes(5).toString('hex')}-${randomBytes(3).toString('hex').slice(0, 5)}`,
      }
      const pod = objects.add('pods', {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata,
        spec: template.spec,
        status: { phase: 'Pending' },
      })
      double.behaviour(acts(pod), pod)
    }
  }

  const endPod = (pod: Stored, graceSeconds: number | null) => {
    const grace = graceSeconds ?? (pod.spec.terminationGracePeriodSeconds as number)
    const { metadata } = pod
    const first = metadata.deletionTimestamp === undefined
    // A grace can be made shorter, and not longer.
    if (!first && grace >= (metadata.deletionGracePeriodSeconds ?? 0)) return
    metadata.deletionTimestamp ??= now()
    metadata.deletionGracePeriodSeconds = grace
    objects.touch('pods', pod)
    const gone = () => {
      logs.end(pod)
      objects.remove('pods', pod)
    }
    if (first) later(Math.min(double.endsAfterMs, grace * 1000), gone)
    else later(grace * 1000, gone)
  }

  /** A node port: answers while a pod of the Service is ready. */
  const openDoor = async (service: Stored) => {
    const door = createServer((request, response) => {
      const pod = podsOf({ ...service, spec: { selector: { matchLabels: service.spec.selector } } }).find(isReady)
      if (pod === undefined) return void request.socket.destroy()
      // What it has not answered by then goes with it.
      const leave = objects.onChange(({ type, object }) => {
        const ended = object.status?.containerStatuses?.[0]?.state.terminated !== undefined
        if (object.metadata.uid === pod.metadata.uid && (type === 'DELETED' || ended)) response.destroy()
      })
      response.once('close', leave)
      double.agent(request, response, { env: environmentOf(objects, pod), pod })
    })
    doors.set(service.metadata.uid, door)
    await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve))
    if (service.spec.type === 'NodePort') service.spec.ports[0].nodePort = (door.address() as AddressInfo).port
  }

  // Whatever changes a pod changes what its Deployment counts.
  objects.onChange(({ collection, object }) => {
    if (collection !== 'pods') return
    for (const deployment of objects.all('deployments')) {
      const pods = podsOf(deployment)
      const lost = object.status?.phase === 'Failed' && pods.some(({ metadata }) => metadata.uid === object.metadata.uid)
      if (lost) later(5, () => makePods(deployment))
      if (!pods.some(({ metadata }) => metadata.uid === object.metadata.uid) && deployment.status === undefined) continue
      const availableReplicas = pods.filter(isReady).length
      if (deployment.status?.availableReplicas === availableReplicas) continue
      const replicas = pods.length
      const counts = { replicas, updatedReplicas: replicas, readyReplicas: availableReplicas, availableReplicas }
      deployment.status = { ...deployment.status, observedGeneration: 1, ...counts }
      objects.touch('deployments', deployment)
    }
  })

  const folder = mkdtempSync(path.join(tmpdir(), 'cluster-double-'))
  const kubeconfig = path.join(folder, 'config')
  writeFileSync(kubeconfig, JSON.stringify(kubeconfigOf(server.url, { namespace: namespaces[0] ?? 'default', tls })))
  const double: ClusterDouble = {
    ...server,
    objects,
    env: { KUBECONFIG: kubeconfig, PLATFORM_KUBERNETES_NODE_HOST: '127.0.0.1' },
    behaviour: (one) => comesUp(one, later),
    agent: answersOk,
    endsAfterMs: 20,
    quota: null,
    pods: () => objects.all('pods'),
    acts,
    left: () =>
      ['deployments', 'pods', 'secrets', 'services'].flatMap((collection) =>
        objects.all(collection).map(({ metadata }) => `${collection}/${metadata.name}`),
      ),
    denied,
    granted: () =>
      rules
        .flatMap(({ resources, verbs }) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)))
        .toSorted(),
    used: () => [...new Set(server.requests.map(({ verb, resource }) => `${verb} ${resource}`))].toSorted(),
    close: async () => {
      for (const timer of timers) clearTimeout(timer)
      for (const door of doors.values()) {
        door.close()
        door.closeAllConnections()
      }
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return double
}

const answersOk: AgentHandler = ({ url }, response, { env }) => {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify(url === '/ok' ? { ok: true } : { revision: env['LANGSMITH_HOST_REVISION_ID'] }))
}

function isReady({ metadata, status }: Stored): boolean {
  return metadata.deletionTimestamp === undefined && status?.containerStatuses?.[0]?.ready === true
}

/** What the kubelet gives the container: the Secret that the pod names. */
function environmentOf(objects: Objects, { metadata, spec }: Stored): Record<string, string> {
  const sources = spec.containers[0].envFrom as { secretRef: { name: string } }[]
  return Object.fromEntries(
    sources.flatMap(({ secretRef }) => {
      const { data = {} } = objects.get('secrets', { namespace: metadata.namespace, name: secretRef.name }) ?? {}
      return Object.entries(data).map(([name, value]) => [name, Buffer.from(value, 'base64').toString('utf8')])
    }),
  )
}
