import { sql } from 'kysely'
import type { Clock } from '../../clock.ts'
import type { Database } from '../../database/schema.ts'
import type { Log } from '../../log.ts'
import type { SecretBox } from '../../secrets.ts'
import type { EndpointRules } from '../bucket/endpoint.ts'
import type { ExportMetrics } from '../metrics.ts'
import { EXPORT_RANGE, type ExportRow } from '../rows.ts'
import type { ExportSettings } from '../settings.ts'
import { removeLeftover } from './leftover.ts'
import { endExport } from './states.ts'

export interface KeeperOptions {
  readonly db: Database
  readonly clock: Clock
  readonly settings: ExportSettings
  readonly secretBox: SecretBox
  readonly rules: EndpointRules
  readonly metrics: ExportMetrics
  readonly log: Log
}

/** Ends the exports whose time limit has passed (specification 3.2); they are not tried again. */
export async function endOverdueExports({ db, clock, settings, metrics, log }: KeeperOptions): Promise<void> {
  const now = clock.now()
  const latest = new Date(now.getTime() - settings.exportLimitMs)
  const overdue = await db
    .selectFrom('bulk_exports')
    .select('id')
    .where('status', '=', 'RUNNING')
    .where('started_at', '<=', latest)
    .execute()
  for (const { id } of overdue) {
    const ended = await db.transaction().execute(async (trx) => {
      const held = await trx
        .selectFrom('bulk_exports')
        .select('id')
        .where('id', '=', id)
        .where('status', '=', 'RUNNING')
        .forUpdate()
        .executeTakeFirst()
      if (held === undefined) return false
      const reason = `export_timeout: the time limit of an export, ${settings.exportLimitMs / 3_600_000} h, passed; reduce its scope or split it`
      await endExport(trx, { exportId: id, from: 'RUNNING', to: 'TIMEDOUT', reason, now })
      return true
    })
    if (!ended) continue
    metrics.add('export_exports_total', { status: 'TIMEDOUT' })
    log.warn({ exportId: id }, 'an export passed its time limit')
  }
}

/** Asked for at once: a bucket that is silent takes minutes. */
const LEFTOVERS_AT_ONCE = 10
/** The longest pause before a bucket that stays away is asked again. */
const LEFTOVER_PAUSE_MAX = '1 hour'

/**
 * Removes what is left in buckets of runs that ended otherwise than well: their workers were killed, or the bucket was away. One that stays
 * away is asked again after as long as it has been away; whoever has waited longest comes first, so that it keeps nobody else waiting.
 */
export async function removeLeftovers(options: KeeperOptions): Promise<void> {
  const { db, settings, log } = options
  // Their own workers come first.
  const least = sql`${`${settings.leaseMs * 2} milliseconds`}::interval`
  const tried = sql`bulk_export_runs.updated_at - coalesce(bulk_export_runs.finished_at, bulk_export_runs.updated_at)`
  const rows = await db
    .selectFrom('bulk_export_runs')
    .innerJoin('bulk_exports', 'bulk_exports.id', 'bulk_export_runs.export_id')
    .selectAll('bulk_exports')
    .select(EXPORT_RANGE)
    .select('bulk_export_runs.id as run_id')
    .where('bulk_export_runs.status', 'in', ['FAILED', 'CANCELLED', 'TIMEDOUT'])
    .where('bulk_export_runs.pending', 'is not', null)
    .where(
      'bulk_export_runs.updated_at',
      '<',
      sql<Date>`clock_timestamp() - greatest(${least}, least(${tried}, ${LEFTOVER_PAUSE_MAX}::interval))`,
    )
    .orderBy('bulk_export_runs.updated_at')
    .limit(LEFTOVERS_AT_ONCE)
    .execute()
  const remove = async ({ run_id, ...row }: (typeof rows)[number]) => {
    await removeLeftover(options, { run: { id: run_id }, export: row as ExportRow }).catch((error: Error) => {
      log.warn({ exportRunId: run_id, error: error.message }, 'what was left of an export run could not be removed')
    })
  }
  await Promise.all(rows.map(remove))
}
