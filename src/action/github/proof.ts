import { z } from 'zod'
import type { Github } from './github.ts'

/** The `task` of the deployment records that this action makes. */
export const TASK = 'deploy:agent-server'

const KEY = 'deploy-agent-server'
/** Records that are looked through, the newest first; those of previews are among them, one for each push. */
const RECORDS_MAX = 1000
/** The same of the records of one deployment, whose statuses are read one by one. */
const STATUSES_MAX = 100

/** What a deployment record says about the deployment that it stands for. */
export type RecordPayload = {
  /** Its name; where the workflow gave only the id, the id. */
  deployment: string
  /** Address of the control plane. */
  'control-plane': string
  mode: string
  'pull-request'?: number
  'deployment-id'?: string
  /** Tells the records of two steps apart. */
  step?: string
}

const payloadSchema = z.looseObject({
  [KEY]: z.looseObject({
    deployment: z.string(),
    'control-plane': z.string(),
    mode: z.string(),
    'pull-request': z.int().optional(),
    'deployment-id': z.string().optional(),
    step: z.string().optional(),
  }),
})

export function payloadOf(fields: RecordPayload): Record<string, unknown> {
  return { [KEY]: fields }
}

/** What `payloadOf` was given; null for a record of something else. */
export function readPayload(payload: unknown): RecordPayload | null {
  const parsed = payloadSchema.safeParse(payload)
  if (!parsed.success) return null
  const { deployment, mode, ...rest } = parsed.data[KEY]
  const [pullRequest, deploymentId, step] = [rest['pull-request'], rest['deployment-id'], rest.step]
  return {
    deployment,
    'control-plane': rest['control-plane'],
    mode,
    ...(pullRequest === undefined ? {} : { 'pull-request': pullRequest }),
    ...(deploymentId === undefined ? {} : { 'deployment-id': deploymentId }),
    ...(step === undefined ? {} : { step }),
  }
}

/** Description of the status `success`; the proof that a promotion looks for. */
export function servesDescription(revisionId: string, smokeTestPassed: boolean): string {
  return `Revision ${revisionId} serves${smokeTestPassed ? `; ${PASSED}` : ''}`
}

const PASSED = 'smoke test passed'

/** Description of the status of a revision that has failed; `what` begins with the code. */
export function failsDescription(revisionId: string, what: string): string {
  return `Revision ${revisionId}: ${what}`
}

/** That this revision of this deployment has passed its smoke test: the commit and the environment of the record. */
export type Proof = { sha: string; at: number; environment: string; recordId: number }

/**
 * Looks for the record of a smoke test that this revision of this control plane has passed, and has not failed since. Null when there
 * is none: records of this repository are proof, since only who may write to it can make them. Throws a `GithubFailure`.
 */
export async function findProof(
  github: Pick<Github, 'listDeployments' | 'listDeploymentStatuses'>,
  {
    deploymentName,
    deploymentId,
    revisionId,
    controlPlaneUrl,
  }: { deploymentName: string; deploymentId?: string; revisionId: string; controlPlaneUrl: string },
  signal: AbortSignal,
): Promise<Proof | null> {
  const records = await github.listDeployments({ task: TASK, max: RECORDS_MAX }, signal)
  const [passed, failed] = [servesDescription(revisionId, true), failsDescription(revisionId, 'E_SMOKE_TEST')]
  const isOf = (made: RecordPayload | null): boolean =>
    made?.['control-plane'] === controlPlaneUrl &&
    (made.deployment === deploymentName || (deploymentId !== undefined && made['deployment-id'] === deploymentId))
  for (const { id, sha, environment } of records.filter(({ payload }) => isOf(readPayload(payload))).slice(0, STATUSES_MAX)) {
    // Later records make earlier ones inactive: that takes nothing from what was seen. A test that failed since does.
    for (const { state, description, createdAt } of await github.listDeploymentStatuses(id, signal)) {
      if (state === 'success' && description === passed) return { sha, at: createdAt, environment, recordId: id }
      if (state === 'failure' && description.startsWith(failed)) return null
    }
  }
  return null
}
