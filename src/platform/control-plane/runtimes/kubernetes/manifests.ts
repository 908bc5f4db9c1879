import type {
  V1Container,
  V1Deployment,
  V1OwnerReference,
  V1PodSpec,
  V1Probe,
  V1Secret,
  V1Service,
} from '@kubernetes/client-node'
import { parseImageName } from '../../../../contract/image.ts'
import { environmentOf, portOf } from '../image-environment.ts'
import { FETCH_LIMIT_MS, type ImageStart } from '../runtime.ts'
import { CONTAINER, LABELS, labelsOf, type Place } from './names.ts'
import type { ClusterResources } from './resources.ts'
import type { KubernetesSettings } from './settings.ts'

/** The longest grace that an agent can be given when it is stopped; one that is idle ends at once. */
export const GRACE_MAX_SECONDS = 15 * 60

/** What an entry point needs that prepares its folders as root and goes on as another user. Nothing else is left. */
const CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID', 'KILL', 'NET_BIND_SERVICE']

const PROBE_SECONDS = 5
const STARTUP_SLACK_SECONDS = 30

export interface ManifestPlan {
  readonly request: ImageStart
  readonly place: Place
  readonly installationId: string
  readonly settings: Pick<KubernetesSettings, 'pullSecrets' | 'nodeHost' | 'runAsUser'>
  readonly resources: ClusterResources
  /** Until the agent must answer, from the moment in which its image is there. */
  readonly timeoutMs: number
}

/** Runs the agent. Of its environment it has no more than the name of the Secret. */
export function deploymentManifest(plan: ManifestPlan): V1Deployment {
  const { request, place, installationId, resources, timeoutMs } = plan
  const labels = labelsOf(request, installationId)
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: place.name, namespace: place.namespace, labels },
    spec: {
      replicas: resources.replicas,
      revisionHistoryLimit: 0,
      progressDeadlineSeconds: Math.ceil((FETCH_LIMIT_MS + timeoutMs) / 1000),
      selector: { matchLabels: { [LABELS.agent]: request.agentId } },
      template: {
        metadata: { labels: { ...resources.labels, ...labels }, annotations: { ...resources.annotations } },
        spec: podSpec(plan),
      },
    },
  }
}

function podSpec(plan: ManifestPlan): V1PodSpec {
  const { resources, settings } = plan
  const pullSecrets = [...new Set([...settings.pullSecrets, ...resources.pullSecrets.map(({ name }) => name ?? '')])]
  return {
    containers: [container(plan)],
    terminationGracePeriodSeconds: GRACE_MAX_SECONDS,
    // Agents have no business with the cluster's API, and other Services' addresses must not get into their environment.
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    ...(resources.serviceAccountName === null ? {} : { serviceAccountName: resources.serviceAccountName }),
    ...(pullSecrets.length === 0 ? {} : { imagePullSecrets: pullSecrets.map((name) => ({ name })) }),
    securityContext: { seccompProfile: { type: 'RuntimeDefault' }, ...userOf(settings.runAsUser) },
  }
}

function userOf(user: number | null): { runAsNonRoot?: boolean; runAsUser?: number; runAsGroup?: number; fsGroup?: number } {
  return user === null ? {} : { runAsNonRoot: true, runAsUser: user, runAsGroup: user, fsGroup: user }
}

function container({ request, place, settings, resources, timeoutMs }: ManifestPlan): V1Container {
  const port = portOf(request)
  const ok: V1Probe = { httpGet: { path: '/ok', port }, timeoutSeconds: PROBE_SECONDS }
  return {
    name: CONTAINER,
    image: request.imageUri,
    // A tag may have moved; a digest cannot.
    imagePullPolicy: parseImageName(request.imageUri).digest === null ? 'Always' : 'IfNotPresent',
    ports: [{ name: 'http', containerPort: port, protocol: 'TCP' }],
    envFrom: [{ secretRef: { name: place.name } }],
    resources: resources.resources,
    // Until it has answered once, it is the platform's limit that ends it first, and says why.
    startupProbe: { ...ok, periodSeconds: 1, failureThreshold: Math.ceil(timeoutMs / 1000) + STARTUP_SLACK_SECONDS },
    readinessProbe: { ...ok, periodSeconds: PROBE_SECONDS, failureThreshold: 3 },
    livenessProbe: { ...ok, periodSeconds: 2 * PROBE_SECONDS, failureThreshold: 6 },
    securityContext: {
      allowPrivilegeEscalation: false,
      privileged: false,
      capabilities: { drop: ['ALL'], ...(settings.runAsUser === null ? { add: CAPABILITIES } : {}) },
    },
    // The end of its output stands in the pod's status when it fails, wherever its log is by then.
    terminationMessagePolicy: 'FallbackToLogsOnError',
  }
}

/** The whole environment of the agent. Removed by the cluster together with its owner. */
export function secretManifest({ request, place, installationId }: ManifestPlan, owner: V1OwnerReference): V1Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...place, labels: labelsOf(request, installationId), ownerReferences: [owner] },
    type: 'Opaque',
    immutable: true,
    stringData: environmentOf(request),
  }
}

/** The address of the agent: within the cluster, or at every node's own address as well. */
export function serviceManifest({ request, place, installationId, settings }: ManifestPlan, owner: V1OwnerReference): V1Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...place, labels: labelsOf(request, installationId), ownerReferences: [owner] },
    spec: {
      type: settings.nodeHost === null ? 'ClusterIP' : 'NodePort',
      selector: { [LABELS.agent]: request.agentId },
      ports: [{ name: 'http', port: portOf(request), targetPort: 'http', protocol: 'TCP' }],
    },
  }
}

/** Names the Deployment as the owner of something. */
export function ownerOf(deployment: V1Deployment): V1OwnerReference {
  return { apiVersion: 'apps/v1', kind: 'Deployment', name: deployment.metadata?.name ?? '', uid: deployment.metadata?.uid ?? '' }
}
