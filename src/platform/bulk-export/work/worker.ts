import path from 'node:path'
import type { Clock } from '../../clock.ts'
import { openBucket } from '../bucket/bucket.ts'
import { openCredentials } from '../destinations.ts'
import type { PendingPart } from '../../database/schema.ts'
import { completeRun, failAttempt, handBack, LeaseLost, type Settled } from './checkpoint.ts'
import { type RunWork, writeRun } from './export-run.ts'
import { ExportFailure, failureOf, sentenceOf } from './failure.ts'
import { holdLease, Stopping } from './hold.ts'
import { type Claim, claimRun } from './lease.ts'

export interface WorkerOptions extends Omit<RunWork, 'directory'> {
  readonly clock: Clock
  readonly owner: string
  /** Files on their way to buckets lie below. */
  readonly spool: string
  readonly stopping: AbortSignal
  /** Ways to look at the leases of what is in hand, now. */
  readonly inHand: Set<() => void>
}

/** Takes up one export run and works on it to its end, or to that of the attempt. @returns whether there was one. */
export async function exportNext(options: WorkerOptions): Promise<boolean> {
  const { db, clock, settings, stopping, inHand, metrics } = options
  if (stopping.aborted) return false
  const claim = await claimRun(options)
  if (claim === null) return false
  const log = options.log.child({ exportId: claim.export.id, exportRunId: claim.run.id, attempt: claim.run.retry_number })
  log.info({ window: claim.run.window_start_text, cursor: claim.run.cursor_text }, 'export run taken up')
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
    log.info({ lateRows }, 'export run completed')
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
      const settled = await failAttempt({ db, clock, settings }, claim as Claim, failure)
      report(settled, failure.kind)
      if (settled.exportEnded === 'FAILED') await removeLeftover(options, claim as Claim)
    } catch (later) {
      if (later instanceof LeaseLost) return leave()
      // The lease ends by itself, and another worker goes on from the checkpoint.
      log.warn({ error: (later as Error).message }, 'an export run could not be put down in the database')
      metrics.add('export_attempts_total', { outcome: 'abandoned' })
    }
  }

  async function giveBack(outcome: string): Promise<void> {
    await handBack({ db, clock }, claim as Claim)
    metrics.add('export_attempts_total', { outcome })
  }

  async function leave(): Promise<void> {
    log.info('export run left: it was cancelled, or is in other hands')
    metrics.add('export_attempts_total', { outcome: 'lost' })
    await removeLeftover(options, claim as Claim)
  }

  function report({ exportEnded }: Settled, outcome: string): void {
    metrics.add('export_attempts_total', { outcome })
    if (exportEnded === null) return
    metrics.add('export_exports_total', { status: exportEnded })
    log.info({ status: exportEnded }, 'export ended')
  }
}

/**
 * Removes the file that was under way when a run ended otherwise than well, as far as the bucket lets us: it counts nowhere. A run that
 * goes on in other hands is left alone: its file will be written over.
 */
export async function removeLeftover(
  { db, secretBox, rules, settings }: Pick<RunWork, 'db' | 'secretBox' | 'rules' | 'settings'>,
  { run, export: row }: Pick<Claim, 'export'> & { run: { readonly id: string } },
): Promise<void> {
  const left = await db
    .selectFrom('bulk_export_runs')
    .select(['pending', 'files'])
    .where('id', '=', run.id)
    .where('status', 'in', ['FAILED', 'CANCELLED', 'TIMEDOUT'])
    .where('pending', 'is not', null)
    .executeTakeFirst()
  if (left === undefined) return
  const destination = await db.selectFrom('export_destinations').selectAll().where('id', '=', row.destination_id).executeTakeFirst()
  if (destination !== undefined) {
    const { key, uploadId } = left.pending as PendingPart
    const { requestLimitMs, connectLimitMs } = settings
    const credentials = openCredentials(secretBox, destination)
    const bucket = openBucket({ config: destination.config, credentials, rules, requestLimitMs, connectLimitMs })
    await bucket.abortUploads(key, uploadId)
    if (!left.files.some((file) => file.key === key)) await bucket.remove(key).catch(() => undefined)
    bucket.close()
  }
  await db.updateTable('bulk_export_runs').set({ pending: null }).where('id', '=', run.id).execute()
}
