import { startDeadline } from '../../client/deadline.ts'
import { deploymentAddress, type DeploymentAnswer } from '../../contract/answers.ts'
import type { Deps } from '../deps.ts'
import type { TeardownInputs } from '../inputs.ts'
import type { Status } from '../registry.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { isSameRepository } from './own.ts'
import { readPullRequest } from './pull-request.ts'
import type { PreviewWish } from './wish.ts'
import { awaitGone, findByName, requestRemoval } from './remove.ts'

/**
 * Removes the preview of a pull request with its tracing project, and waits until it is gone. One that is not there is `removed` as
 * well. A step that runs because the pull request was closed leaves it alone when the pull request is open again (`skipped`).
 */
export async function teardown(inputs: TeardownInputs, deps: Deps): Promise<Status> {
  const { journal, log } = deps
  const { target, preview, dryRun } = inputs
  journal.set('deployment-name', target.name)
  if (preview.closing && (await readPullRequest(preview, deps)).state === 'open') {
    const reason = `The pull request ${preview.pullRequest} is open again: its preview stays.`
    log.notice(reason)
    journal.note(reason)
    return 'skipped'
  }
  if (dryRun) return await plan(inputs, deps)
  const count = await removeAll(inputs, deps)
  if (count === 0) log.info(`There is no deployment named '${target.name}'.`)
  return 'removed'
}

/** Removes every deployment of the preview's name; returns how many there were. Throws an `ActionFailure`. */
export async function removeAll(
  { target, preview, timeoutMs }: Pick<TeardownInputs, 'target' | 'preview' | 'timeoutMs'>,
  deps: Deps,
): Promise<number> {
  const { effects, log, signal } = deps
  const deadline = startDeadline({ timeoutMs, parent: signal, effects })
  try {
    const found = await findOwn({ target, preview }, deadline.signal, deps)
    for (const deployment of found) {
      await requestRemoval(deployment, deadline.signal, deps)
      log.info(`Removing the deployment '${deployment.name}' (${deployment.id}) with its tracing project.`)
    }
    for (const deployment of found) await awaitGone(deployment, deadline, deps)
    return found.length
  } finally {
    deadline.stop()
  }
}

async function plan({ target, preview, timeoutMs }: TeardownInputs, deps: Deps): Promise<Status> {
  const { effects, journal, log, signal } = deps
  const deadline = startDeadline({ timeoutMs, parent: signal, effects })
  try {
    const found = await findOwn({ target, preview }, deadline.signal, deps)
    if (found.length > 0)
      journal.setPlan(found.map(({ name, id }) => ({ field: 'deployment', live: `${name} (${id})`, wanted: '(none)' })))
    if (found.length === 0) log.info(`There is no deployment named '${target.name}' to remove.`)
    else
      log.group(
        'Plan: remove the deployment',
        found.map(({ name, id }) => `${name} (${id}), with its tracing project`),
      )
    log.info('dry-run: nothing was changed.')
    return 'planned'
  } finally {
    deadline.stop()
  }
}

/** The deployments of the preview's name. Throws an `ActionFailure` when one of them is not ours: then none is to be touched. */
async function findOwn(
  { target, preview }: Pick<TeardownInputs, 'target' | 'preview'>,
  signal: AbortSignal,
  deps: Deps,
): Promise<DeploymentAnswer[]> {
  const found = await findByName(target.name, signal, deps)
  for (const deployment of found) {
    record(deployment, deps)
    refuseForeign(deployment, preview)
  }
  return found
}

function record(deployment: DeploymentAnswer, { journal }: Pick<Deps, 'journal'>): void {
  journal.set('deployment-id', deployment.id)
  journal.set('deployment-url', deploymentAddress(deployment))
  journal.save('deploymentId', deployment.id)
}

/** Another repository may use the same names in this workspace. */
function refuseForeign(
  { id, name, source_config: { repo_url: repoUrl } }: DeploymentAnswer,
  { repositories }: PreviewWish,
): void {
  if (repoUrl === null || repositories.some((own) => isSameRepository(own, repoUrl))) return
  throw new ActionFailure({
    code: 'E_CONFLICT',
    happened: `The deployment '${name}' (${id}) was built from ${repoUrl}, which is neither this repository nor the head of the pull request.`,
    tried: 'Nothing was removed.',
    next: 'Choose a deployment-name that no other repository of this workspace uses; if this one is yours, set repo-url to its address.',
  })
}
