import { startDeadline } from '../client/deadline.ts'
import { deploymentAddress, type DeploymentAnswer } from '../contract/answers.ts'
import { withGrace } from './cancellation.ts'
import type { Deps } from './deps.ts'
import type { Inputs } from './inputs.ts'
import { ActionFailure } from './report/error-codes.ts'
import { requestFailure } from './report/request-failure.ts'
import { createBody, patchBody } from './requests.ts'
import { servingRevisionId } from './unchanged.ts'

/** How long the answer to a request that changes something is still waited for after a cancellation. */
const ANSWER_GRACE_MS = 1500

export type MadeRevision = {
  deploymentId: string
  revisionId: string
  /** The revision that served before. */
  previousId: string | null
}

/** Creates the deployment, or makes a new revision of it. What is asked for is left for post until the answer is there. */
export async function makeRevision({
  inputs,
  deployment,
  timeoutMs,
  deps,
}: {
  inputs: Inputs
  deployment: DeploymentAnswer | null
  timeoutMs: number
  deps: Deps
}): Promise<MadeRevision> {
  const { effects, journal, signal } = deps
  const name = deployment?.name ?? ('name' in inputs.target ? inputs.target.name : '')
  const doing = deployment === null ? `Creating the deployment '${name}'` : `Updating the deployment '${name}'`
  const pending = deployment === null ? `create the deployment '${name}'` : `update the deployment '${name}' (${deployment.id})`
  if (signal.aborted)
    throw new ActionFailure({ code: 'E_CANCELLED', happened: 'The step was cancelled before anything was changed.' })
  const grace = withGrace({ signal, ms: ANSWER_GRACE_MS, effects })
  const deadline = startDeadline({ timeoutMs, parent: grace.signal, effects })
  journal.save('pending', pending)
  try {
    const made =
      deployment === null
        ? await createDeployment({ name, inputs, signal: deadline.signal, deps })
        : await updateDeployment({ inputs, deployment, signal: deadline.signal, deps })
    journal.set('revision-id', made.revisionId)
    journal.save('revisionId', made.revisionId)
    journal.save('pending', '')
    return made
  } catch (error) {
    const failure = requestFailure(error, doing)
    if (failure.code === 'E_CANCELLED' || failure.code === 'E_TIMEOUT') {
      const sentence = `The step asked to ${pending} and saw no answer: it may have happened.`
      deps.log.info(sentence)
      journal.note(sentence)
    } else {
      journal.save('pending', '')
    }
    throw failure
  } finally {
    deadline.stop()
    grace.stop()
  }
}

async function createDeployment({
  name,
  inputs,
  signal,
  deps,
}: {
  name: string
  inputs: Inputs
  signal: AbortSignal
  deps: Deps
}): Promise<MadeRevision> {
  const { controlPlane, journal, log } = deps
  journal.set('deployment-name', name)
  const { deployment, recovered } = await controlPlane.createDeployment(createBody(name, inputs), signal)
  journal.set('deployment-id', deployment.id)
  journal.set('deployment-name', deployment.name)
  journal.set('deployment-url', deploymentAddress(deployment))
  journal.set('created', 'true')
  journal.save('deploymentId', deployment.id)
  const revisionId = deployment.latest_revision_id
  const lost = recovered ? ' (its answer was lost; it was found by its name)' : ''
  if (revisionId === null) {
    throw new ActionFailure({
      code: 'E_PROTOCOL',
      happened:
        `The deployment '${deployment.name}' (${deployment.id}) was created${lost}, ` +
        'but the control plane names no revision of it.',
    })
  }
  log.info(`Created the deployment '${deployment.name}' (${deployment.id})${lost}; revision ${revisionId}.`)
  return { deploymentId: deployment.id, revisionId, previousId: null }
}

async function updateDeployment({
  inputs,
  deployment,
  signal,
  deps,
}: {
  inputs: Inputs
  deployment: DeploymentAnswer
  signal: AbortSignal
  deps: Deps
}): Promise<MadeRevision> {
  const previousLatestRevisionId = deployment.latest_revision_id
  const { revisionId, recovered } = await deps.controlPlane.patchDeployment({
    id: deployment.id,
    body: patchBody(inputs),
    previousLatestRevisionId,
    signal,
  })
  if (revisionId === null || revisionId === previousLatestRevisionId) {
    throw new ActionFailure({
      code: 'E_PROTOCOL',
      happened:
        `The control plane accepted the update of '${deployment.name}', but made no new revision: ` +
        `the latest one is ${previousLatestRevisionId ?? 'none'}, as before.`,
      tried: 'The update carried a source, which creates a revision (specification, section 2.2).',
    })
  }
  deps.log.info(`Made the revision ${revisionId}${recovered ? ' (its answer was lost; it was found in the list)' : ''}.`)
  return { deploymentId: deployment.id, revisionId, previousId: servingRevisionId(deployment) }
}
