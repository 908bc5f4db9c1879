import { sql } from 'kysely'
import type { Database } from '../../../../src/platform/database/schema.ts'
import type { Row } from './readers.ts'

/** The runs of a project as the store has them, by id; written down by hand, not by the code that exports. Times in microseconds. */
export async function storedRuns(db: Database, projectId: string): Promise<Map<string, Row>> {
  const { rows } = await sql<Row>`
    select id, workspace_id as tenant_id, session_id, trace_id, parent_run_id,
      (select coalesce(json_agg(right(s, 36)), '[]')::text from (
        select s from unnest(string_to_array(dotted_order, '.')) with ordinality as u (s, i)
        where i < cardinality(string_to_array(dotted_order, '.')) order by i
      ) parents) as parent_run_ids,
      reference_example_id, name, run_type,
      (extract(epoch from start_time) * 1000000)::bigint::text as start_time, (extract(epoch from end_time) * 1000000)::bigint::text as end_time,
      case when error is not null then 'error' when end_time is not null then 'success' else 'pending' end as status,
      parent_run_id is null as is_root, dotted_order,
      case when exists (select 1 from feedback f where f.run_id = r.id or f.trace_id = r.trace_id) then 'longlived' else 'shortlived' end as trace_tier,
      inputs, outputs, error, extra, events, coalesce(to_json(tags), '[]')::text as tags, run_feedback_stats(workspace_id, id)::text as feedback_stats,
      coalesce(total_tokens, 0)::text as total_tokens, coalesce(prompt_tokens, 0)::text as prompt_tokens,
      coalesce(completion_tokens, 0)::text as completion_tokens,
      total_cost::text, prompt_cost::text, completion_cost::text,
      (extract(epoch from first_token_time) * 1000000)::bigint::text as first_token_time
    from runs r where session_id = ${projectId} and complete`.execute(db)
  return new Map(rows.map((row) => [String(row['id']), row]))
}

/** An exported row, from either reader and in either format, in the form of {@link storedRuns}. */
export function normalise(row: Row): Row {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, normaliseValue(name, value)]))
}

const TIMES = ['start_time', 'end_time', 'first_token_time']
const LISTS = ['tags', 'parent_run_ids']

function normaliseValue(name: string, value: unknown): unknown {
  if (value === null || value === undefined) return null
  if (TIMES.includes(name)) return toMicroseconds(value)
  if (LISTS.includes(name)) return JSON.stringify(typeof value === 'string' ? JSON.parse(value) : value)
  if (name.endsWith('_tokens')) return String(value)
  if (name.endsWith('_cost')) return toCost(value)
  if (name === 'is_root') return value
  // JSON that is declared as JSON comes parsed from one of the readers.
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The stored form of the same: costs as numbers, lists in one spelling. */
export function comparable(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      if (value === null) return [name, null]
      if (name.endsWith('_cost')) return [name, toCost(value)]
      if (LISTS.includes(name)) return [name, JSON.stringify(JSON.parse(String(value)))]
      return [name, value]
    }),
  )
}

/** One of the readers brings decimals into doubles with an error in the last place. */
function toCost(value: unknown): string {
  return Number(value).toPrecision(14)
}

function toMicroseconds(value: unknown): string {
  if (value instanceof Date) return String(BigInt(value.getTime()) * 1000n)
  if (typeof value === 'bigint') return String(value)
  const text = String(value)
    .replace(' ', 'T')
    .replace(/\+00(?::00)?$|Z$/, '')
  const [seconds = '', fraction = ''] = text.split('.')
  return String(BigInt(Date.parse(`${seconds}Z`)) * 1000n + BigInt(fraction.padEnd(6, '0').slice(0, 6)))
}
