import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Clock } from '../../clock.ts'
import type { Database } from '../../database/schema.ts'
import { isUnavailable } from '../../http/unavailable.ts'
import { completeRun, failAttempt, handBack, LeaseLost, type Settled } from './checkpoint.ts'
import { type RunWork, writeRun } from './export-run.ts'
import { ExportFailure, failureOf, sentenceOf } from './failure.ts'
import { holdLease, Stopping } from './hold.ts'
import { type Claim, claimRun } from './lease.ts'
import { removeLeftover } from './leftover.ts'

export interface WorkerOptions extends Omit<RunWork, 'directory'> {
  readonly clock: Clock
  readonly owner: string
  /** Files on their way to buckets lie below. */
  readonly spool: string
  readonly stopping: AbortSignal
  /** Ways to look at the leases of what is in hand, now. */
  readonly inHand: Set<() => void>
}

/** Between two attempts to put a run down. Milliseconds. */
const PUT_DOWN_PAUSE_MS = 500

/** Takes up one export run and works on it to its end, or to that of the attempt. @returns whether there was one. */
export async function exportNext(options: WorkerOptions): Promise<boolean> {
  const { db, clock, settings, stopping, inHand, metrics } = options
  if (stopping.aborted) return false
  const claim = await claimRun(options)
  if (claim === null) return false
  const log = options.log.child({ exportId: claim.export.id, exportRunId: claim.run.id, attempt: claim.run.retry_number })
  log.debug({ window: claim.run.window_start_text, cursor: claim.run.cursor_text }, 'export run taken up')
  const work: RunWork = { ...options, log, directory: path.join(options.spool, claim.token) }
  const hand = (look: () => void) => {
    inHand.add(look)
    metrics.set('export_runs_in_hand', inHand.size)
    return () => {
      inHand.delete(look)
      metrics.set('export_runs_in_hand', inHand.size)
    }
  }
  try {
    const { lateRows } = await holdLease({ db, claim, settings, stopping, hand, work: (signal) => writeRun(work, claim, signal) })
    report(await completeRun({ db, clock }, claim, { lateRows }), 'completed')
    metrics.add('export_late_rows_total', {}, lateRows)
    await tellEnd()
  } catch (error) {
    await putDown(error)
  }
  return true

  async function putDown(error: unknown): Promise<void> {
    try {
      if (error instanceof LeaseLost) return await leave()
      if (error instanceof Stopping) return await giveBack('handed_back')
      const failure = failureOf(error)
      if (failure.kind === 'interruption') return await giveBack('interrupted')
      const stack = error instanceof ExportFailure ? undefined : (error as Error).stack
      log.warn({ kind: failure.kind, error: sentenceOf(failure), stack }, 'an attempt of an export run failed')
      const settled = await insist(() => failAttempt({ db, clock, settings }, claim as Claim, failure))
      report(settled, failure.kind)
      await tellEnd()
      if (settled.exportEnded === 'FAILED') await removeLeftover(options, claim as Claim)
    } catch (later) {
      if (later instanceof LeaseLost) return leave()
      // The lease ends by itself, and another worker goes on from the checkpoint.
      log.warn({ error: (later as Error).message }, 'an export run could not be put down in the database')
      metrics.add('export_attempts_total', { outcome: 'abandoned' })
    }
  }

  /** Until the lease ends: a run that is not put down waits so long for its next worker. */
  async function insist<T>(step: () => Promise<T>): Promise<T> {
    const end = performance.now() + settings.leaseMs
    for (;;) {
      try {
        return await step()
      } catch (error) {
        if (!isUnavailable(error) || stopping.aborted || performance.now() > end) throw error
      }
      await sleep(Math.min(PUT_DOWN_PAUSE_MS, settings.lookMs))
    }
  }

  async function giveBack(outcome: string): Promise<void> {
    await insist(() => handBack({ db, clock }, claim as Claim))
    metrics.add('export_attempts_total', { outcome })
  }

  async function leave(): Promise<void> {
    log.info('export run left: it was ended by others, or is in other hands')
    metrics.add('export_attempts_total', { outcome: 'lost' })
    await tellEnd()
    await removeLeftover(options, claim as Claim)
  }

  function report({ exportEnded }: Settled, outcome: string): void {
    metrics.add('export_attempts_total', { outcome })
    if (exportEnded === null) return
    metrics.add('export_exports_total', { status: exportEnded })
    log.debug({ status: exportEnded }, 'export ended')
  }

  async function tellEnd(): Promise<void> {
    const end = await readEnd(db, (claim as Claim).run).catch(() => undefined)
    if (end !== undefined) options.log.info(end, 'export run ended')
  }
}

/**
 * What the log tells of a run that has ended, however it did: ids, numbers and words of ours. Undefined while it goes on, and
 * when another attempt than ours was the last: its worker tells.
 */
async function readEnd(db: Database, run: Claim['run']) {
  return db
    .selectFrom('bulk_export_runs as run')
    .innerJoin('bulk_exports as export', 'export.id', 'run.export_id')
    .select(['run.export_id as exportId', 'run.id as exportRunId', 'run.status', 'export.status as exportStatus'])
    .select([sql<number>`run.rows_written::float8`.as('rows'), sql<number>`run.late_rows::float8`.as('lateRows')])
    .select(sql<number>`round(extract(epoch from run.finished_at - run.started_at), 1)::float8`.as('seconds'))
    .where('run.id', '=', run.id)
    .where('run.attempt_started_at', '=', run.attempt_started_at)
    .where('run.finished_at', 'is not', null)
    .executeTakeFirst()
}
