import { setTimeout as sleep } from 'node:timers/promises'
import type { Source } from '../contract/revision.ts'
import { type AgentHost, createAgentHost } from './agents/host.ts'
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
import { availabilityOf } from './control-plane/runtimes/availability.ts'
import type { Runtimes } from './control-plane/runtimes/runtime.ts'
import type { GitSource } from './control-plane/sources/source.ts'
import type { DataDirectory } from './data-directory.ts'
import type { Notifications } from './database/notifications.ts'
import type { Database } from './database/schema.ts'
import { type Duty, startDuty } from './duty.ts'
import type { Log } from './log.ts'
import { type Leadership, whenLeading } from './nodes/leadership.ts'
import type { Membership } from './nodes/membership.ts'
import type { SecretBox } from './secrets.ts'
import type { Settings } from './settings.ts'

export interface QueueOptions {
  readonly db: Database
  readonly notifications: Notifications
  readonly data: DataDirectory
  readonly secretBox: SecretBox
  readonly runtimes: Runtimes
  readonly build: Build
  readonly resolveHead: (source: GitSource, options: { signal: AbortSignal }) => Promise<string>
  readonly tokenFor: (repoUrl: string) => string | undefined
  readonly routes: AgentRoutes
  readonly refreshRoutes: () => Promise<void>
  /** Where the agents of a source send their traces; null: nowhere. */
  readonly traceUrl: (source: Source) => Promise<string | null>
  readonly leadership: Leadership
  readonly membership: Pick<Membership, 'canJudge'>
  readonly clock: Clock
  readonly settings: Settings
  readonly log: Log
}

/** What an agent may take beyond its grace to write its state and to be gone. Milliseconds. */
const END_MS = 3000

/** How often agents that run without a row are looked for. Milliseconds. */
const STRAYS_LOOK_MS = 30_000

/** The part of the platform that builds, starts and looks after agents (role `queue`). */
export async function startQueue(options: QueueOptions): Promise<{ readonly host: AgentHost; stop(): Promise<void> }> {
  const { db, data, log, settings, routes, secretBox, notifications, clock } = options
  const { nodeId, builds } = data
  const stopping = new AbortController()
  const { signal } = stopping
  const hands: Hands = { inHand: new Set(), stopping: signal }
  const availability = availabilityOf(options.runtimes)
  const host = createAgentHost({ db, runtimes: options.runtimes, secretBox, nodeId, builds, traceUrl: options.traceUrl, log })
  const expiry = { waitLimitMs: settings.waitLimitMs, totalLimitMs: settings.totalLimitMs, workingSince: clock.now(), log }

  // Whatever this data directory's last platform had in hand is nobody's now: its lock was free.
  await host.clearStrays()
  const reclaimed = await reclaimRevisions(db, { deadOwner: nodeId, log })
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
  const deployOptions = { db, host, log, nodeId, builds, limitMs: settings.startLimitMs, hands, onSwap: options.refreshRoutes }
  const supervisor = createSupervisor({
    db,
    host,
    nodeId,
    builds,
    startLimitMs: settings.startLimitMs,
    signal,
    buildAgain: (work) => buildAgain(buildOptions, work),
    canJudge: options.membership.canJudge,
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
    await reclaimRevisions(db, { log })
    await expireWaiting(db, expiry)
    const stalled = await advanceStalledQueues(db, log)
    if (stalled > 0) log.error({ stalled }, 'a queue stood still and was moved on: a defect')
  }
  const sweep = async () => {
    await sweepBuilds(db, { builds, buildsKept: settings.buildsKept })
    await sweepCache({ cache: data.cache, maxBytes: settings.cacheMaxBytes, isIdle: () => hands.inHand.size === 0 })
  }

  const duty = (name: string, round: () => Promise<boolean | void>, intervalMs = settings.lookMs) => startDuty({ name, intervalMs, round, log })
  // What is about the database as a whole is for one node; what is about a disk or a process is for each.
  const leading: typeof duty = (name, round, intervalMs) => duty(name, whenLeading(options.leadership, round), intervalMs)
  const forWork = [
    duty('provision', () => provisionNext(db, availability, log)),
    ...times(settings.builds, () => duty('build', () => buildNext(buildOptions))),
    ...times(settings.starts, () => duty('deploy', () => deployNext(deployOptions))),
    leading('deletions', () => removeDeleted({ db, builds, log })),
  ]
  const forAgents = [
    ...times(settings.starts, () => duty('supervisor', () => supervisor.round())),
    duty('retirement', () => retirement.round()),
  ]
  const alone = [
    leading('keep moving', keepMoving, HEARTBEAT_MS),
    leading('pushes', () => watchPushes(pushes), Math.min(settings.lookMs, pushes.intervalMs)),
    duty('sweep', sweep, settings.sweepMs),
    leading('sweep of logs', async () => void (await sweepLogs(db, { logsKept: settings.logsKept })), settings.sweepMs),
    duty('strays', () => host.sweepStrays(), STRAYS_LOOK_MS),
  ]
  const alive = duty('agents alive', () => host.beat(), HEARTBEAT_MS)
  notifications.on('work', () => {
    wake(forWork)
    for (const hand of hands.inHand) hand.look()
  })
  notifications.on('agents', () => wake([...forAgents, ...forWork]))

  return {
    host,
    stop: async () => {
      stopping.abort()
      await Promise.all([...forWork, ...forAgents, ...alone].map((one) => one.stop()))
      await Promise.all(
        host.all().map(async (agent) => {
          await routes.drain({ ...agent.process.address, revisionId: agent.revisionId, agentId: agent.id }, { limitMs: stopLimitMs })
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
