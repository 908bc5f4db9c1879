import { z } from 'zod'

export const RUN_QUERY_LIMIT_MAX = 100
/** Longest filter text, in characters. */
export const FILTER_LENGTH_MAX = 20_000

const ids = z.array(z.guid()).max(10_000)
const filter = z.string().max(FILTER_LENGTH_MAX)
/** ISO 8601; without a zone it is UTC. */
const time = z.string().max(64)

/**
 * The body of `POST /runs/query` (hosted service). `start_time` is inclusive, `end_time` exclusive, both on the start of the
 * run. `trace_filter` is judged on the root of the run's trace, `tree_filter` on any run of it.
 */
export const runQuerySchema = z.looseObject({
  id: ids.nullish(),
  trace: z.guid().nullish(),
  parent_run: z.guid().nullish(),
  run_type: z.string().nullish(),
  session: ids.nullish(),
  reference_example: ids.nullish(),
  execution_order: z.int().nullish(),
  start_time: time.nullish(),
  end_time: time.nullish(),
  error: z.boolean().nullish(),
  is_root: z.boolean().nullish(),
  query: z.string().nullish(),
  filter: filter.nullish(),
  trace_filter: filter.nullish(),
  tree_filter: filter.nullish(),
  cursor: z.string().max(500).nullish(),
  limit: z.int().min(1).max(RUN_QUERY_LIMIT_MAX).nullish(),
  select: z.array(z.string()).max(100).nullish(),
  order: z.enum(['asc', 'desc']).nullish(),
})
export type RunQuery = z.infer<typeof runQuerySchema>

export const runPageSchema = z.looseObject({
  runs: z.array(z.looseObject({})),
  cursors: z.looseObject({ next: z.string().nullable() }),
  parsed_query: z.string().nullable(),
})

/** The body of `POST /runs/query/validate`, and its answer (hosted service). */
export const filterValidationRequestSchema = z.looseObject({
  filter: filter.nullish(),
  trace_filter: filter.nullish(),
  tree_filter: filter.nullish(),
})
export const filterValidationSchema = z.looseObject({
  valid: z.boolean(),
  errors: z.array(z.looseObject({ field: z.string(), message: z.string() })),
})
export type FilterValidation = z.infer<typeof filterValidationSchema>
