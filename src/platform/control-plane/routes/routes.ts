import type { Route } from '../../http/route.ts'
import type { DeploymentContext } from '../deployments.ts'
import { deletionRoutes } from './deletions.ts'
import { deploymentRoutes } from './deployments.ts'
import { logRoutes } from './logs.ts'
import { revisionRoutes } from './revisions.ts'
import { uploadRoutes } from './uploads.ts'

/** Every route of the control plane. */
export function controlPlaneRoutes(context: DeploymentContext): Route[] {
  return [
    ...deploymentRoutes(context),
    ...deletionRoutes(context),
    ...revisionRoutes(context),
    ...logRoutes(context.db),
    ...uploadRoutes(context),
  ]
}
