import { setTimeout as sleep } from 'node:timers/promises'
import { type ImageStart, type Runtime, type SeenAgent, StartFailure } from '../runtime.ts'
import type { Cluster } from './cluster.ts'
import { isAway, LoginFailure, reasonOf, statusOf } from './cluster-error.ts'
import { endAgent, readDeployment } from './end-agent.ts'
import { LABELS, nameOf, placeOf, referenceOf } from './names.ts'
import { clusterResources } from './resources.ts'
import {
  type KubernetesEnvironment,
  type KubernetesSettings,
  KubernetesSettingsError,
  readKubernetesSettings,
} from './settings.ts'
import { startAgent } from './start-agent.ts'

const STRAY_GRACE_MS = 3000
/** An API that answered this short a while ago is only away for a moment. */
const MOMENT_MS = 10 * 60_000
const PAUSE_MS = 1000
const PAGE = 250

export interface KubernetesRuntimeOptions {
  readonly env: KubernetesEnvironment
  /** Tells its Deployments from those of other platforms in the same cluster. */
  readonly installationId: string
  /** Between two questions whether the agent answers. */
  readonly pollMs?: number
  /** Of one page of a list. */
  readonly pageSize?: number
}

/**
 * Runs each agent as a Deployment of a cluster, with a Secret that has its environment and a Service that it is reached at.
 * @throws {KubernetesSettingsError} when a `PLATFORM_KUBERNETES_…` variable makes no sense.
 */
export function createKubernetesRuntime(options: KubernetesRuntimeOptions): Runtime<ImageStart> {
  const { env, installationId, pollMs = 100, pageSize = PAGE } = options
  const settings = readKubernetesSettings(env)
  let opened: Promise<Cluster> | undefined
  let seenAt = Number.NEGATIVE_INFINITY

  /** Its client is large: who has no cluster does not load it. */
  const open = () => {
    opened ??= import('./cluster.ts').then(({ openCluster }) => openCluster(env))
    opened.catch(() => {
      // The file may be there the next time.
      opened = undefined
    })
    return opened
  }

  /** @throws when the API does not answer. */
  const judgeRights = async (): Promise<string | null> => {
    const cluster = await open()
    const namespace = defaultNamespace(settings, cluster)
    try {
      if (await mayCreate(cluster, namespace)) return null
    } catch (error) {
      if (error instanceof LoginFailure) {
        throw new Error(`there is no login to the cluster at ${cluster.name}: ${error.message}`, { cause: error })
      }
      if (isAway(error)) throw new Error(`no cluster answers at ${cluster.name} (${reasonOf(error)})`, { cause: error })
      // Who may not ask about rights may have them.
      return statusOf(error) === 403
        ? null
        : `the cluster at ${cluster.name} does not take the platform's requests: ${reasonOf(error)}`
    }
    const advice = 'give its account the rights of examples/kubernetes/rights.yaml'
    return `the cluster at ${cluster.name} does not let this platform create Deployments in the namespace ${namespace}: ${advice}`
  }

  return {
    async unavailable() {
      for (let attempt = 1; ; attempt += 1) {
        try {
          const reason = await judgeRights()
          seenAt = Date.now()
          return reason
        } catch (error) {
          const isMoment = Date.now() - seenAt < MOMENT_MS && !(error instanceof KubernetesSettingsError)
          if (isMoment) return null
          if (attempt === 2 || error instanceof KubernetesSettingsError) return (error as Error).message
          await sleep(PAUSE_MS)
        }
      }
    },

    async start(request, effects) {
      effects.signal.throwIfAborted()
      try {
        const cluster = await open()
        const place = { namespace: namespaceFor(request, { settings, cluster }), name: nameOf(request) }
        const resources = clusterResources(request.resources, effects.log)
        const plan = { request, place, installationId, settings, resources, timeoutMs: effects.timeoutMs }
        return await startAgent({ ...plan, cluster, effects, pollMs })
      } catch (error) {
        effects.signal.throwIfAborted()
        const failure =
          error instanceof KubernetesSettingsError ? new StartFailure(`The agent cannot be started: ${error.message}.`) : error
        if (failure instanceof StartFailure) effects.log.write('ERROR', failure.message)
        throw failure
      }
    },

    async endStray(reference) {
      const place = placeOf(reference)
      if (place === null) return false
      const cluster = await open()
      const labels = (await readDeployment(cluster, place))?.metadata?.labels
      const agentId = labels?.[LABELS.agent]
      if (agentId === undefined || labels?.[LABELS.installation] !== installationId) return false
      await endAgent({ cluster, place, agentId, graceMs: STRAY_GRACE_MS })
      return true
    },

    async list() {
      try {
        const cluster = await open()
        const namespaces = settings.namespaces.length > 0 ? settings.namespaces : [cluster.namespace]
        const found: SeenAgent[] = []
        for (const namespace of namespaces) found.push(...(await listNamespace(cluster, { namespace, installationId, pageSize })))
        return found
      } catch (error) {
        // Looked at again: it is no news here that there is no cluster.
        if (isAway(error) || error instanceof KubernetesSettingsError) return []
        throw new Error(`the agents in the cluster cannot be listed: ${reasonOf(error)}`, { cause: error })
      }
    },
  }
}

function defaultNamespace(settings: KubernetesSettings, cluster: Cluster): string {
  return settings.namespaces[0] ?? cluster.namespace
}

/** @throws {StartFailure} for a namespace that is not the platform's to use. */
function namespaceFor(
  { listenerConfig }: ImageStart,
  { settings, cluster }: { settings: KubernetesSettings; cluster: Cluster },
): string {
  const wanted = listenerConfig?.k8s_namespace || defaultNamespace(settings, cluster)
  const allowed = settings.namespaces.length > 0 ? settings.namespaces : [cluster.namespace]
  if (allowed.includes(wanted)) return wanted
  const advice = `it may use ${allowed.join(', ')} (PLATFORM_KUBERNETES_NAMESPACES)`
  throw new StartFailure(`The agent is to run in the namespace '${wanted}', which this platform does not use: ${advice}.`)
}

/** Whether the cluster would let this platform start something: asked of the cluster itself. */
async function mayCreate({ authorization }: Cluster, namespace: string): Promise<boolean> {
  const resourceAttributes = { namespace, verb: 'create', group: 'apps', resource: 'deployments' }
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec: { resourceAttributes } }
  const { status } = await authorization.createSelfSubjectAccessReview({ body })
  return status?.allowed === true
}

async function listNamespace(
  cluster: Cluster,
  { namespace, installationId, pageSize }: { namespace: string; installationId: string; pageSize: number },
): Promise<SeenAgent[]> {
  const labelSelector = `${LABELS.installation}=${installationId}`
  const found: SeenAgent[] = []
  let next: string | undefined
  do {
    const page = await cluster.apps.listNamespacedDeployment({
      namespace,
      labelSelector,
      limit: pageSize,
      ...(next === undefined ? {} : { _continue: next }),
    })
    for (const { metadata } of page.items) {
      const agentId = metadata?.labels?.[LABELS.agent]
      // What is being deleted ends by itself.
      if (agentId === undefined || metadata?.deletionTimestamp !== undefined) continue
      found.push({ agentId, reference: referenceOf({ namespace, name: metadata?.name ?? '' }) })
    }
    next = page.metadata?._continue || undefined
  } while (next !== undefined)
  return found
}
