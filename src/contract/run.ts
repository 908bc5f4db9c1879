import { z } from 'zod'

/** What a run can be (hosted service). */
export const RUN_TYPES = ['tool', 'chain', 'llm', 'retriever', 'embedding', 'prompt', 'parser'] as const
export const runTypeSchema = z.enum(RUN_TYPES)
export type RunType = z.infer<typeof runTypeSchema>

/** Derived, never sent: `error` with an error, `success` with an end, else `pending`. */
export const RUN_STATUSES = ['pending', 'success', 'error'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

/** How long a trace is kept: feedback on any of its runs makes it `longlived`. */
export const TRACE_TIERS = ['shortlived', 'longlived'] as const
export type TraceTier = (typeof TRACE_TIERS)[number]

/** The tracing project of runs that name none. */
export const DEFAULT_PROJECT_NAME = 'default'

/** Aggregated feedback of one key. `values` counts the texts of feedback that has a text as its value. */
export const feedbackStatsSchema = z.record(
  z.string(),
  z.looseObject({ n: z.int(), avg: z.number().nullable(), stdev: z.number().nullable(), values: z.record(z.string(), z.int()) }),
)

/** A time in UTC without a zone, in microseconds: `2024-04-29T00:49:12.090000`. */
const time = z.string()
/** Money is a decimal in a string: no rounding on the way. */
const cost = z.string().nullable()

/**
 * A run, as the API answers it (specification 2.9; hosted service). With `select` in the query only those fields are there.
 */
export const runSchema = z.looseObject({
  id: z.guid(),
  tenant_id: z.guid(),
  session_id: z.guid().nullable(),
  trace_id: z.guid().nullable(),
  parent_run_id: z.guid().nullable(),
  parent_run_ids: z.array(z.guid()),
  child_run_ids: z.array(z.guid()).nullable(),
  direct_child_run_ids: z.array(z.guid()).nullable(),
  reference_example_id: z.guid().nullable(),
  name: z.string(),
  run_type: runTypeSchema,
  start_time: time.nullable(),
  end_time: time.nullable(),
  first_token_time: time.nullable(),
  status: z.enum(RUN_STATUSES),
  is_root: z.boolean(),
  dotted_order: z.string().nullable(),
  trace_tier: z.enum(TRACE_TIERS),
  inputs: z.unknown(),
  outputs: z.unknown(),
  error: z.string().nullable(),
  extra: z.unknown(),
  events: z.unknown(),
  serialized: z.unknown(),
  tags: z.array(z.string()),
  feedback_stats: feedbackStatsSchema.nullable(),
  total_tokens: z.int(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_cost: cost,
  prompt_cost: cost,
  completion_cost: cost,
  app_path: z.string(),
})
export type Run = z.infer<typeof runSchema>

/** The sentence of a 404 for a run that the caller's workspace does not have. */
export function runNotFound(runId: string): string {
  return `Run ID ${runId} not found.`
}
