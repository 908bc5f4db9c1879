import { z } from 'zod'
import { bulkExportCreateSchema, bulkExportPatchSchema, bulkExportRunSchema, bulkExportSchema } from '../../../contract/bulk-export.ts'
import { defineRoute, type Route } from '../../http/route.ts'
import type { ExportContext } from '../context.ts'
import { cancelExport, createExport, judgePlan, listExports, readExport } from '../exports.ts'
import { listRuns, listRunsOfSchedule, readRun } from '../runs.ts'
import { ENDED, exportPath, exportRunPath, listQuery, NOT_FOUND, PLAN_REFUSED, scheduleQuery, TOO_MANY } from './schemas.ts'

const PATH = '/api/v1/bulk-exports'
const EXPORT = { description: 'The export.', schema: bulkExportSchema }
const RUNS = { description: 'The export runs.', schema: z.array(bulkExportRunSchema) }

/** The routes of exports and their runs (specification 2.7, 2.8, 4.3). Every success is a 200, as in the hosted service. */
export function exportRoutes(context: ExportContext): Route[] {
  return [
    defineRoute(
      {
        method: 'post',
        path: PATH,
        operationId: 'createBulkExport',
        summary: 'Makes an export: one-off with end_time, scheduled with interval_hours.',
        body: bulkExportCreateSchema,
        answers: { 200: EXPORT, 403: PLAN_REFUSED, 404: NOT_FOUND, 429: TOO_MANY },
      },
      async ({ body, caller }) => {
        judgePlan(caller.plan)
        return { status: 200, body: await createExport(context, { workspaceId: caller.workspaceId, body }) }
      },
    ),
    defineRoute(
      {
        method: 'get',
        path: PATH,
        operationId: 'listBulkExports',
        summary: 'Lists the exports of the workspace, newest first.',
        query: listQuery,
        answers: { 200: { description: 'The exports.', schema: z.array(bulkExportSchema) } },
      },
      async ({ query, caller }) => ({ status: 200, body: await listExports(context, { workspaceId: caller.workspaceId, ...query }) }),
    ),
    defineRoute(
      {
        method: 'get',
        path: `${PATH}/runs`,
        operationId: 'listRunsOfSchedule',
        summary: 'Lists the runs of all exports that a schedule has spawned.',
        query: listQuery.extend(scheduleQuery.shape),
        answers: { 200: RUNS, 404: NOT_FOUND },
      },
      async ({ query: { source_bulk_export_id: scheduleId, ...page }, caller }) => ({
        status: 200,
        body: await listRunsOfSchedule(context, { workspaceId: caller.workspaceId, scheduleId, ...page }),
      }),
    ),
    defineRoute(
      {
        method: 'get',
        path: `${PATH}/{export_id}`,
        operationId: 'readBulkExport',
        summary: 'Reads an export.',
        params: exportPath,
        answers: { 200: EXPORT, 404: NOT_FOUND },
      },
      async ({ params, caller }) => ({
        status: 200,
        body: await readExport(context, { workspaceId: caller.workspaceId, exportId: params.export_id }),
      }),
    ),
    defineRoute(
      {
        method: 'patch',
        path: `${PATH}/{export_id}`,
        operationId: 'cancelBulkExport',
        summary: 'Cancels an export; of a schedule only the spawning ends.',
        params: exportPath,
        body: bulkExportPatchSchema.default({ status: 'Cancelled' }),
        answers: { 200: EXPORT, 404: NOT_FOUND, 409: ENDED },
      },
      async ({ params, caller }) => ({
        status: 200,
        body: await cancelExport(context, { workspaceId: caller.workspaceId, exportId: params.export_id }),
      }),
    ),
    defineRoute(
      {
        method: 'get',
        path: `${PATH}/{export_id}/runs`,
        operationId: 'listBulkExportRuns',
        summary: 'Lists the runs of an export, by their windows.',
        params: exportPath,
        answers: { 200: RUNS, 404: NOT_FOUND },
      },
      async ({ params, caller }) => ({
        status: 200,
        body: await listRuns(context, { workspaceId: caller.workspaceId, exportId: params.export_id }),
      }),
    ),
    defineRoute(
      {
        method: 'get',
        path: `${PATH}/{export_id}/runs/{run_id}`,
        operationId: 'readBulkExportRun',
        summary: 'Reads an export run.',
        params: exportRunPath,
        answers: { 200: { description: 'The export run.', schema: bulkExportRunSchema }, 404: NOT_FOUND },
      },
      async ({ params, caller }) => ({
        status: 200,
        body: await readRun(context, { workspaceId: caller.workspaceId, exportId: params.export_id, runId: params.run_id }),
      }),
    ),
  ]
}
