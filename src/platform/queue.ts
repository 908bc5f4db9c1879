import { setTimeout as sleep } from 'node:timers/promises'
import { createAgentHost } from './agents/host.ts'
import { createRetirement } from './agents/retirement.ts'
import type { AgentRoutes } from './agents/routes.ts'
import { createSupervisor } from './agents/supervisor.ts'
import type { Clock } from './clock.ts'
import { type Build, buildAgain, buildNext } from './control-plane/lifecycle/build-worker.ts'
import { removeDeleted } from './control-plane/lifecycle/deletions.ts'
import { deployNext } from './control-plane/lifecycle/deploy-worker.ts'
import { expireWaiting } from './control-plane/lifecycle/expiry.ts'
import { HEARTBEAT_MS, reclaimRevisions } from './control-plane/lifecycle/lease.ts'
import { provisionNext } from './control-plane/lifecycle/provision.ts'
import { watchPushes } from './control-plane/lifecycle/push-watch.ts'
import { advanceStalledQueues } from './control-plane/lifecycle/queue.ts'
import { sweepBuilds, sweepCache, sweepLogs } from './control-plane/lifecycle/sweep.ts'
import type { Hands } from './control-plane/lifecycle/work.ts'
import { PROCESSES_ONLY } from './control-plane/runtimes/availability.ts'
import type { Runtime } from './control-plane/runtimes/runtime.ts'
import type { GitSource } from './control-plane/sources/source.ts'
import type { DataDirectory } from './data-directory.ts'
import type { Notifications } from './database/notifications.ts'
import type { Database } from './database/schema.ts'
import { type Duty, startDuty } from './duty.ts'
import type { Log } from './log.ts'
import type { SecretBox } from './secrets.ts'
import type { Settings } from './settings.ts'

export interface QueueOptions {
  readonly db: Database
  readonly notifications: Notifications
  readonly data: DataDirectory
  readonly secretBox: SecretBox
  readonly runtime: Runtime
  readonly build: Build
  readonly resolveHead: (source: GitSource, options: { signal: AbortSignal }) => Promise<string>
  readonly tokenFor: (repoUrl: string) => string | undefined
  readonly routes: AgentRoutes
  readonly refreshRoutes: () => Promise<void>
  /** Where agents send their traces. */
  readonly traceUrl: string
  readonly clock: Clock
  readonly settings: Settings
  readonly log: Log
}

/** What an agent may take beyond its grace to write its state and to be gone. Milliseconds. */
const END_MS = 3000

/** The part of the platform that builds, starts and looks after agents (role `queue`). */
export async function startQueue(options: QueueOptions): Promise<{ stop(): Promise<void> }> {
  const { db, data, log, settings, routes, secretBox, notifications, clock } = options
  const { nodeId, builds } = data
  const stopping = new AbortController()
  const { signal } = stopping
  const hands: Hands = { inHand: new Set(), stopping: signal }
  const host = createAgentHost({ db, runtime: options.runtime, secretBox, nodeId, builds, traceUrl: options.traceUrl, log })
  const expiry = { waitLimitMs: settings.waitLimitMs, totalLimitMs: settings.totalLimitMs, workingSince: clock.now() }

  // Whatever this data directory's last platform had in hand is nobody's now: its lock was free.
  await host.clearStrays()
  const reclaimed = await reclaimRevisions(db, { deadOwner: nodeId })
  if (reclaimed > 0) log.info({ reclaimed }, 'revisions of the last run are taken up again')
  await expireWaiting(db, expiry)

  const buildOptions = {
    db,
    secretBox,
    log,
    nodeId,
    builds,
    npmCache: data.cache,
    limitMs: settings.buildLimitMs,
    build: options.build,
    tokenFor: options.tokenFor,
    hands,
  }
  const deployOptions = { db, host, log, nodeId, limitMs: settings.startLimitMs, hands, onSwap: options.refreshRoutes }
  const supervisor = createSupervisor({
    db,
    host,
    nodeId,
    startLimitMs: settings.startLimitMs,
    signal,
    buildAgain: (work) => buildAgain(buildOptions, work),
    log,
  })
  const { drainLimitMs, stopLimitMs } = settings
  const retirement = createRetirement({ db, host, routes, drainLimitMs, deletedLimitMs: stopLimitMs, log })
  const pushes = {
    db,
    log,
    intervalMs: clock.scaled(settings.pushLookMs),
    atOnce: settings.pushLooks,
    resolveHead: options.resolveHead,
    tokenFor: options.tokenFor,
    signal,
  }
  const keepMoving = async () => {
    await reclaimRevisions(db)
    await expireWaiting(db, expiry)
    const stalled = await advanceStalledQueues(db)
    if (stalled > 0) log.error({ stalled }, 'a queue stood still and was moved on: a defect')
  }
  const sweep = async () => {
    await sweepBuilds(db, { builds, buildsKept: settings.buildsKept })
    await sweepLogs(db, { logsKept: settings.logsKept })
    await sweepCache({ cache: data.cache, maxBytes: settings.cacheMaxBytes, isIdle: () => hands.inHand.size === 0 })
  }

  const duty = (name: string, round: () => Promise<boolean | void>, intervalMs = settings.lookMs) => startDuty({ name, intervalMs, round, log })
  const forWork = [
    duty('provision', () => provisionNext(db, PROCESSES_ONLY)),
    ...times(settings.builds, () => duty('build', () => buildNext(buildOptions))),
    ...times(settings.starts, () => duty('deploy', () => deployNext(deployOptions))),
    duty('deletions', () => removeDeleted({ db, builds, log })),
  ]
  const forAgents = [
    ...times(settings.starts, () => duty('supervisor', () => supervisor.round())),
    duty('retirement', () => retirement.round()),
  ]
  const alone = [
    duty('keep moving', keepMoving, HEARTBEAT_MS),
    duty('pushes', () => watchPushes(pushes), Math.min(settings.lookMs, pushes.intervalMs)),
    duty('sweep', sweep, settings.sweepMs),
  ]
  const alive = duty('agents alive', () => host.beat(), HEARTBEAT_MS)
  notifications.on('work', () => {
    wake(forWork)
    for (const hand of hands.inHand) hand.look()
  })
  notifications.on('agents', () => wake([...forAgents, ...forWork]))

  return {
    stop: async () => {
      stopping.abort()
      await Promise.all([...forWork, ...forAgents, ...alone].map((one) => one.stop()))
      await Promise.all(
        host.all().map(async (agent) => {
          await routes.drain({ ...agent.process.address, revisionId: agent.revisionId }, { limitMs: stopLimitMs })
          // One that is being retired already may have been given longer; what is left of it ends with this process.
          await Promise.race([host.end(agent, { graceMs: stopLimitMs }), sleep(stopLimitMs + END_MS, undefined, { ref: false })])
        }),
      )
      await alive.stop()
    },
  }
}

function wake(duties: readonly Duty[]): void {
  for (const one of duties) one.wake()
}

function times<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make)
}
