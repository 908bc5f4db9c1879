import { mkdir, rm } from 'node:fs/promises'
import type { Clock } from '../clock.ts'
import type { Notifications } from '../database/notifications.ts'
import type { Database } from '../database/schema.ts'
import { type Duty, startDuty } from '../duty.ts'
import type { Log } from '../log.ts'
import { ALWAYS_LEADS, type Leadership, whenLeading } from '../nodes/leadership.ts'
import type { SecretBox } from '../secrets.ts'
import type { EndpointRules } from './bucket/endpoint.ts'
import type { ExportMetrics } from './metrics.ts'
import { spawnDue } from './schedules.ts'
import type { ExportSettings } from './settings.ts'
import { endOverdueExports, type KeeperOptions, removeLeftovers } from './work/keeper.ts'
import { reclaimRuns } from './work/lease.ts'
import { exportNext, type WorkerOptions } from './work/worker.ts'

export interface ExportWorkersOptions {
  readonly db: Database
  readonly databaseUrl: string
  readonly notifications: Pick<Notifications, 'on'>
  readonly secretBox: SecretBox
  readonly rules: EndpointRules
  /** Names this process over restarts: what it had in hand before is taken back at once. */
  readonly owner: string
  /** A folder of this process alone: files lie there until they are in a bucket. What an earlier process left there is removed. */
  readonly spool: string
  /** Whose keeper keeps; absent: this one's. */
  readonly leadership?: Leadership
  readonly clock: Clock
  readonly settings: ExportSettings
  readonly metrics: ExportMetrics
  readonly log: Log
}

/** The part of the queue role that exports: workers, and a keeper of schedules, time limits and lost leases. */
export async function startExportWorkers(options: ExportWorkersOptions): Promise<{ stop(): Promise<void> }> {
  const { db, clock, settings, metrics, log, owner, spool, notifications } = options
  await rm(spool, { recursive: true, force: true })
  await mkdir(spool, { recursive: true, mode: 0o700 })
  const reclaimed = await reclaimRuns({ db, clock, settings, deadOwner: owner })
  if (reclaimed > 0) log.info({ reclaimed }, 'export runs of the last process are taken up again')
  const stopping = new AbortController()
  const inHand = new Set<() => void>()
  const worker: WorkerOptions = { ...options, stopping: stopping.signal, inHand }
  const keeper: KeeperOptions = options
  const keep = async () => {
    const lost = await reclaimRuns({ db, clock, settings })
    metrics.add('export_reclaimed_total', {}, lost)
    if (lost > 0) log.warn({ lost }, 'export runs were taken back from workers that were lost')
    await endOverdueExports(keeper)
    const more = await spawnDue({ db, clock, settings, metrics, log })
    if (lost > 0 || more) for (const one of exporting) one.wake()
    return more
  }
  const duty = (name: string, round: () => Promise<boolean | void>) => startDuty({ name, intervalMs: settings.lookMs, round, log })
  const leading: typeof duty = (name, round) => duty(name, whenLeading(options.leadership ?? ALWAYS_LEADS, round))
  const exporting: Duty[] = Array.from({ length: settings.workers }, () => duty('export', () => exportNext(worker)))
  // Apart: what asks a bucket may wait for minutes, and leases and schedules must not wait with it.
  const keeping = [leading('export keeper', keep), leading('export leftovers', () => removeLeftovers(keeper))]
  notifications.on('work', () => {
    for (const one of exporting) one.wake()
    for (const look of inHand) look()
  })
  return {
    stop: async () => {
      stopping.abort()
      await Promise.all([...exporting, ...keeping].map((one) => one.stop()))
      await rm(spool, { recursive: true, force: true })
    },
  }
}
