import { z } from 'zod'
import {
  deploymentCreateSchema,
  deploymentPatchSchema,
  deploymentSchema,
  deploymentsListSchema,
  sourceConfigInputSchema,
} from '../../../contract/deployment.ts'
import { limitSchema, offsetSchema } from '../../../contract/paging.ts'
import { sourceRevisionConfigInputSchema } from '../../../contract/revision.ts'
import { secretsSchema } from '../../../contract/secret.ts'
import { defineRoute, type Route } from '../../http/route.ts'
import { deploymentAnswer } from '../answers.ts'
import { listDeployments, readShown } from '../deployment-reads.ts'
import { changeDeployment, createDeployment, type DeploymentContext } from '../deployments.ts'
import { booleanQuery, BROKEN_RULE, CONFLICT, deploymentPath, deploymentStatusesQuery, idsQuery, NOT_FOUND, partsQuery } from './schemas.ts'

const DEPLOYMENT = { description: 'The deployment.', schema: deploymentSchema }

/** A create request, read liberally: what the specification does not call required may be absent or null. */
export const deploymentCreateBody = deploymentCreateSchema.extend({
  source_config: sourceConfigInputSchema.nullish().transform((config) => config ?? {}),
  source_revision_config: sourceRevisionConfigInputSchema.nullish().transform((config) => config ?? {}),
  secrets: secretsSchema.nullish().transform((secrets) => secrets ?? []),
})

const text = z.string().max(255).nullish()

const listQuery = z.object({
  limit: limitSchema,
  offset: offsetSchema,
  name_contains: text,
  name: text.meta({ description: 'What the name begins with.' }),
  status: deploymentStatusesQuery,
  deployment_ids: idsQuery,
  deployment_type: text,
  remote_reconciled: booleanQuery,
  image_version: text.meta({ description: 'No deployment here has an image version.' }),
  tag_value_ids: partsQuery.meta({ type: ['string', 'null'], description: 'Comma-separated. No deployment here has tags.' }),
})

/** The routes of deployments (specification 4.1; hosted service). */
export function deploymentRoutes(context: DeploymentContext): Route[] {
  return [
    defineRoute(
      {
        method: 'post',
        path: '/v2/deployments',
        operationId: 'createDeployment',
        summary: 'Creates a deployment and its first revision.',
        body: deploymentCreateBody,
        answers: { 201: DEPLOYMENT, 400: BROKEN_RULE, 409: CONFLICT },
      },
      async ({ body, caller, origin }) => {
        const { deployment, latest } = await createDeployment(context, { workspaceId: caller.workspaceId, body })
        return { status: 201, body: deploymentAnswer(deployment, latest, origin) }
      },
    ),
    defineRoute(
      {
        method: 'get',
        path: '/v2/deployments',
        operationId: 'listDeployments',
        summary: "Lists the workspace's deployments, newest first.",
        query: listQuery,
        answers: { 200: { description: 'One page.', schema: deploymentsListSchema } },
      },
      async ({ query, caller, origin }) => {
        // Filters by what no deployment here has find nothing.
        const impossible = Boolean(query.image_version) || query.tag_value_ids !== null
        const filter = {
          limit: query.limit,
          offset: query.offset,
          nameContains: query.name_contains || null,
          namePrefix: query.name || null,
          statuses: query.status,
          ids: query.deployment_ids,
          deploymentType: query.deployment_type || null,
          remoteReconciled: query.remote_reconciled,
        }
        const rows = impossible ? [] : await listDeployments(context.db, { workspaceId: caller.workspaceId, filter })
        const resources = rows.map(({ deployment, latest }) => deploymentAnswer(deployment, latest, origin))
        return { status: 200, body: { resources, offset: query.offset + resources.length } }
      },
    ),
    defineRoute(
      {
        method: 'get',
        path: '/v2/deployments/{deployment_id}',
        operationId: 'readDeployment',
        summary: 'Reads a deployment.',
        params: deploymentPath,
        answers: { 200: DEPLOYMENT, 404: NOT_FOUND },
      },
      async ({ params, caller, origin }) => {
        const key = { workspaceId: caller.workspaceId, deploymentId: params.deployment_id }
        const { deployment, latest } = await readShown(context.db, key)
        return { status: 200, body: deploymentAnswer(deployment, latest, origin) }
      },
    ),
    defineRoute(
      {
        method: 'patch',
        path: '/v2/deployments/{deployment_id}',
        operationId: 'patchDeployment',
        summary: 'Updates a deployment; some fields make a revision.',
        params: deploymentPath,
        body: deploymentPatchSchema,
        answers: { 200: DEPLOYMENT, 400: BROKEN_RULE, 404: NOT_FOUND, 409: CONFLICT },
      },
      async ({ params, body, caller, origin }) => {
        const { deployment, latest } = await changeDeployment(context, {
          workspaceId: caller.workspaceId,
          deploymentId: params.deployment_id,
          body,
          alwaysRevision: false,
          reason: 'the deployment was updated',
        })
        return { status: 200, body: deploymentAnswer(deployment, latest, origin) }
      },
    ),
  ]
}
