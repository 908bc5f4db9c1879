import type { ControlPlaneContext } from './context.ts'
import { deploymentOperations, type DeploymentOperations } from './deployments.ts'
import { logOperations, type LogOperations } from './logs.ts'
import { revisionOperations, type RevisionOperations } from './revisions.ts'

/** The control plane's operations (specification 4.1, hosted service). Each may throw a `RequestFailure`. */
export type ControlPlane = DeploymentOperations & RevisionOperations & LogOperations

export function createControlPlane(context: ControlPlaneContext): ControlPlane {
  const revisions = revisionOperations(context)
  const deployments = deploymentOperations({ ...context, listRevisions: revisions.listRevisions })
  return { ...deployments, ...revisions, ...logOperations(context) }
}
