import { type Deadline, startDeadline } from '../../client/deadline.ts'
import { RequestFailure } from '../../client/failure.ts'
import { deploy } from '../deploy.ts'
import type { Deps } from '../deps.ts'
import type { PreviewInputs } from '../inputs.ts'
import type { Status } from '../registry.ts'
import { ActionFailure, type ErrorCode } from '../report/error-codes.ts'
import { requestFailure } from '../report/request-failure.ts'
import { readPullRequest } from './pull-request.ts'
import { awaitGone, findByName, isGoing, look } from './remove.ts'
import { removeAll } from './teardown.ts'

/** How often a preview is begun again because somebody removed it meanwhile. */
const ATTEMPTS = 3
/** How long a name that is taken by nothing that can be seen may take to become free. */
const PATIENCE_MS = 30_000
const RETRY_MS = 2000
const REMOVAL_MS = 600_000
const LOOK_MS = 60_000
/** GitHub may be a moment behind its own events. */
const HEAD_RETRY_MS = 5000

/**
 * Deploys the head of a pull request to its own deployment, as long as the pull request is open. It is asked for right before the
 * deploy and right after it: one that is closed while its deploy runs leaves nothing behind, and one that is opened again while its
 * preview is being removed gets it back. Returns how it went well; throws an `ActionFailure` otherwise.
 */
export async function preview(inputs: PreviewInputs, deps: Deps): Promise<Status> {
  const { journal } = deps
  journal.set('deployment-name', inputs.target.name)
  const before = await readPullRequest(inputs.preview, deps)
  if (before.state === 'closed') return await removeClosed(inputs, deps)
  if (inputs.dryRun) return await deploy(inputs, deps)
  if (await isOutdated(inputs, before.headSha, deps)) {
    return skip(
      `The head of the pull request ${inputs.preview.pullRequest} is another commit by now: its own step deploys it.`,
      deps,
    )
  }
  for (let attempt = 1; ; attempt++) {
    const { status, failure } = await tryDeploy(inputs, deps)
    if (failure?.code === 'E_CANCELLED') throw failure
    if ((await readPullRequest(inputs.preview, deps)).state === 'closed') return await removeClosed(inputs, deps, failure)
    const removed = failure !== undefined && OWN_FAULTS.has(failure.code) ? false : await wasRemoved(inputs, deps)
    if (!removed || attempt === ATTEMPTS) {
      if (failure !== undefined) throw failure
      if (removed) throw removedAgain(inputs)
      return status
    }
    deps.log.info(
      `The deployment '${inputs.target.name}' was removed meanwhile, and the pull request is open: deploying it again.`,
    )
    for (const key of ['revisionId', 'ended', 'interrupt', 'pending'] as const) journal.save(key, '')
  }
}

type Tried = { status: Status; failure?: undefined } | { status?: undefined; failure: ActionFailure }

/** Deploys once the name is free: a preview that was just removed may still be on its way out. */
async function tryDeploy(inputs: PreviewInputs, deps: Deps): Promise<Tried> {
  const { effects, log, signal } = deps
  const deadline = startDeadline({ timeoutMs: inputs.timeoutMs, parent: signal, effects })
  let takenSince: number | undefined
  try {
    for (;;) {
      try {
        if (await awaitRemovals(inputs, deadline, deps)) takenSince = undefined
        return { status: await deploy(inputs, deps) }
      } catch (error) {
        const now = effects.now()
        takenSince ??= now
        if (!isNameTaken(error) || now - takenSince >= PATIENCE_MS || deadline.remainingMs() <= RETRY_MS) throw error
        log.info(`The name '${inputs.target.name}' is taken: looking again in 2 s.`)
        await effects.sleep(RETRY_MS, deadline.signal)
      }
    }
  } catch (error) {
    if (!(error instanceof ActionFailure) && signal.aborted)
      return { failure: new ActionFailure({ code: 'E_CANCELLED', happened: 'The step was cancelled.', cause: error }) }
    return { failure: requestFailure(error, 'The preview') }
  } finally {
    deadline.stop()
  }
}

/** Waits for the end of deletions that are under way; returns whether there were any. */
async function awaitRemovals({ target }: PreviewInputs, deadline: Deadline, deps: Deps): Promise<boolean> {
  const going = (await findByName(target.name, deadline.signal, deps)).filter(isGoing)
  for (const deployment of going) {
    deps.log.info(`The deployment '${deployment.name}' (${deployment.id}) is being deleted: waiting until it is gone.`)
    await awaitGone(deployment, deadline, deps)
  }
  return going.length > 0
}

