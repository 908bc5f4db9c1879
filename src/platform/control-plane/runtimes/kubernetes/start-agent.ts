import { setTimeout as sleep } from 'node:timers/promises'
import type { V1Deployment, V1Service } from '@kubernetes/client-node'
import type { BuildLog } from '../../build-log.ts'
import { waitUntilHealthy } from '../health.ts'
import { portOf } from '../image-environment.ts'
import { type AgentProcess, FETCH_LIMIT_MS, type ImageStart, StartFailure, type StartEffects } from '../runtime.ts'
import { stopOnce } from '../stop-once.ts'
import type { Cluster } from './cluster.ts'
import { askStubbornly, isAway, reasonOf, statusOf } from './cluster-error.ts'
import { endAgent, readDeployment } from './end-agent.ts'
import { warningsOf } from './events.ts'
import { deploymentManifest, type ManifestPlan, ownerOf, secretManifest, serviceManifest } from './manifests.ts'
import { LABELS, type Place, referenceOf } from './names.ts'
import { lastLines } from './pod-log.ts'
import { digestOf, judge, type Rollout } from './rollout.ts'
import { type AgentWatch, watchAgent } from './watch-agent.ts'

const OUTPUT_LINES = 30
const LOOK_MS = 1000
/** What may pass by itself is waited for this long, and never longer than the agent's start may take. */
const SHORT_PATIENCE_MS = 60_000
/** What the way to a ready agent may take at least: the cluster makes it known to its nodes one by one. */
const WAY_MS = 15_000
/** How long the news of an end is waited for after it. */
const NEWS_MS = 5000

export interface AgentStart extends ManifestPlan {
  readonly cluster: Cluster
  readonly effects: StartEffects
  readonly pollMs: number
}

/**
 * Makes the Deployment of an agent with its Secret and its Service, and resolves when the agent answers; nothing is left of it otherwise.
 * @throws {StartFailure} that says why it does not.
 */
export async function startAgent(start: AgentStart): Promise<AgentProcess> {
  const { cluster, place, request, effects } = start
  const { log, signal } = effects
  let watch: AgentWatch | undefined
  try {
    const service = await create(start)
    signal.throwIfAborted()
    watch = watchAgent({ cluster, place, agentId: request.agentId, log })
    const address = addressOf(start, service)
    const begunAt = await untilAvailable(start, watch)
    await untilReached(start, { watch, address, begunAt })
    log.write('INFO', `The agent answers (${place.namespace}/${place.name}, ${address.host}:${address.port})`)
    watch.tellRestarts()
    return agentProcess({ cluster, place, request, watch, address, log })
  } catch (error) {
    const ending = endAgent({ cluster, place, agentId: request.agentId, graceMs: 0 }).catch((left: Error) => {
      log.write('WARNING', `The agent's Deployment is left behind, and is removed later: ${left.message}`)
    })
    await Promise.all([watch?.close(), ending])
    throw error
  }
}

/** The Deployment comes first: it owns the others, and what is left of it after a crash is found by its labels. */
async function create(start: AgentStart): Promise<V1Service> {
  const { cluster, place, effects, timeoutMs } = start
  const { log } = effects
  const { namespace } = place
  const signal = AbortSignal.any([effects.signal, AbortSignal.timeout(timeoutMs)])
  const ask = <T>(what: string, make: () => Promise<T>): Promise<T> =>
    askStubbornly(make, { log, signal }).catch((error: unknown) => {
      effects.signal.throwIfAborted()
      if (error instanceof StartFailure || statusOf(error) === undefined) throw error
      throw new StartFailure(`The cluster does not make the agent's ${what} in the namespace ${namespace}: ${reasonOf(error)}.`)
    })
  const { core, apps } = cluster
  const body = deploymentManifest(start)
  const deployment = await ask('Deployment', () =>
    orSeen(apps.createNamespacedDeployment({ namespace, body, fieldValidation: 'Strict' }), () => readOwn(start)),
  )
  effects.signal.throwIfAborted()
  const owner = ownerOf(deployment)
  const secret = secretManifest(start, owner)
  // Its name is this start's alone: one that is there is our own, whose answer was lost.
  await ask('Secret', () =>
    orSeen(core.createNamespacedSecret({ namespace, body: secret, fieldValidation: 'Strict' }), async () => secret),
  )
  effects.signal.throwIfAborted()
  const service = serviceManifest(start, owner)
  return ask('Service', () =>
    orSeen(core.createNamespacedService({ namespace, body: service, fieldValidation: 'Strict' }), () =>
      core.readNamespacedService(place),
    ),
  )
}

