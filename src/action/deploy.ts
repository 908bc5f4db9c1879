import { startDeadline } from '../client/deadline.ts'
import { deploymentAddress, type DeploymentAnswer, type RevisionAnswer } from '../contract/answers.ts'
import { isFinalRevisionStatus } from '../contract/status.ts'
import { buildsTwice, ignoredSourceConfig, refuseConflicts, removedVariables } from './compare.ts'
import type { Deps } from './deps.ts'
import { findDeployment } from './find.ts'
import type { Inputs } from './inputs.ts'
import { makeRevision } from './make-revision.ts'
import { planLines, planOf } from './plan.ts'
import type { Status } from './registry.ts'
import { requestFailure } from './report/request-failure.ts'
import { smokeTest } from './smoke/smoke-test.ts'
import { reasonToDeploy, servingRevisionId } from './unchanged.ts'
import { waitForRevision } from './wait.ts'

/** Brings the deployment to what the inputs want. Returns how it went well; throws an `ActionFailure` otherwise. */
export async function deploy(inputs: Inputs, deps: Deps): Promise<Status> {
  const { log, effects, journal, signal } = deps
  // The preparation gets as much time as the wait: a control plane that asks for patience for an hour must not use it up for
  // ever.
  const deadline = startDeadline({ timeoutMs: inputs.timeoutMs, parent: signal, effects })
  try {
    if (inputs.smokeTest !== undefined) journal.set('smoke-test', 'skipped')
    log.info(`Deploying ${sourceText(inputs)} through ${inputs.controlPlaneUrl}.`)
    const deployment = await findDeployment({ inputs, signal: deadline.signal, deps })
    if (deployment === null) log.info(`There is no deployment named '${'name' in inputs.target ? inputs.target.name : ''}' yet.`)
    else takeOver(inputs, deployment, deps)
    if (inputs.dryRun) return plan(inputs, deployment, deps)
    if (inputs.skipUnchanged && deployment !== null && (await isUnchanged({ inputs, deployment, signal: deadline.signal, deps }))) {
      // The step that made this revision may have failed right here: that it is live is no proof that it answers.
      return await proved('unchanged', { inputs, deps })
    }
    const made = await makeRevision({ inputs, deployment, timeoutMs: deadline.remainingMs(), deps })
    const status = await waitForRevision({ inputs, ...made, deps })
    return inputs.wait ? await proved(status, { inputs, deps }) : status
  } finally {
    deadline.stop()
  }
}

/** The status, once the agent has passed the smoke test, if one is wanted. */
async function proved(status: Status, { inputs: { smokeTest: test }, deps }: { inputs: Inputs; deps: Deps }): Promise<Status> {
  if (test !== undefined) await smokeTest({ test, deps })
  return status
}

function sourceText({ source }: Inputs): string {
  return source.kind === 'git_host' ? `${source.repoRef} of ${source.repoUrl} (${source.configPath})` : source.imageUri
}

/** Records the deployment that was found, refuses what contradicts it, and says what might surprise. */
function takeOver(inputs: Inputs, deployment: DeploymentAnswer, { log, journal }: Deps): void {
  journal.set('deployment-id', deployment.id)
  journal.set('deployment-name', deployment.name)
  journal.set('deployment-url', deploymentAddress(deployment))
  journal.set('created', 'false')
  journal.set('previous-revision-id', servingRevisionId(deployment))
  journal.save('deploymentId', deployment.id)
  log.info(`Found the deployment '${deployment.name}' (${deployment.id}).`)
  refuseConflicts(inputs, deployment)
  const removed = removedVariables(inputs, deployment)
  if (removed.length > 0) {
    log.warning(
      `secrets replaces all variables of the deployment: ${removed.join(', ')} ` +
        `${removed.length === 1 ? 'is' : 'are'} not among them and will be gone.`,
    )
  }
  const ignored = ignoredSourceConfig(inputs, deployment)
  if (ignored.length > 0)
    log.warning(`source-config is only used on create: ${ignored.join(', ')} of the live deployment stays as it is.`)
  if (buildsTwice(inputs, deployment)) {
    log.info('build_on_push is on: a push to this branch makes a revision of its own, beside the one of this step.')
  }
}

function plan(inputs: Inputs, deployment: DeploymentAnswer | null, { log, journal }: Deps): Status {
  const changes = planOf(inputs, deployment)
  journal.setPlan(changes)
  if (deployment === null && 'name' in inputs.target) journal.set('deployment-name', inputs.target.name)
  log.group(deployment === null ? 'Plan: create the deployment' : 'Plan: update the deployment', planLines(changes))
  log.info('dry-run: nothing was changed.')
  return 'planned'
}

async function isUnchanged({
  inputs,
  deployment,
  signal,
  deps,
}: {
  inputs: Inputs
  deployment: DeploymentAnswer
  signal: AbortSignal
  deps: Deps
}): Promise<boolean> {
  const liveId = servingRevisionId(deployment)
  const reason = liveId === null ? 'no revision serves yet' : await compareLive(liveId)
  if (reason === undefined) return true
  const sentence = `skip-unchanged: deploying, because ${reason}.`
  deps.log.info(sentence)
  deps.journal.note(sentence)
  return false

  async function compareLive(liveId: string): Promise<string | undefined> {
    const live = await read(liveId)
    const latestId = deployment.latest_revision_id
    const latest = latestId === null || latestId === liveId ? undefined : await read(latestId)
    const reason = reasonToDeploy({ inputs, deployment, live, latest })
    if (reason === undefined) recordLive(live)
    return reason
  }

  async function read(revisionId: string): Promise<RevisionAnswer> {
    try {
      return await deps.controlPlane.getRevision({ deploymentId: deployment.id, revisionId, signal })
    } catch (error) {
      throw requestFailure(error, `Reading the revision ${revisionId}`)
    }
  }

  function recordLive(live: RevisionAnswer): void {
    const { journal, log } = deps
    journal.set('revision-id', live.id)
    journal.set('revision-status', live.status)
    journal.set('commit-sha', live.source_revision_config.repo_commit_sha)
    journal.set('image-uri', live.source_revision_config.image_uri)
    if (isFinalRevisionStatus(live.status)) log.info(`The revision ${live.id} already serves what is wanted: nothing to do.`)
  }
}
