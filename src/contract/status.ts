import { z } from 'zod'

/**
 * The statuses of a revision and of a deployment (specification 3.1; the statuses of a deployment as observed).
 * A reader must carry a status that it does not know as it is: the service adds values without notice.
 */
export const REVISION_STATUSES = [
  'CREATING',
  'QUEUED',
  'AWAITING_BUILD',
  'BUILDING',
  'AWAITING_DEPLOY',
  'DEPLOYING',
  'CREATE_FAILED',
  'BUILD_FAILED',
  'DEPLOY_FAILED',
  'DEPLOYED',
  'SKIPPED',
  'INTERRUPTED',
  'UNKNOWN',
] as const

export const revisionStatusSchema = z.enum(REVISION_STATUSES)
export type RevisionStatus = z.infer<typeof revisionStatusSchema>

/** Statuses that a revision never leaves. `UNKNOWN` is not one of them: the service says "unknown", not "over". */
export const FINAL_REVISION_STATUSES = [
  'DEPLOYED',
  'CREATE_FAILED',
  'BUILD_FAILED',
  'DEPLOY_FAILED',
  'SKIPPED',
  'INTERRUPTED',
] as const satisfies readonly RevisionStatus[]

/** The part of `FINAL_REVISION_STATUSES` that ends badly by the service's own fault or the source's. */
export const FAILED_REVISION_STATUSES = [
  'CREATE_FAILED',
  'BUILD_FAILED',
  'DEPLOY_FAILED',
] as const satisfies readonly RevisionStatus[]

export const DEPLOYMENT_STATUSES = ['AWAITING_DATABASE', 'READY', 'UNUSED', 'AWAITING_DELETE', 'UNKNOWN'] as const
export const deploymentStatusSchema = z.enum(DEPLOYMENT_STATUSES)
export type DeploymentStatus = z.infer<typeof deploymentStatusSchema>

/** True for one of the thirteen statuses of specification 3.1. */
export function isKnownRevisionStatus(status: string): status is RevisionStatus {
  return (REVISION_STATUSES as readonly string[]).includes(status)
}

/**
 * True when the revision will not change any more. A status that ends in `_FAILED` is final even if this version has never
 * heard of it: waiting on it would only turn a clear failure into a timeout.
 */
export function isFinalRevisionStatus(status: string): boolean {
  return (FINAL_REVISION_STATUSES as readonly string[]).includes(status) || status.endsWith('_FAILED')
}

/** True for the three `*_FAILED` statuses, and for any other that ends so. */
export function isFailedRevisionStatus(status: string): boolean {
  return status.endsWith('_FAILED')
}
