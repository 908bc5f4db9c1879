import type { DeploymentAnswer } from '../contract/answers.ts'
import type { Deps } from './deps.ts'
import type { Inputs } from './inputs.ts'
import { requestFailure } from './report/request-failure.ts'

/** The deployment that is meant, or null when there is none of this name yet. One that is named by its id has to exist. */
export async function findDeployment({
  inputs,
  signal,
  deps,
}: {
  inputs: Pick<Inputs, 'target'>
  signal: AbortSignal
  deps: Pick<Deps, 'controlPlane'>
}): Promise<DeploymentAnswer | null> {
  const { target } = inputs
  const doing = 'id' in target ? `Reading the deployment ${target.id}` : `Finding the deployment '${target.name}'`
  try {
    return 'id' in target
      ? await deps.controlPlane.getDeployment(target.id, signal)
      : await deps.controlPlane.findDeploymentByName(target.name, signal)
  } catch (error) {
    throw requestFailure(error, doing)
  }
}
