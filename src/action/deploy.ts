import { startDeadline } from '../client/deadline.ts'
import { deploymentAddress, type DeploymentAnswer, type RevisionAnswer } from '../contract/answers.ts'
import { buildsTwice, ignoredSourceConfig, refuseConflicts, removedVariables } from './compare.ts'
import type { Deps } from './deps.ts'
import { findDeployment } from './find.ts'
import type { Inputs } from './inputs.ts'
import { type MadeRevision, makeRevision } from './make-revision.ts'
import { planLines, planOf } from './plan.ts'
import { prove } from './prove.ts'
import type { Status } from './registry.ts'
import { ActionFailure } from './report/error-codes.ts'
import { requestFailure } from './report/request-failure.ts'
import { type LastGood, rememberGood } from './rollback/last-good.ts'
import { rollBack } from './rollback/rollback.ts'
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
    if (inputs.dryRun) return await plan({ inputs, deployment, signal: deadline.signal, deps })
    if (
      inputs.skipUnchanged &&
      deployment !== null &&
      (await isUnchanged({ inputs, deployment, signal: deadline.signal, deps }))
    ) {
      // The step that made this revision may have failed right here: that it is live is no proof that it answers.
      const revisionId = deps.journal.output('revision-id') ?? ''
      if (inputs.wait) await prove({ deploymentId: deployment.id, revisionId, test: inputs.smokeTest, deps })
      return 'unchanged'
    }
    const wantsGood = inputs.rollbackOnFailure && deployment !== null
    const good = wantsGood ? await rememberGood({ deployment, signal: deadline.signal, deps }) : null
    const made = await makeRevision({ inputs, deployment, timeoutMs: deadline.remainingMs(), deps })
    return await seeThrough({ inputs, good, made, deps })
  } finally {
    deadline.stop()
  }
}

/** Follows the revision until it serves and is proven, and rolls back when it is bad and the workflow wants that. */
async function seeThrough({
  inputs,
  good,
  made,
  deps,
}: {
  inputs: Inputs
  good: LastGood | null
  made: MadeRevision
  deps: Deps
}): Promise<Status> {
  const { deploymentId, revisionId } = made
  try {
    const status = await waitForRevision({ inputs, ...made, deps })
    if (inputs.wait) await prove({ deploymentId, revisionId, test: inputs.smokeTest, deps })
    return status
  } catch (error) {
    if (!inputs.rollbackOnFailure || !(error instanceof ActionFailure)) throw error
    throw await rollBack({ failure: error, inputs, good, made, deps })
  }
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

async function plan({
  inputs,
  deployment,
  signal,
  deps,
}: {
  inputs: Inputs
  deployment: DeploymentAnswer | null
  signal: AbortSignal
  deps: Deps
}): Promise<Status> {
  const { log, journal } = deps
  const changes = planOf(inputs, deployment === null ? null : await asServed({ deployment, signal, deps }))
  journal.setPlan(changes)
  if (deployment === null && 'name' in inputs.target) journal.set('deployment-name', inputs.target.name)
  log.group(deployment === null ? 'Plan: create the deployment' : 'Plan: update the deployment', planLines(changes))
  if (inputs.skipUnchanged && deployment !== null && (await isUnchanged({ inputs, deployment, signal, deps })))
    journal.note('skip-unchanged: a deploy would make no revision.')
  log.info('dry-run: nothing was changed.')
  return 'planned'
}

/** The deployment with the source of the revision that serves: its own is that of the newest one, which may have failed. */
async function asServed({
  deployment,
  signal,
  deps,
}: {
  deployment: DeploymentAnswer
  signal: AbortSignal
  deps: Deps
}): Promise<DeploymentAnswer> {
  const liveId = servingRevisionId(deployment)
  if (liveId === null || liveId === deployment.latest_revision_id) return deployment
  try {
    const live = await deps.controlPlane.getRevision({ deploymentId: deployment.id, revisionId: liveId, signal })
    return { ...deployment, source_revision_config: live.source_revision_config }
  } catch (error) {
    throw requestFailure(error, `Reading the revision ${liveId}`)
  }
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
    log.info(`The revision ${live.id} already serves what is wanted: nothing to do.`)
  }
}