async function orSeen<T>(made: Promise<T>, seen: () => Promise<T | null>): Promise<T> {
  try {
    return await made
  } catch (error) {
    const found = statusOf(error) === 409 ? await seen() : null
    if (found === null) throw error
    return found
  }
}

async function readOwn({ cluster, place, request }: AgentStart): Promise<V1Deployment | null> {
  const found = await readDeployment(cluster, place)
  return found?.metadata?.labels?.[LABELS.agent] === request.agentId ? found : null
}

function addressOf({ request, place, settings }: AgentStart, service: V1Service): AgentProcess['address'] {
  if (settings.nodeHost === null) return { host: `${place.name}.${place.namespace}.svc`, port: portOf(request) }
  const port = service.spec?.ports?.[0]?.nodePort
  if (port === undefined) throw new StartFailure("The cluster gave the agent's Service no node port.")
  return { host: settings.nodeHost, port }
}

/** Pods are told of in a stream of their own: it may be behind that of the Deployment by so much. */
const DIGEST_LAG_MS = 2000

/** @returns when the first container began. */
async function untilAvailable(start: AgentStart, watch: AgentWatch): Promise<number> {
  const { request, effects, timeoutMs } = start
  const { signal, onImage } = effects
  const madeAt = Date.now()
  let begunAt: number | null = null
  let stuckAt: number | null = null
  let availableAt: number | null = null
  let exact: string | null = null
  const told = new Set<string>()
  const patience = { short: Math.min(SHORT_PATIENCE_MS, timeoutMs), long: timeoutMs }
  for (;;) {
    const rollout = watch.rollout()
    const now = Date.now()
    if (rollout === null) await giveUpUnheard(watch, { since: now - madeAt, timeoutMs })
    else {
      exact ??= noteDigest(start, { rollout, onImage })
      const verdict = judge(rollout)
      if (verdict.state === 'available') {
        availableAt ??= now
        if (exact !== null || now - availableAt > DIGEST_LAG_MS) return begunAt ?? now
      }
      if (verdict.state === 'failed') throw await failureOf(start, { watch, verdict })
      stuckAt = verdict.state === 'stuck' ? (stuckAt ?? now) : null
      if (verdict.state === 'stuck') {
        if (!told.has(verdict.message)) effects.log.write('WARNING', verdict.message)
        told.add(verdict.message)
        if (now - (stuckAt ?? now) > patience[verdict.patience]) throw new StartFailure(verdict.message, watch.tail())
      }
      if (verdict.state === 'starting') begunAt ??= now
      if (begunAt !== null && now - begunAt > timeoutMs) throw await silent(start, { watch, rollout })
      if (begunAt === null && now - madeAt > FETCH_LIMIT_MS) {
        const warnings = await warningsOf(start, rollout)
        throw new StartFailure(`The image ${request.imageUri} was not there after ${FETCH_LIMIT_MS / 60_000} minutes.${warnings}`)
      }
    }
    await Promise.race([watch.news(), sleep(LOOK_MS, undefined, { signal, ref: false })])
    signal.throwIfAborted()
  }
}

/** @throws {StartFailure} when the cluster refuses to tell, or was away for too long. */
async function giveUpUnheard(watch: AgentWatch, { since, timeoutMs }: { since: number; timeoutMs: number }): Promise<void> {
  const trouble = watch.trouble()
  if (trouble === null) return
  if (!isAway(trouble))
    throw new StartFailure(`The cluster does not tell the platform of the agent's pods: ${reasonOf(trouble)}.`)
  if (since > timeoutMs) throw new StartFailure(`The cluster's API did not answer: ${reasonOf(trouble)}.`)
}