/** True for the service's own conflict: a name that is taken, or a deployment that is being deleted. */
function isNameTaken(error: unknown): boolean {
  if (!(error instanceof ActionFailure) || error.code !== 'E_CONFLICT') return false
  return error.cause instanceof RequestFailure && error.cause.status === 409
}

/** What a deployment that is removed under a step's hands cannot cause, or what leaves no time to begin again. */
const OWN_FAULTS: ReadonlySet<ErrorCode> = new Set(['E_AUTH', 'E_INPUT', 'E_VALIDATION', 'E_BUILD_FAILED', 'E_TIMEOUT'])

/** True when the deployment that this step worked on is gone, or on its way out. */
async function wasRemoved({ target }: PreviewInputs, deps: Deps): Promise<boolean> {
  const id = deps.journal.output('deployment-id')
  if (id === undefined) return false
  const deadline = startDeadline({ timeoutMs: LOOK_MS, parent: deps.signal, effects: deps.effects })
  try {
    return (await look({ id, name: target.name }, deadline.signal, deps)) !== 'there'
  } catch (error) {
    if (deps.signal.aborted) throw error
    // The deploy itself is known to have ended as it did.
    deps.journal.note(
      `Whether the preview is still there could not be read: ${error instanceof Error ? error.message : String(error)}`,
    )
    return false
  } finally {
    deadline.stop()
  }
}

/** The pull request is closed: whatever is there goes, whoever made it. */
async function removeClosed(inputs: PreviewInputs, deps: Deps, failure?: ActionFailure): Promise<Status> {
  const { pullRequest } = inputs.preview
  const { journal, log } = deps
  if (inputs.dryRun) return skip(`The pull request ${pullRequest} is closed: nothing would be deployed.`, deps)
  const made = journal.output('revision-id') !== undefined
  // Its answer is missing: it may be created late, after everybody has looked for it.
  const unanswered =
    !made && failure?.cause instanceof RequestFailure && failure.cause.ambiguous && failure.cause.method !== 'GET'
  const sentence =
    made || unanswered
      ? `The pull request ${pullRequest} was closed while its preview was deployed: removing it.`
      : `The pull request ${pullRequest} is closed: nothing is deployed.`
  log.info(sentence)
  journal.note(sentence)
  if (failure !== undefined) journal.note(`The deploy had ended before with ${failure.code}: ${failure.message}`)
  // What was to be interrupted goes with its deployment.
  journal.save('ended', 'true')
  journal.save('interrupt', '')
  const removal = { ...inputs, timeoutMs: Math.min(inputs.timeoutMs, REMOVAL_MS) }
  const count = unanswered ? await removeLate(removal, deps) : await removeAll(removal, deps)
  if (count > 0 || made) return 'removed'
  if (unanswered) {
    const aftermath =
      `The pull request ${pullRequest} is closed, and '${inputs.target.name}' was looked for in vain, ` +
      `for ${PATIENCE_MS / 1000} s. A sweep finds it if it appears later.`
    throw failure.with({ aftermath })
  }
  log.notice(sentence)
  return 'skipped'
}

/** Removes what an unanswered request may have created; it is looked for until it appears, or the patience is over. */
async function removeLate(removal: Parameters<typeof removeAll>[0], deps: Deps): Promise<number> {
  const until = deps.effects.now() + PATIENCE_MS
  for (;;) {
    const count = await removeAll(removal, deps)
    if (count > 0 || deps.effects.now() >= until) return count
    await deps.effects.sleep(RETRY_MS, deps.signal)
  }
}

/** An image belongs to one commit: once the head has moved on, it would replace a newer one. A branch is always its head. */
async function isOutdated({ source, preview: wish }: PreviewInputs, headSha: string | undefined, deps: Deps): Promise<boolean> {
  if (source.kind !== 'external_docker' || wish.headSha === undefined || headSha === undefined) return false
  if (headSha === wish.headSha) return false
  await deps.effects.sleep(HEAD_RETRY_MS, deps.signal)
  const { headSha: now } = await readPullRequest(wish, deps)
  return now !== undefined && now !== wish.headSha
}

function skip(reason: string, { journal, log }: Deps): Status {
  log.notice(reason)
  journal.note(reason)
  return 'skipped'
}

function removedAgain({ target, preview: { pullRequest } }: PreviewInputs): ActionFailure {
  return new ActionFailure({
    code: 'E_NOT_FOUND',
    happened:
      `The deployment '${target.name}' was removed ${ATTEMPTS} times while this step deployed it, ` +
      `although the pull request ${pullRequest} is open.`,
    next: 'Find out which other workflow removes it.',
  })
}
