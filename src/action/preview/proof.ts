import type { DeploymentAnswer } from '../../contract/answers.ts'
import type { DeploymentRecord, Github } from '../github/github.ts'
import { readPayload, TASK } from '../github/proof.ts'
import type { SweepInputs } from '../inputs.ts'
import { requestFailure } from '../report/request-failure.ts'
import { isSameRepository } from './own.ts'

/** Records that are looked through, the newest first. */
const RECORDS_MAX = 1000

/** The same of records whose statuses are looked at. */
const STATUSES_MAX = 20

/** Why a deployment cannot be proved to be this repository's, as a clause; undefined when it can. */
export type Owner = (deployment: DeploymentAnswer) => Promise<string | undefined>

/**
 * A deployment is this repository's when it was built from it, or when a deployment record of this repository, made by this action,
 * names it on this control plane. One that was built from an image, or from another repository such as a fork, has to be named by its id
 * or by that of its revision: another repository may use the same name, and have a pull request of the same number. The records are
 * read once, and only when they are needed.
 */
export function findOwner({ inputs, github, signal }: { inputs: SweepInputs; github: Github; signal: AbortSignal }): Owner {
  const { controlPlaneUrl, sweep } = inputs
  let records: Promise<DeploymentRecord[]> | undefined
  return async (deployment) => {
    const { id, name, source_config } = deployment
    const { repo_url: repoUrl } = source_config
    if (repoUrl !== null && isSameRepository(repoUrl, sweep.repoUrl)) return undefined
    try {
      records ??= github.listDeployments({ task: TASK, max: RECORDS_MAX }, signal)
      const naming = (await records)
        .map((record) => ({ recordId: record.id, made: readPayload(record.payload) }))
        .filter(({ made }) => made?.deployment === name && made['control-plane'] === controlPlaneUrl)
        .filter(({ made }) => made?.['deployment-id'] === undefined || made['deployment-id'] === id)
      if (naming.some(({ made }) => made?.['deployment-id'] === id)) return undefined
      for (const { recordId } of naming.slice(0, STATUSES_MAX)) {
        const statuses = await github.listDeploymentStatuses(recordId, signal)
        if (statuses.some(({ description }) => namesRevision(description, deployment))) return undefined
      }
      return `it was built from ${repoUrl ?? 'an image'}, and no deployment record of this repository names it or its revision by the id`
    } catch (error) {
      throw requestFailure(error, 'The sweep')
    }
  }
}

function namesRevision(
  description: string,
  { active_revision_id: active, latest_revision_id: latest }: DeploymentAnswer,
): boolean {
  return [active, latest].some((id) => typeof id === 'string' && description.includes(id))
}
