import { z } from 'zod'
import { destinationCreateSchema, destinationPatchSchema, destinationSchema } from '../../../contract/destination.ts'
import { defineRoute, type Route } from '../../http/route.ts'
import type { ExportContext } from '../context.ts'
import { changeCredentials, createDestination, listDestinations, readDestination } from '../destinations.ts'
import { judgePlan } from '../exports.ts'
import { BUCKET_REFUSED, destinationPath, listQuery, NOT_FOUND, PLAN_REFUSED } from './schemas.ts'

const PATH = '/api/v1/bulk-exports/destinations'
const DESTINATION = { description: 'The destination; of its credentials the names only.', schema: destinationSchema }

/** The routes of destinations (specification 2.6, 4.3). */
export function destinationRoutes(context: ExportContext): Route[] {
  return [
    defineRoute(
      {
        method: 'post',
        path: PATH,
        operationId: 'createExportDestination',
        summary: 'Makes a destination, once a test file could be written into its bucket.',
        body: destinationCreateSchema,
        answers: { 200: DESTINATION, 400: BUCKET_REFUSED, 403: PLAN_REFUSED },
      },
      async ({ body, caller }) => {
        judgePlan(caller.plan)
        return { status: 200, body: await createDestination(context, { workspaceId: caller.workspaceId, body }) }
      },
    ),
    defineRoute(
      {
        method: 'get',
        path: PATH,
        operationId: 'listExportDestinations',
        summary: 'Lists the destinations of the workspace, newest first.',
        query: listQuery,
        answers: { 200: { description: 'The destinations.', schema: z.array(destinationSchema) } },
      },
      async ({ query, caller }) => ({ status: 200, body: await listDestinations(context, { workspaceId: caller.workspaceId, ...query }) }),
    ),
    defineRoute(
      {
        method: 'get',
        path: `${PATH}/{destination_id}`,
        operationId: 'readExportDestination',
        summary: 'Reads a destination.',
        params: destinationPath,
        answers: { 200: DESTINATION, 404: NOT_FOUND },
      },
      async ({ params, caller }) => {
        const place = { workspaceId: caller.workspaceId, destinationId: params.destination_id }
        return { status: 200, body: await readDestination(context, place) }
      },
    ),
    defineRoute(
      {
        method: 'patch',
        path: `${PATH}/{destination_id}`,
        operationId: 'updateExportDestination',
        summary: 'Gives a destination new credentials, after a test write with them.',
        params: destinationPath,
        body: destinationPatchSchema,
        answers: { 200: DESTINATION, 400: BUCKET_REFUSED, 403: PLAN_REFUSED, 404: NOT_FOUND },
      },
      async ({ params, body, caller }) => {
        judgePlan(caller.plan)
        const place = { workspaceId: caller.workspaceId, destinationId: params.destination_id }
        return { status: 200, body: await changeCredentials(context, { ...place, credentials: body.credentials }) }
      },
    ),
  ]
}
