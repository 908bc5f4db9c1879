import { abortKind, type Deadline } from '../../client/deadline.ts'
import { RequestFailure } from '../../client/failure.ts'
import type { DeploymentAnswer } from '../../contract/answers.ts'
import type { Deps } from '../deps.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { requestFailure } from '../report/request-failure.ts'

const FIRST_POLL_MS = 500
const SLOWEST_POLL_MS = 5000

type RemovalDeps = Pick<Deps, 'controlPlane' | 'effects'>

/** True while the service deletes it in the background (hosted service). */
export function isGoing({ status }: DeploymentAnswer): boolean {
  return status !== null && /^AWAITING_(FINAL_)?DELETE$/.test(status)
}

/** All deployments of exactly this name. More than one is possible where a service lets two creations race. */
export async function findByName(name: string, signal: AbortSignal, { controlPlane }: RemovalDeps): Promise<DeploymentAnswer[]> {
  try {
    const listed = await controlPlane.listDeployments({ nameContains: name, signal })
    return [...new Map(listed.filter((deployment) => deployment.name === name).map((one) => [one.id, one])).values()]
  } catch (error) {
    throw requestFailure(error, `Finding the deployment '${name}'`)
  }
}

/**
 * Asks the service to delete a deployment with its tracing project, without which its name could not be used again. What is asked for is
 * left for post until the answer is there.
 */
export async function requestRemoval(
  deployment: DeploymentAnswer,
  signal: AbortSignal,
  { controlPlane, journal }: RemovalDeps & Pick<Deps, 'journal'>,
): Promise<void> {
  if (isGoing(deployment)) return
  const what = `the deployment '${deployment.name}' (${deployment.id})`
  journal.save('pending', `remove ${what}`)
  try {
    await controlPlane.deleteDeployment({ id: deployment.id, deleteTracingProject: true, signal })
    journal.save('pending', '')
  } catch (error) {
    const failure = requestFailure(error, `Removing ${what}`)
    if (failure.code !== 'E_CANCELLED' && failure.code !== 'E_TIMEOUT') journal.save('pending', '')
    throw failure
  }
}

/** What reading a deployment says of it. A 404 that does not speak of it may be somebody else's, such as a proxy's. */
export async function look(
  { id, name }: Pick<DeploymentAnswer, 'id' | 'name'>,
  signal: AbortSignal,
  { controlPlane, effects }: RemovalDeps,
): Promise<'there' | 'going' | 'gone'> {
  try {
    return isGoing(await controlPlane.getDeployment(id, signal)) ? 'going' : 'there'
  } catch (error) {
    const isMissing = error instanceof RequestFailure && error.kind === 'http' && error.status === 404
    if (!isMissing) throw requestFailure(error, `Reading the deployment '${name}' (${id})`)
    if (error.detail?.toLowerCase().includes(id.toLowerCase()) === true) return 'gone'
    const listed = (await findByName(name, signal, { controlPlane, effects })).find((deployment) => deployment.id === id)
    return listed === undefined ? 'gone' : isGoing(listed) ? 'going' : 'there'
  }
}

/** Waits until reading the deployment answers 404. Throws `E_TIMEOUT` when the time is over. */
export async function awaitGone(
  deployment: Pick<DeploymentAnswer, 'id' | 'name'>,
  deadline: Deadline,
  deps: RemovalDeps,
): Promise<void> {
  const { signal } = deadline
  let pollMs = FIRST_POLL_MS
  while ((await look(deployment, signal, deps)) !== 'gone') {
    if (deadline.remainingMs() <= pollMs) throw notGone(deployment)
    await deps.effects.sleep(pollMs, signal).catch((error: unknown) => {
      throw abortKind(signal) === 'deadline' ? notGone(deployment) : error
    })
    pollMs = Math.min(SLOWEST_POLL_MS, pollMs * 1.5)
  }
}

function notGone({ id, name }: Pick<DeploymentAnswer, 'id' | 'name'>): ActionFailure {
  return new ActionFailure({
    code: 'E_TIMEOUT',
    happened: `The deployment '${name}' (${id}) is being deleted, and was not gone in time.`,
    next: 'Raise `timeout` if the service is merely slow; otherwise look at the deployment on the control plane.',
  })
}
