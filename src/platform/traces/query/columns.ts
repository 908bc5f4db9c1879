import { type RawBuilder, sql } from 'kysely'
import type { ExportableField } from '../../../contract/exportable-fields.ts'

/** A time in UTC with microseconds and no zone, as the API writes it; a JavaScript date would lose the microseconds. */
function time(column: string): RawBuilder<string | null> {
  return sql`to_char(${sql.ref(column)} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US')`
}

/**
 * Each exportable field (specification 2.9) of the row `r` of `runs`, as SQL. JSON is text, times have microseconds, costs are
 * decimals in a text. The derived fields are computed here and nowhere else.
 */
export const RUN_COLUMNS: Readonly<Record<ExportableField, RawBuilder<unknown>>> = {
  id: sql.ref('r.id'),
  tenant_id: sql.ref('r.workspace_id'),
  session_id: sql.ref('r.session_id'),
  trace_id: sql.ref('r.trace_id'),
  parent_run_id: sql.ref('r.parent_run_id'),
  parent_run_ids: sql`run_parent_ids(r.dotted_order)`,
  reference_example_id: sql.ref('r.reference_example_id'),
  name: sql`coalesce(r.name, '')`,
  run_type: sql`coalesce(r.run_type, 'chain')`,
  start_time: time('r.start_time'),
  end_time: time('r.end_time'),
  status: sql.ref('r.status'),
  is_root: sql`r.parent_run_id is null`,
  dotted_order: sql.ref('r.dotted_order'),
  trace_tier: sql`run_trace_tier(r.workspace_id, r.id, r.trace_id)`,
  inputs: sql.ref('r.inputs'),
  outputs: sql.ref('r.outputs'),
  error: sql.ref('r.error'),
  extra: sql.ref('r.extra'),
  events: sql.ref('r.events'),
  tags: sql`coalesce(r.tags, '{}')`,
  feedback_stats: sql`run_feedback_stats(r.workspace_id, r.id)`,
  total_tokens: sql`coalesce(r.total_tokens, 0)::float8`,
  prompt_tokens: sql`coalesce(r.prompt_tokens, 0)::float8`,
  completion_tokens: sql`coalesce(r.completion_tokens, 0)::float8`,
  total_cost: sql`r.total_cost::text`,
  prompt_cost: sql`r.prompt_cost::text`,
  completion_cost: sql`r.completion_cost::text`,
  first_token_time: time('r.first_token_time'),
}

/** Further fields of the API's answer. */
export const API_COLUMNS = {
  serialized: sql.ref('r.serialized'),
  usage_details: sql.ref('r.usage_details'),
  thread_id: sql`run_thread_id(r.extra)`,
  inputs_preview: sql`left(r.inputs, 200)`,
  outputs_preview: sql`left(r.outputs, 200)`,
  trace_first_received_at: time('r.received_at'),
  child_run_ids: sql`(select coalesce(array_agg(c.id order by c.dotted_order), '{}') from runs c
    where c.trace_id = r.trace_id and c.workspace_id = r.workspace_id and starts_with(c.dotted_order, r.dotted_order || '.'))`,
  direct_child_run_ids: sql`(select coalesce(array_agg(c.id order by c.dotted_order), '{}') from runs c
    where c.parent_run_id = r.id and c.workspace_id = r.workspace_id)`,
  attachments: sql`(
    select coalesce(json_agg(json_build_object('name', a.name, 'content_type', a.content_type, 'size_bytes', a.size_bytes)
      order by a.name), '[]')
    from run_attachments a where a.run_id = r.id and a.workspace_id = r.workspace_id)`,
} as const satisfies Readonly<Record<string, RawBuilder<unknown>>>