function noteDigest(
  { request }: AgentStart,
  { rollout, onImage }: { rollout: Rollout; onImage: StartEffects['onImage'] },
): string | null {
  const digest = digestOf(rollout.pods)
  if (digest === null) return null
  const exact = request.imageUri.includes('@') ? request.imageUri : `${request.imageUri}@${digest}`
  onImage?.(exact)
  return exact
}

type Failed = Extract<ReturnType<typeof judge>, { state: 'failed' }>

/** With the end of what the container printed, read anew: it ended before all of it was followed. */
async function failureOf(
  { cluster, place }: AgentStart,
  { watch, verdict }: { watch: AgentWatch; verdict: Failed },
): Promise<StartFailure> {
  const { ended, message } = verdict
  if (ended === undefined) return new StartFailure(message, watch.tail())
  const lines = await lastLines(cluster, { namespace: place.namespace, ...ended, count: OUTPUT_LINES })
  return new StartFailure(message, lines.length > 0 ? lines : watch.tail())
}

async function silent(start: AgentStart, { watch, rollout }: { watch: AgentWatch; rollout: Rollout }): Promise<StartFailure> {
  const warnings = await warningsOf(start, rollout)
  const own = /statuscode: (401|403)\b/.test(warnings)
    ? " The agent's own authorisation answers: let GET /ok pass without it."
    : ''
  return new StartFailure(`The agent did not answer GET /ok within ${start.timeoutMs / 1000} s.${warnings}${own}`, watch.tail())
}

/** A ready agent that cannot be reached from here serves nobody. */
async function untilReached(
  start: AgentStart,
  { watch, address, begunAt }: { watch: AgentWatch; address: AgentProcess['address']; begunAt: number },
): Promise<void> {
  const { effects, timeoutMs, pollMs } = start
  const limit = AbortSignal.timeout(Math.max(Math.min(WAY_MS, timeoutMs), begunAt + timeoutMs - Date.now()))
  const signal = AbortSignal.any([effects.signal, limit])
  try {
    await waitUntilHealthy({ ...address, pollMs, signal, exited: watch.exited })
  } catch (error) {
    effects.signal.throwIfAborted()
    if (!limit.aborted) throw error
    const rollout = watch.rollout()
    const verdict = rollout === null ? null : judge(rollout)
    if (verdict?.state === 'failed') throw await failureOf(start, { watch, verdict })
    const where = `${address.host}:${address.port}`
    const advice = 'A platform outside of the cluster needs PLATFORM_KUBERNETES_NODE_HOST'
    throw new StartFailure(`The agent is ready in the cluster, and does not answer GET /ok at ${where}. ${advice}.`, watch.tail())
  }
}

interface Running {
  readonly cluster: Cluster
  readonly place: Place
  readonly request: ImageStart
  readonly watch: AgentWatch
  readonly address: AgentProcess['address']
  readonly log: BuildLog
}

function agentProcess({ cluster, place, request, watch, address, log }: Running): AgentProcess {
  let ending: Promise<void> | undefined
  const { stop, isStopping } = stopOnce(async (graceMs) => {
    ending = endAgent({ cluster, place, agentId: request.agentId, graceMs })
    await ending
    await Promise.race([exited, sleep(NEWS_MS, undefined, { ref: false })])
  })
  const exited = watch.exited.then(async (exit) => {
    // What it prints while it ends is read as well.
    await ending?.catch(() => undefined)
    await watch.close()
    const [level, how] = isStopping() ? (['INFO', 'removed'] as const) : (['ERROR', 'deleted by somebody else'] as const)
    log.write(level, `The agent's Deployment ${place.namespace}/${place.name} was ${how}`)
    return exit
  })
  return {
    address,
    reference: referenceOf(place),
    exited,
    stop,
  }
}
