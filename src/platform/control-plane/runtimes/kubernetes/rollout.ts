import { constants } from 'node:os'
import type { V1ContainerStateTerminated, V1ContainerStatus, V1Deployment, V1Pod } from '@kubernetes/client-node'
import { describeExit } from '../process-group.ts'
import type { ProcessExit } from '../runtime.ts'
import { oneLine } from './cluster-error.ts'
import { CONTAINER } from './names.ts'

/** What is known of an agent in a cluster. */
export interface Rollout {
  /** Null: it is gone, or was never there. */
  readonly deployment: V1Deployment | null
  readonly pods: readonly V1Pod[]
  /** What the registry said last, by the pod's uid: a pod that waits for its next attempt does not repeat it. */
  readonly pullTroubles: ReadonlyMap<string, string>
}

export type Verdict =
  | { readonly state: 'available' }
  /** Its container has not begun: a node is chosen, the image is fetched. */
  | { readonly state: 'fetching' }
  | { readonly state: 'starting' }
  /** It may go on by itself; when it does not, the message says what it waited for. */
  | { readonly state: 'stuck'; readonly patience: 'short' | 'long'; readonly message: string }
  | { readonly state: 'failed'; readonly message: string; readonly ended?: EndedContainer }

/** A container whose log tells why it ended. */
export interface EndedContainer {
  readonly pod: string
  /** It has been started again since: its own log is the previous one. */
  readonly previous: boolean
}

const PULL_REASONS = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
])
const LOGIN = /unauthori[sz]ed|authentication required|authorization failed|denied|forbidden|no basic auth/i
const NO_IMAGE = /not found|manifest unknown|name unknown|no match for platform|no matching manifest|no image found/i
const NO_NAME = /invalid reference|couldn't parse image|invalid image name/i
/** A registry's word that will not change by asking again. */
const REFUSALS = [LOGIN, NO_IMAGE, NO_NAME]
const LOGIN_ADVICE =
  ' Check that the image exists; a secret with the login for its registry is named by image_pull_secrets in resource_spec,' +
  ' or by PLATFORM_KUBERNETES_PULL_SECRETS.'
/** What takes pods away from a node: they are made again elsewhere. */
const MOVED = /^(Evicted|NodeLost|NodeShutdown|NodeAffinity|Shutdown|Terminated|Preempting|Outof\w+|UnexpectedAdmissionError)$/
const FOREIGN_MACHINE = /exec format error/i

/** Judges the start of an agent by what the cluster says of it. */
export function judge({ deployment, pods, pullTroubles }: Rollout): Verdict {
  if (deployment === null) return { state: 'failed', message: "The agent's Deployment was deleted while it started." }
  const present = pods.filter((pod) => pod.metadata?.deletionTimestamp === undefined && !MOVED.test(pod.status?.reason ?? ''))
  const verdicts = present.map((pod) => judgePod(pod, pullTroubles.get(pod.metadata?.uid ?? '')))
  const worst =
    verdicts.find(({ state }) => state === 'failed') ?? refusedPods(deployment) ?? verdicts.find(({ state }) => state === 'stuck')
  if (worst !== undefined) return worst
  if (isAvailable(deployment)) return { state: 'available' }
  const late = condition(deployment, 'Progressing')
  if (late?.status === 'False')
    return { state: 'failed', message: `The cluster gave the agent up: ${oneLine(late.message ?? '')}.` }
  const begun = verdicts.some(({ state }) => state === 'starting')
  return { state: begun ? 'starting' : 'fetching' }
}

function isAvailable({ metadata, spec, status }: V1Deployment): boolean {
  return (
    (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0) && (status?.availableReplicas ?? 0) >= (spec?.replicas ?? 1)
  )
}

function condition({ status }: V1Deployment, type: string) {
  return status?.conditions?.find((one) => one.type === type)
}

/** A quota, or a rule of the namespace, keeps the cluster from making the pods. */
function refusedPods(deployment: V1Deployment): Verdict | undefined {
  const refusal = condition(deployment, 'ReplicaFailure')
  if (refusal?.status !== 'True') return undefined
  const said = oneLine(refusal.message ?? '')
  const message = `The cluster does not make the agent's pod: ${said}.`
  return /forbidden|exceeded quota|is invalid/i.test(said)
    ? { state: 'failed', message }
    : { state: 'stuck', patience: 'short', message }
}

