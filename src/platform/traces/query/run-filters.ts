import { type RawBuilder, sql } from 'kysely'
import type { Filter } from '../../../contract/filter/filter.ts'
import { FilterError } from '../../../contract/filter/filter-error.ts'
import { parseFilter } from '../../../contract/filter/parse.ts'
import { toInstant } from '../../../contract/instant.ts'
import type { FilterValidation, RunQuery } from '../../../contract/run-query.ts'
import { HttpProblem } from '../../http/problem.ts'
import { compileFilter } from './compile-filter.ts'

const FILTERS = ['filter', 'trace_filter', 'tree_filter'] as const

type Condition = RawBuilder<unknown>

/**
 * What a query asks of the rows `r` of `runs`: those of the workspace, complete, that meet every field of the body.
 * @throws {HttpProblem} 400 for a filter or a time that cannot be read, and for a query that names nothing to look in.
 */
export function runConditions(workspaceId: string, query: RunQuery): Condition {
  if (!query.session?.length && !query.id?.length && !query.trace && !query.parent_run && !query.reference_example?.length) {
    throw new HttpProblem(400, "At least one of 'session', 'id', 'parent_run', 'trace' or 'reference_example' must be specified.")
  }
  if (query.query) throw new HttpProblem(400, "The field 'query' is not supported: write the condition as a 'filter'.")
  const conditions: Condition[] = [sql`r.workspace_id = ${workspaceId}`, sql`r.complete`]
  if (query.id?.length) conditions.push(sql`r.id = any(${query.id}::uuid[])`)
  if (query.session?.length) {
    // One project is said as such, so that its runs are read along the index in their order.
    conditions.push(
      query.session.length === 1 ? sql`r.session_id = ${query.session[0]}` : sql`r.session_id = any(${query.session}::uuid[])`,
    )
  }
  if (query.trace) conditions.push(sql`r.trace_id = ${query.trace}`)
  if (query.parent_run) conditions.push(sql`r.parent_run_id = ${query.parent_run}`)
  if (query.reference_example?.length) conditions.push(sql`r.reference_example_id = any(${query.reference_example}::uuid[])`)
  if (query.run_type) conditions.push(sql`r.run_type = ${query.run_type}`)
  if (query.start_time) conditions.push(sql`r.start_time >= ${readTime('start_time', query.start_time)}::timestamptz`)
  if (query.end_time) conditions.push(sql`r.start_time < ${readTime('end_time', query.end_time)}::timestamptz`)
  if (typeof query.error === 'boolean') conditions.push(query.error ? sql`r.error is not null` : sql`r.error is null`)
  // Clients of old asked for roots by their place in the order of execution.
  const root = query.is_root ?? (query.execution_order === 1 ? true : null)
  if (root !== null) conditions.push(root ? sql`r.parent_run_id is null` : sql`r.parent_run_id is not null`)
  for (const name of FILTERS) {
    const text = query[name]
    if (text) conditions.push(compileFor(name, readFilter(name, text)))
  }
  return sql.join(conditions, sql` and `)
}

function compileFor(name: (typeof FILTERS)[number], filter: Filter): Condition {
  if (name === 'filter') return compileFilter(filter)
  const root = name === 'trace_filter' ? sql`and t.parent_run_id is null` : sql``
  return sql`exists (select 1 from runs t where t.workspace_id = r.workspace_id and t.trace_id = r.trace_id and t.complete ${root}
    and ${compileFilter(filter, 't')})`
}

function readFilter(name: string, text: string): Filter {
  try {
    return parseFilter(text)
  } catch (error) {
    if (error instanceof FilterError) throw new HttpProblem(400, `The ${name} cannot be used: ${error.message}.`)
    throw error
  }
}

function readTime(name: string, text: string): string {
  const instant = toInstant(text)
  if (instant === null)
    throw new HttpProblem(400, `The ${name} is not a time such as 2026-11-20T08:00:00Z: ${JSON.stringify(text)}.`)
  return instant
}

/** What `POST /runs/query/validate` answers (hosted service): each filter that cannot be used, and why. */
export function validateFilters(filters: Partial<Record<(typeof FILTERS)[number], string | null | undefined>>): FilterValidation {
  const errors: FilterValidation['errors'] = []
  for (const name of FILTERS) {
    const text = filters[name]
    if (text === undefined || text === null || text === '') continue
    try {
      parseFilter(text)
    } catch (error) {
      if (!(error instanceof FilterError)) throw error
      errors.push({ field: name, message: error.message, position: error.position })
    }
  }
  return { valid: errors.length === 0, errors }
}
