import { sql } from 'kysely'
import type { DatabaseTransaction } from '../../database/schema.ts'

/**
 * Holds traces, given in their order, until the transaction ends: two requests of one trace would else each miss the other's runs. To be
 * called before runs are written: who has written some and then waits here holds what the other needs to go on.
 */
export async function lockTraces(trx: DatabaseTransaction, traces: readonly string[]): Promise<void> {
  await sql`
    select pg_advisory_xact_lock(hashtextextended(trace, 0))
    from unnest(${traces}::text[]) with ordinality as given (trace, place) order by place`.execute(trx)
}

/**
 * Gives the runs that came without a dotted order (OpenTelemetry spans, clients that do not place their runs) one that follows
 * from their parents, as far as those are known by now. It is done anew for a trace whenever such a run arrives, because children
 * often come before their parents. The traces are held by `lockTraces`.
 */
export async function deriveDottedOrders(
  trx: DatabaseTransaction,
  workspaceId: string,
  traces: readonly string[],
): Promise<void> {
  await sql`
    with recursive placed as (
      select r.id, r.trace_id, case when r.order_derived then ${SEGMENT} else r.dotted_order end as path
      from runs r
      where r.workspace_id = ${workspaceId} and r.trace_id = any(${traces}::uuid[]) and not exists (
        select 1 from runs p where p.workspace_id = r.workspace_id and p.id = r.parent_run_id and p.trace_id = r.trace_id
      )
      union all
      select r.id, r.trace_id, case when r.order_derived then placed.path || '.' || ${SEGMENT} else r.dotted_order end
      from placed join runs r on r.workspace_id = ${workspaceId} and r.parent_run_id = placed.id and r.trace_id = placed.trace_id
    )
    update runs set dotted_order = placed.path
    from placed
    where runs.workspace_id = ${workspaceId} and runs.id = placed.id and runs.order_derived
      and runs.dotted_order is distinct from placed.path and placed.path is not null`.execute(trx)
}

const SEGMENT = sql`to_char(r.start_time at time zone 'utc', 'YYYYMMDD"T"HH24MISSUS"Z"') || r.id`
