import { type RawBuilder, sql } from 'kysely'
import { API_COLUMNS, RUN_COLUMNS } from './columns.ts'

type ApiColumn = keyof typeof API_COLUMNS
const COLUMNS: Readonly<Record<string, RawBuilder<unknown>>> = { ...RUN_COLUMNS, ...API_COLUMNS }

/** Columns that cost a look into other rows: only on request, and for a single run. */
const COSTLY: readonly ApiColumn[] = ['child_run_ids', 'direct_child_run_ids', 'attachments']
const JSON_COLUMNS = ['inputs', 'outputs', 'extra', 'events', 'serialized'] as const
const DETAILS = ['prompt_token_details', 'completion_token_details', 'prompt_cost_details', 'completion_cost_details'] as const

/** What the API says of every run alike: parts of the hosted service that have no meaning here. */
const CONSTANTS = {
  execution_order: 1,
  in_dataset: false,
  share_token: null,
  manifest_id: null,
  price_model_id: null,
  reference_dataset_id: null,
  ttl_seconds: null,
  trace_upgrade: null,
  last_queued_at: null,
  s3_urls: null,
} as const

export interface RunSelection {
  readonly columns: RawBuilder<unknown>
  /** A row of those columns as the API's answer. */
  toAnswer(row: Record<string, unknown>): Record<string, unknown>
}

/** Everything that the API says of a run; in lists without what is costly to find. */
export function selectAll({ costly }: { costly: boolean }): RunSelection {
  const names = Object.keys(COLUMNS).filter((name) => costly || !COSTLY.includes(name as ApiColumn))
  return select({ columns: names, wanted: null })
}

/**
 * The fields that a query selected. `id` is always there; names that are no fields are passed over, as the hosted service does.
 */
export function selectFields(fields: readonly string[]): RunSelection {
  const wanted = new Set(['id', ...fields])
  const columns = Object.keys(COLUMNS).filter((name) => wanted.has(name))
  if (DETAILS.some((name) => wanted.has(name))) columns.push('usage_details')
  if (wanted.has('app_path')) columns.push('tenant_id', 'session_id', 'trace_id')
  return select({ columns: [...new Set(columns)], wanted })
}

function select({ columns, wanted }: { columns: readonly string[]; wanted: ReadonlySet<string> | null }): RunSelection {
  const list = columns.map((name) => sql`${COLUMNS[name] as RawBuilder<unknown>} as ${sql.ref(name)}`)
  return {
    columns: sql.join(list),
    toAnswer(row) {
      const answer = { ...CONSTANTS, ...row, ...readJson(row), ...readDetails(row), app_path: appPath(row) }
      delete answer.usage_details
      return wanted === null ? answer : Object.fromEntries(Object.entries(answer).filter(([name]) => wanted.has(name)))
    },
  }
}

function readJson(row: Record<string, unknown>): Record<string, unknown> {
  const read: Record<string, unknown> = {}
  for (const name of JSON_COLUMNS) if (typeof row[name] === 'string') read[name] = JSON.parse(row[name])
  return read
}

function readDetails(row: Record<string, unknown>): Record<string, unknown> & { usage_details?: unknown } {
  const { usage_details: text } = row
  const details = typeof text === 'string' ? (JSON.parse(text) as Record<string, unknown>) : {}
  return Object.fromEntries(DETAILS.map((name) => [name, details[name] ?? null]))
}

/** Where a user interface would show the run. */
function appPath(row: Record<string, unknown>): string {
  const [tenant, session, id, trace] = ['tenant_id', 'session_id', 'id', 'trace_id'].map((name) => String(row[name]))
  return `/o/${tenant}/projects/p/${session}/r/${id}?trace_id=${trace}`
}
