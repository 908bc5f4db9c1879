import { z } from 'zod'
import { runSchema } from '../../../contract/run.ts'
import {
  filterValidationRequestSchema,
  filterValidationSchema,
  runPageSchema,
  runQuerySchema,
} from '../../../contract/run-query.ts'
import type { Database } from '../../database/schema.ts'
import { defineRoute, type Route } from '../../http/route.ts'
import { validateFilters } from '../query/run-filters.ts'
import { queryRuns, readRun, runStats } from '../query/runs.ts'

const NOT_FOUND = { description: 'The workspace has no such run.' }
const runPath = z.object({ run_id: z.guid().transform((id) => id.toLowerCase()) })

/** Reading runs (hosted service). */
export function runRoutes(db: Database): Route[] {
  return [
    defineRoute(
      {
        method: 'post',
        path: '/runs/query',
        operationId: 'query_runs',
        summary: 'Find runs, a page at a time.',
        body: runQuerySchema,
        answers: {
          200: { description: 'One page of runs.', schema: runPageSchema },
          400: { description: 'The filter or the cursor cannot be used.' },
        },
      },
      async ({ body, caller }) => ({ status: 200, body: await queryRuns(db, caller.workspaceId, body) }),
    ),
    defineRoute(
      {
        method: 'post',
        path: '/runs/query/validate',
        operationId: 'validate_run_query',
        summary: 'Check filter expressions without running them.',
        body: filterValidationRequestSchema,
        answers: { 200: { description: 'Whether they are valid, and what is wrong.', schema: filterValidationSchema } },
      },
      async ({ body }) => ({ status: 200, body: validateFilters(body) }),
    ),
    defineRoute(
      {
        method: 'post',
        path: '/runs/stats',
        operationId: 'run_stats',
        summary: 'Numbers over the runs that a query finds.',
        body: runQuerySchema,
        answers: {
          200: { description: 'Counts, latencies, tokens and costs.' },
          400: { description: 'The filter cannot be used.' },
        },
      },
      async ({ body, caller }) => ({ status: 200, body: await runStats(db, caller.workspaceId, body) }),
    ),
    defineRoute(
      {
        method: 'get',
        path: '/runs/{run_id}',
        operationId: 'read_run',
        summary: 'Read one run.',
        params: runPath,
        answers: { 200: { description: 'The run.', schema: runSchema }, 404: NOT_FOUND },
      },
      async ({ params, caller }) => ({
        status: 200,
        body: await readRun(db, { workspaceId: caller.workspaceId, runId: params.run_id }),
      }),
    ),
  ]
}