function judgePod(pod: V1Pod, pullTrouble: string | undefined): Verdict {
  const container = agentOf(pod)
  if (container === undefined) return judgePlace(pod)
  const ended = container.state?.terminated ?? container.lastState?.terminated
  if (ended !== undefined) {
    const previous = container.state?.terminated === undefined && container.state?.running !== undefined
    return { state: 'failed', message: describeEnd(ended), ended: { pod: pod.metadata?.name ?? '', previous } }
  }
  if (container.state?.running !== undefined) return { state: 'starting' }
  const { reason = '', message = '' } = container.state?.waiting ?? {}
  if (PULL_REASONS.has(reason)) return judgePull(container, { reason, said: pullTrouble ?? message })
  if (/^Create\w+Error$|^RunContainerError$|^PostStartHookError$/.test(reason)) {
    const sentence = `The cluster does not start the agent's container (${reason}): ${oneLine(message)}.`
    return /runAsNonRoot|non-root/.test(message)
      ? { state: 'failed', message: `${sentence} Give the number of another user by PLATFORM_KUBERNETES_RUN_AS_USER.` }
      : { state: 'stuck', patience: 'short', message: sentence }
  }
  return judgePlace(pod)
}

function judgePlace(pod: V1Pod): Verdict {
  const placed = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (placed?.status !== 'False') return { state: 'fetching' }
  return {
    state: 'stuck',
    patience: 'long',
    message: `The cluster has no place for the agent: ${oneLine(placed.message ?? placed.reason ?? '')}.`,
  }
}

function judgePull({ image }: V1ContainerStatus, { reason, said }: { reason: string; said: string }): Verdict {
  const advice = LOGIN.test(said) ? LOGIN_ADVICE : ''
  const refused = reason === 'InvalidImageName' || REFUSALS.some((refusal) => refusal.test(said))
  const message = `The cluster cannot pull ${image}: ${oneLine(said) || reason}.${advice}`
  return refused ? { state: 'failed', message } : { state: 'stuck', patience: 'short', message }
}

function describeEnd(ended: V1ContainerStateTerminated): string {
  const said = oneLine(ended.message ?? '')
  const foreign = FOREIGN_MACHINE.test(said) ? " The image is made for another kind of machine than the cluster's." : ''
  if (/^(StartError|ContainerCannotRun)$/.test(ended.reason ?? ''))
    return `The agent's container could not be started: ${said}.${foreign}`
  const memory = ended.reason === 'OOMKilled' ? ' It ran out of memory: see memory_limit_mb in resource_spec.' : ''
  return `The agent ${describeExit(exitOf(ended))} before it answered.${memory}${foreign}`
}

/** A death by signal is told as 128 and the signal's number. */
export function exitOf({ exitCode }: Pick<V1ContainerStateTerminated, 'exitCode'>): ProcessExit {
  const name = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128)?.[0]
  return name === undefined ? { code: exitCode, signal: null } : { code: null, signal: name }
}

/** The state of the agent's own container: pods may have others that the cluster adds. */
export function agentOf(pod: V1Pod): V1ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === CONTAINER)
}

/** What the registry said, when this pod has just heard it; null when it waits for the next attempt and says no more than that. */
export function pullTroubleOf(pod: V1Pod): string | null | undefined {
  const { reason, message = '' } = agentOf(pod)?.state?.waiting ?? {}
  if (reason === 'ErrImagePull' && message !== '') return message
  return reason === 'ImagePullBackOff' ? null : undefined
}

/** The digest of the image that a pod runs; null before it is known. */
export function digestOf(pods: readonly V1Pod[]): string | null {
  for (const pod of pods) {
    const digest = /@(sha256:[0-9a-f]{64})$/.exec(agentOf(pod)?.imageID ?? '')?.[1]
    if (digest !== undefined) return digest
  }
  return null
}
