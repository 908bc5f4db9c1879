import { z } from 'zod'
import { deploymentNotFound } from '../../../contract/errors.ts'
import { HttpProblem } from '../../http/problem.ts'
import { defineRoute, type Route } from '../../http/route.ts'
import { deleteDeployment, type DeploymentContext, deleteDeployments } from '../deployments.ts'
import { booleanQuery, deploymentPath, idSchema, NOT_FOUND } from './schemas.ts'

/** The most deployments that one request may delete (hosted service). */
const BULK_MAX = 100

const bulkAnswerSchema = z.object({
  deleted: z.array(z.uuid()),
  failed: z.array(z.object({ id: z.guid(), detail: z.string() })),
})

/** The routes that delete (hosted service). They answer at once; reading a deployment answers 404 when it is gone. */
export function deletionRoutes({ db }: Pick<DeploymentContext, 'db'>): Route[] {
  return [
    defineRoute(
      {
        method: 'delete',
        path: '/v2/deployments/{deployment_id}',
        operationId: 'deleteDeployment',
        summary: 'Deletes a deployment. Answers at once; reading it answers 404 when it is gone.',
        params: deploymentPath,
        query: z.object({ delete_tracing_project: booleanQuery }),
        answers: { 204: { description: 'It is being deleted.' }, 404: NOT_FOUND },
      },
      async ({ params, query, caller }) => {
        await deleteDeployment(db, {
          workspaceId: caller.workspaceId,
          deploymentId: params.deployment_id,
          deleteTracingProject: query.delete_tracing_project ?? false,
        })
        return { status: 204 }
      },
    ),
    defineRoute(
      {
        method: 'delete',
        path: '/v2/deployments',
        operationId: 'deleteDeployments',
        summary: 'Deletes several deployments.',
        query: z.object({ deployment_ids: z.array(idSchema).min(1).max(BULK_MAX), delete_tracing_project: booleanQuery }),
        repeated: ['deployment_ids'],
        answers: {
          200: { description: 'All are being deleted.', schema: bulkAnswerSchema },
          207: { description: 'Some are being deleted, some were not found.', schema: bulkAnswerSchema },
          404: NOT_FOUND,
        },
      },
      async ({ query, caller }) => {
        const wanted = [...new Set(query.deployment_ids)]
        const deleted = await deleteDeployments(db, {
          workspaceId: caller.workspaceId,
          deploymentIds: wanted,
          deleteTracingProject: query.delete_tracing_project ?? false,
        })
        const failed = wanted.filter((id) => !deleted.includes(id)).map((id) => ({ id, detail: deploymentNotFound(id) }))
        if (deleted.length === 0) throw new HttpProblem(404, failed.map(({ detail }) => detail).join(' '))
        return { status: failed.length === 0 ? 200 : 207, body: { deleted, failed } }
      },
    ),
  ]
}
