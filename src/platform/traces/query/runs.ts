import { type RawBuilder, sql } from 'kysely'
import { runNotFound } from '../../../contract/run.ts'
import { RUN_QUERY_LIMIT_MAX, type RunQuery } from '../../../contract/run-query.ts'
import type { Database } from '../../database/schema.ts'
import { HttpProblem } from '../../http/problem.ts'
import { selectAll, selectFields } from './answer.ts'
import { type Cursor, readCursor, writeCursor } from './cursor.ts'
import { runConditions } from './run-filters.ts'

/** Room for the data of one page, in bytes: a page of large runs is a shorter one. */
const PAGE_BYTES_MAX = 64 * 1024 * 1024

export interface RunPage {
  readonly runs: Record<string, unknown>[]
  readonly cursors: { readonly next: string | null }
  readonly parsed_query: null
}

/** The page's place and weight, beside the columns that were selected. */
interface Placed {
  place_start: string
  place_id: string
  page_found: string
}

/**
 * One page of runs (hosted service), newest first unless asked otherwise. Pages follow each other by the place of the last
 * run, so that runs which arrive in between neither repeat nor hide others.
 * @throws {HttpProblem} 400.
 */
export async function queryRuns(db: Database, workspaceId: string, query: RunQuery): Promise<RunPage> {
  const order = query.order ?? 'desc'
  const limit = query.limit ?? RUN_QUERY_LIMIT_MAX
  const conditions = runConditions(workspaceId, query)
  const cursor = query.cursor ? readCursor(query.cursor, order) : null
  const selection = query.select?.length ? selectFields(query.select) : selectAll({ costly: false })
  const direction = order === 'asc' ? sql`asc` : sql`desc`
  const after =
    cursor === null
      ? sql``
      : sql`and (r.start_time, r.id) ${order === 'asc' ? sql`>` : sql`<`} (${placeOf(cursor)}, ${cursor.id}::uuid)`
  const ordering = sql`r.start_time ${direction}, r.id ${direction}`
  const { rows } = await sql<Record<string, unknown> & Placed>`
    with page as materialized (
      select r.workspace_id, r.id, r.start_time,
        coalesce(octet_length(r.inputs), 0) + coalesce(octet_length(r.outputs), 0) + coalesce(octet_length(r.events), 0) as weight
      from runs r where ${conditions} ${after} order by ${ordering} limit ${limit + 1}
    ), weighed as (
      select r.*, sum(r.weight) over (order by ${ordering}) - r.weight as weight_before, count(*) over () as found from page r
    )
    select ${selection.columns},
      trunc(extract(epoch from w.start_time) * 1000000)::text as place_start, w.id as place_id, w.found as page_found
    from weighed w join runs r on r.workspace_id = w.workspace_id and r.id = w.id
    where w.weight_before < ${PAGE_BYTES_MAX}
    order by ${ordering} limit ${limit}`.execute(db)
  const last = rows.at(-1)
  const more = last !== undefined && Number(last.page_found) > rows.length
  return {
    runs: rows.map(({ place_start: _start, place_id: _id, page_found: _found, ...row }) => selection.toAnswer(row)),
    cursors: { next: more ? writeCursor({ start: last.place_start, id: last.place_id, order }) : null },
    parsed_query: null,
  }
}

function placeOf({ start }: Cursor): RawBuilder<unknown> {
  return sql`timestamptz '1970-01-01 00:00:00Z' + ${`${start} microseconds`}::interval`
}

/** @throws {HttpProblem} 404 when the workspace has no such run. */
export async function readRun(
  db: Database,
  { workspaceId, runId }: { workspaceId: string; runId: string },
): Promise<Record<string, unknown>> {
  const selection = selectAll({ costly: true })
  const { rows } = await sql<Record<string, unknown>>`
    select ${selection.columns} from runs r where r.workspace_id = ${workspaceId} and r.id = ${runId}`.execute(db)
  const [row] = rows
  if (row === undefined) throw new HttpProblem(404, runNotFound(runId))
  return selection.toAnswer(row)
}

/** Numbers over all runs that a query finds (`POST /runs/stats`). Times are in seconds. */
export async function runStats(db: Database, workspaceId: string, query: RunQuery): Promise<Record<string, unknown>> {
  const { rows } = await sql<Record<string, unknown>>`
    select count(*)::float8 as run_count,
      percentile_cont(0.5) within group (order by extract(epoch from r.end_time - r.start_time)) as latency_p50,
      percentile_cont(0.99) within group (order by extract(epoch from r.end_time - r.start_time)) as latency_p99,
      percentile_cont(0.5) within group (order by extract(epoch from r.first_token_time - r.start_time)) as first_token_p50,
      percentile_cont(0.99) within group (order by extract(epoch from r.first_token_time - r.start_time)) as first_token_p99,
      coalesce(sum(r.total_tokens), 0)::float8 as total_tokens,
      coalesce(sum(r.prompt_tokens), 0)::float8 as prompt_tokens,
      coalesce(sum(r.completion_tokens), 0)::float8 as completion_tokens,
      sum(r.total_cost)::text as total_cost,
      sum(r.prompt_cost)::text as prompt_cost,
      sum(r.completion_cost)::text as completion_cost,
      to_char(max(r.start_time) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US') as last_run_start_time,
      (count(*) filter (where r.error is not null))::float8 / nullif(count(*), 0) as error_rate
    from runs r where ${runConditions(workspaceId, query)}`.execute(db)
  return rows[0] ?? {}
}
