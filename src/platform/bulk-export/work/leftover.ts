import { sql } from 'kysely'
import type { ExportDestinationRow, PendingPart } from '../../database/schema.ts'
import { type Bucket, openBucket } from '../bucket/bucket.ts'
import { type BucketVerdict, judgeBucketError } from '../bucket/bucket-error.ts'
import { openCredentials } from '../destinations.ts'
import type { RunWork } from './export-run.ts'
import type { Claim } from './lease.ts'

export type LeftoverOptions = Pick<RunWork, 'db' | 'secretBox' | 'rules' | 'settings' | 'log'>

/** How long after the end of its run a file is looked for in a bucket that does not answer as it should. */
const LIMIT = '7 days'

/**
 * Removes the file that was under way when a run ended otherwise than well: it counts nowhere. It stays where the bucket says no, and where
 * the bucket is still away a week later; until then it is tried again. A run that goes on in other hands is left alone: its file will be
 * written over.
 */
export async function removeLeftover(
  options: LeftoverOptions,
  { run, export: row }: Pick<Claim, 'export'> & { run: { readonly id: string } },
): Promise<void> {
  const { db, log } = options
  const left = await db
    .selectFrom('bulk_export_runs')
    .select(['pending', 'files'])
    .where('id', '=', run.id)
    .where('status', 'in', ['FAILED', 'CANCELLED', 'TIMEDOUT'])
    .where('pending', 'is not', null)
    .executeTakeFirst()
  if (left === undefined) return
  const destination = await db
    .selectFrom('export_destinations')
    .selectAll()
    .where('id', '=', row.destination_id)
    .executeTakeFirst()
  const part = left.pending as PendingPart
  const counts = left.files.some((file) => file.key === part.key)
  const verdict = destination === undefined ? null : await clearAway(options, { destination, part, counts })
  const told = { exportRunId: run.id, file: part.key, code: verdict?.code }
  if (verdict?.kind === 'passing') {
    const kept = await keepForLater(options, run.id)
    if (kept === 'over') log.warn(told, 'what was left of an export run may be in its bucket still: it is given up after a week')
    else log.debug(told, 'what was left of an export run could not be removed yet')
    return
  }
  if (verdict !== null) log.warn(told, 'what was left of an export run stays: its bucket does not let it be removed')
  await db.updateTable('bulk_export_runs').set({ pending: null }).where('id', '=', run.id).execute()
}

/** @returns what hindered it; null when nothing is left. */
async function clearAway(
  { secretBox, rules, settings }: LeftoverOptions,
  { destination, part, counts }: { destination: ExportDestinationRow; part: PendingPart; counts: boolean },
): Promise<BucketVerdict | null> {
  const { requestLimitMs, connectLimitMs } = settings
  let bucket: Bucket | undefined
  try {
    const credentials = openCredentials(secretBox, destination)
    bucket = openBucket({ config: destination.config, credentials, rules, requestLimitMs, connectLimitMs })
    const hindrance = await bucket.abortUploads(part.key, part.uploadId)
    if (!counts) await bucket.remove(part.key)
    return hindrance === null ? null : judgeBucketError(hindrance)
  } catch (error) {
    return judgeBucketError(error)
  } finally {
    bucket?.close()
  }
}

/** The later it was tried, the later it is its turn again. */
async function keepForLater({ db }: LeftoverOptions, runId: string): Promise<'over' | 'later'> {
  const isOver = sql`finished_at < clock_timestamp() - ${LIMIT}::interval`
  const row = await db
    .updateTable('bulk_export_runs')
    .set({ pending: sql`case when ${isOver} then null else pending end`, updated_at: sql<Date>`clock_timestamp()` })
    .where('id', '=', runId)
    .where('pending', 'is not', null)
    .returning('pending')
    .executeTakeFirst()
  return row?.pending === null ? 'over' : 'later'
}
