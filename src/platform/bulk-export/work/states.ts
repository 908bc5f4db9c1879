import { sql } from 'kysely'
import type { ExportRunStatus, ExportStatus } from '../../../contract/export-status.ts'
import { announce } from '../../database/notifications.ts'
import type { DatabaseTransaction } from '../../database/schema.ts'

interface Step<Status> {
  readonly from: Status
  readonly to: Status
  readonly when: string
}

/** The state machine of an export (specification 3.2). Whatever is not in this table does not happen. */
export const EXPORT_TRANSITIONS = [
  { from: 'CREATED', to: 'RUNNING', when: 'a worker took its first run; at most 15 exports of a workspace are here at once' },
  { from: 'CREATED', to: 'CANCELLED', when: 'a user cancelled it' },
  { from: 'RUNNING', to: 'COMPLETED', when: 'all its runs are COMPLETED' },
  { from: 'RUNNING', to: 'FAILED', when: 'one of its runs is FAILED' },
  { from: 'RUNNING', to: 'CANCELLED', when: 'a user cancelled it' },
  { from: 'RUNNING', to: 'TIMEDOUT', when: 'its time limit passed' },
  { from: 'INTERVAL_SCHEDULED', to: 'CANCELLED', when: 'a user cancelled it: it spawns no more; what it has spawned goes on' },
] as const satisfies readonly Step<ExportStatus>[]

/** That of an export run. */
export const RUN_TRANSITIONS = [
  { from: 'CREATED', to: 'RUNNING', when: 'a worker took it' },
  { from: 'CREATED', to: 'CANCELLED', when: 'its export was cancelled, or failed' },
  { from: 'CREATED', to: 'TIMEDOUT', when: "its export's time limit passed" },
  { from: 'RUNNING', to: 'CREATED', when: 'its attempt failed and is repeated later, or its worker stopped or was lost' },
  { from: 'RUNNING', to: 'COMPLETED', when: 'every row is in the bucket' },
  { from: 'RUNNING', to: 'FAILED', when: 'its attempt failed, and is not repeated' },
  { from: 'RUNNING', to: 'CANCELLED', when: 'its export was cancelled, or failed' },
  { from: 'RUNNING', to: 'TIMEDOUT', when: "its export's time limit passed" },
] as const satisfies readonly Step<ExportRunStatus>[]

export function isExportTransition(from: ExportStatus, to: ExportStatus): boolean {
  return EXPORT_TRANSITIONS.some((step) => step.from === from && step.to === to)
}

/** What becomes of an export's unfinished runs when it ends. */
const RUNS_WITH = { COMPLETED: null, FAILED: 'CANCELLED', CANCELLED: 'CANCELLED', TIMEDOUT: 'TIMEDOUT' } as const

/**
 * Ends an export, and with it its unfinished runs: their leases go, so that no worker can store anything any more. The caller holds the
 * export's row.
 * @throws {Error} for a step that the state machine does not have: a defect of ours.
 */
export async function endExport(
  trx: DatabaseTransaction,
  { exportId, from, to, reason, now }: { exportId: string; from: ExportStatus; to: keyof typeof RUNS_WITH; reason: string | null; now: Date },
): Promise<void> {
  if (!isExportTransition(from, to)) throw new Error(`an export cannot go from ${from} to ${to}`)
  await trx
    .updateTable('bulk_exports')
    .set({ status: to, status_message: reason, finished_at: now, updated_at: now, next_due_at: null })
    .where('id', '=', exportId)
    .where('status', '=', from)
    .execute()
  const status = RUNS_WITH[to]
  if (status !== null) {
    const error = to === 'TIMEDOUT' ? sql`jsonb_build_object('retry_' || retry_number, ${reason}::text)` : sql`'{}'::jsonb`
    await sql`
      update bulk_export_runs set status = ${status}, finished_at = ${now}, updated_at = clock_timestamp(),
        errors = nullif(coalesce(errors, '{}') || case when status = 'RUNNING' then ${error} else '{}'::jsonb end, '{}'),
        lease_owner = null, lease_token = null, lease_expires_at = null
      where export_id = ${exportId} and status in ('CREATED', 'RUNNING')`.execute(trx)
  }
  await announce(trx, 'work')
}
