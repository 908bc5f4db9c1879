import { z } from 'zod'
import { deploymentSchema, revisionCreateSchema } from '../../../contract/deployment.ts'
import { limitSchema, offsetSchema } from '../../../contract/paging.ts'
import { revisionSchema, revisionsListSchema } from '../../../contract/revision.ts'
import { defineRoute, type Route } from '../../http/route.ts'
import { deploymentAnswer, revisionAnswer } from '../answers.ts'
import { readDeployment } from '../deployment-reads.ts'
import { changeDeployment, type DeploymentContext, redeployRevision } from '../deployments.ts'
import { interruptRevision, listRevisions, readRevision } from '../revisions.ts'
import { booleanQuery, BROKEN_RULE, CONFLICT, deploymentPath, NOT_FOUND, revisionPath, revisionStatusesQuery } from './schemas.ts'

const REVISION = { description: 'The revision.', schema: revisionSchema }

/** The routes of revisions (specification 4.1; hosted service). */
export function revisionRoutes(context: DeploymentContext): Route[] {
  return [
    defineRoute(
      {
        method: 'get',
        path: '/v2/deployments/{deployment_id}/revisions',
        operationId: 'listRevisions',
        summary: 'Lists the revisions of a deployment, newest first.',
        params: deploymentPath,
        query: z.object({ limit: limitSchema, offset: offsetSchema, status: revisionStatusesQuery, remote_reconciled: booleanQuery }),
        answers: {
          200: { description: 'One page.', schema: revisionsListSchema },
          404: NOT_FOUND,
        },
      },
      async ({ params, query, caller }) => {
        await readDeployment(context.db, { workspaceId: caller.workspaceId, deploymentId: params.deployment_id })
        const rows = await listRevisions(context.db, {
          deploymentId: params.deployment_id,
          limit: query.limit,
          offset: query.offset,
          statuses: query.status,
          remoteReconciled: query.remote_reconciled,
        })
        return { status: 200, body: { resources: rows.map(revisionAnswer), offset: query.offset + rows.length } }
      },
    ),
    defineRoute(
      {
        method: 'post',
        path: '/v2/deployments/{deployment_id}/revisions',
        operationId: 'createRevision',
        summary: 'Makes a revision, whether a field changed or not.',
        params: deploymentPath,
        body: revisionCreateSchema.default({}),
        answers: { 201: REVISION, 400: BROKEN_RULE, 404: NOT_FOUND, 409: CONFLICT },
      },
      async ({ params, body, caller }) => {
        // The revision that it made is the newest one until the transaction ends.
        const { latest } = await changeDeployment(context, {
          workspaceId: caller.workspaceId,
          deploymentId: params.deployment_id,
          body,
          alwaysRevision: true,
          reason: 'a revision was asked for',
        })
        return { status: 201, body: revisionAnswer(latest) }
      },
    ),
    defineRoute(
      {
        method: 'get',
        path: '/v2/deployments/{deployment_id}/revisions/{revision_id}',
        operationId: 'readRevision',
        summary: 'Reads a revision.',
        params: revisionPath,
        answers: { 200: REVISION, 404: NOT_FOUND },
      },
      async ({ params, caller }) => {
        await readDeployment(context.db, { workspaceId: caller.workspaceId, deploymentId: params.deployment_id })
        const row = await readRevision(context.db, { deploymentId: params.deployment_id, revisionId: params.revision_id })
        return { status: 200, body: revisionAnswer(row) }
      },
    ),
    defineRoute(
      {
        method: 'post',
        path: '/v2/deployments/{deployment_id}/revisions/{revision_id}/redeploy',
        operationId: 'redeployRevision',
        summary: 'Deploys a revision once more, as a new one.',
        params: revisionPath,
        answers: {
          200: { description: 'The deployment; its latest revision is the new one.', schema: deploymentSchema },
          400: BROKEN_RULE,
          404: NOT_FOUND,
          409: CONFLICT,
        },
      },
      async ({ params, caller, origin }) => {
        const { deployment, latest } = await redeployRevision(context, {
          workspaceId: caller.workspaceId,
          deploymentId: params.deployment_id,
          revisionId: params.revision_id,
        })
        return { status: 200, body: deploymentAnswer(deployment, latest, origin) }
      },
    ),
    defineRoute(
      {
        method: 'post',
        path: '/v2/deployments/{deployment_id}/revisions/{revision_id}/interruption',
        operationId: 'interruptRevision',
        summary: 'Interrupts a revision that has not ended; the next in the queue moves on.',
        params: revisionPath,
        answers: { 202: REVISION, 404: NOT_FOUND, 409: CONFLICT },
      },
      async ({ params, caller }) => {
        await readDeployment(context.db, { workspaceId: caller.workspaceId, deploymentId: params.deployment_id })
        const { db, log } = context
        const row = await interruptRevision(db, { deploymentId: params.deployment_id, revisionId: params.revision_id, log })
        return { status: 202, body: revisionAnswer(row) }
      },
    ),
  ]
}
