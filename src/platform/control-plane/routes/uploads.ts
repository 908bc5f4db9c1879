import { detailErrorSchema } from '../../../contract/errors.ts'
import { HttpProblem } from '../../http/problem.ts'
import { defineRoute, type Route } from '../../http/route.ts'
import { readDeployment } from '../deployment-reads.ts'
import type { DeploymentContext } from '../deployments.ts'
import { deploymentPath, NOT_FOUND } from './schemas.ts'

/** What the ecosystem's command line asks for before it uploads, and the source that alone has it (hosted service). */
const UPLOADS = [
  { path: 'push-token', operationId: 'requestPushToken', what: 'Push tokens', source: 'internal_docker' },
  { path: 'upload-url', operationId: 'requestUploadUrl', what: 'Upload addresses', source: 'internal_source' },
] as const

/** Routes for sources that this service does not have: they say so, in the words that clients look for. */
export function uploadRoutes({ db }: Pick<DeploymentContext, 'db'>): Route[] {
  return UPLOADS.map(({ path, operationId, what, source }) =>
    defineRoute(
      {
        method: 'post',
        path: `/v2/deployments/{deployment_id}/${path}`,
        operationId,
        summary: `Refuses, with the reason: no deployment here has the source ${source}.`,
        params: deploymentPath,
        answers: { 400: { description: 'The source is another one.', schema: detailErrorSchema }, 404: NOT_FOUND },
      },
      async ({ params, caller }) => {
        const deployment = await readDeployment(db, { workspaceId: caller.workspaceId, deploymentId: params.deployment_id })
        throw new HttpProblem(
          400,
          `${what} are only available for '${source}' source deployments; the source of this one is '${deployment.source}'.`,
        )
      },
    ),
  )
}
