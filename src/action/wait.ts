import { startDeadline } from '../client/deadline.ts'
import type { RevisionAnswer } from '../contract/answers.ts'
import { isFailedRevisionStatus, isFinalRevisionStatus } from '../contract/status.ts'
import type { Deps } from './deps.ts'
import { type Followed, follow } from './follow.ts'
import type { Inputs } from './inputs.ts'
import { interruptRevision } from './interrupt.ts'
import { readLogTail } from './log-tail.ts'
import type { MadeRevision } from './make-revision.ts'
import { formatDuration } from './parse/duration.ts'
import { expectedDuration } from './poll-delay.ts'
import type { Status } from './registry.ts'
import { ActionFailure, ERROR_CODES, type ErrorCode, toFailure } from './report/error-codes.ts'
import { inputsNamedIn } from './report/input-names.ts'
import { checkCommit, otherCommit, verifyServing } from './verify.ts'
import { isLostAtTimeout } from './watch.ts'

/** Earlier revisions that tell how long one takes. */
const HISTORY = 10
const HISTORY_TIMEOUT_MS = 5000
const ON_TIMEOUT_INTERRUPT_MS = 10_000

/** The revision that a step follows, and with what. */
type Watched = { inputs: Inputs; deploymentId: string; revisionId: string; deps: Deps }

/** Sees a revision through: follows it, reads its log when it failed, and proves that it serves when it did not. */
export async function waitForRevision({
  inputs,
  deploymentId,
  revisionId,
  previousId,
  deps,
}: { inputs: Inputs; deps: Deps } & MadeRevision): Promise<Status> {
  const { journal, log } = deps
  if (!inputs.wait) return lookOnce({ inputs, deploymentId, revisionId, deps })
  const followed = await followRevision({ inputs, deploymentId, revisionId, deps })
  if (followed.end === 'timeout') {
    throw new ActionFailure({
      code: 'E_TIMEOUT',
      happened:
        `The revision ${revisionId} was still ${followed.lastStatus ?? 'without a status'} ` +
        `after ${formatDuration(inputs.timeoutMs)}.`,
      tried: await onTimeout({ inputs, deploymentId, revisionId, deps }),
    })
  }
  journal.save('ended', 'true')
  const { revision } = followed
  // One that this step has interrupted is told by the reason.
  if (revision.status === 'DEPLOYED' || revision.status === 'INTERRUPTED') checkCommit({ inputs, revision, deps })
  await judge({ revision, deploymentId, deps })
  await verifyServing({ deploymentId, revisionId, previousId, deps })
  log.info(`The revision ${revisionId} serves.`)
  return 'deployed'
}

/** `wait: false`: one look, so that a revision that failed at once is not reported as accepted. */
async function lookOnce({ inputs, deploymentId, revisionId, deps }: Watched): Promise<Status> {
  const { journal, log } = deps
  try {
    const revision = await deps.once.getRevision({ deploymentId, revisionId, signal: deps.signal })
    record(revision, deps)
    if (isFinalRevisionStatus(revision.status)) await judge({ revision, deploymentId, deps })
    checkCommit({ inputs, revision, deps })
  } catch (error) {
    if (error instanceof ActionFailure || deps.signal.aborted) throw error
    journal.note(`The status of the revision could not be read: ${error instanceof Error ? error.message : String(error)}`)
  }
  log.info(`wait: false: the revision ${revisionId} was accepted and is not followed.`)
  return 'deployed'
}

async function followRevision({ inputs, deploymentId, revisionId, deps }: Watched): Promise<Followed> {
  const { effects, journal, log, once } = deps
  const expected = await learnExpected({ deploymentId, revisionId, deps })
  const usual = expected === undefined ? '' : `; earlier revisions took ${formatDuration(expected)}`
  log.info(`Waiting for the revision ${revisionId}, ${formatDuration(inputs.timeoutMs)} at most${usual}.`)
  const deadline = startDeadline({ timeoutMs: inputs.timeoutMs, parent: deps.signal, effects })
  let stopped = false
  // A commit that nobody has proven is not let into service, where that can still be prevented; the end is judged as any other.
  const stopOther = async (revision: RevisionAnswer): Promise<void> => {
    const known = revision.source_revision_config.repo_commit_sha !== null
    const other = known && !isFinalRevisionStatus(revision.status) ? otherCommit(inputs, revision) : undefined
    if (stopped || other === undefined) return
    stopped = true
    const { sentence } = await interruptRevision({ deploymentId, revisionId, timeoutMs: ON_TIMEOUT_INTERRUPT_MS, deps })
    log.info(`${other} ${sentence}`)
    journal.note(sentence)
  }
  try {
    return await follow({
      getRevision: async (signal) => {
        const revision = await once.getRevision({ deploymentId, revisionId, signal })
        await stopOther(revision)
        return revision
      },
      expected,
      timeoutMs: inputs.timeoutMs,
      signal: deadline.signal,
      effects,
      info: log.info,
      onStatus: (revision) => record(revision, deps),
      onRateLimit: journal.addRateLimitWait,
    })
  } catch (error) {
    const failure = toFailure(error)
    if (isLostAtTimeout(failure, deadline.remainingMs()))
      journal.note(await onTimeout({ inputs, deploymentId, revisionId, deps }))
    throw failure
  } finally {
    deadline.stop()
  }
}

function record(revision: RevisionAnswer, { effects, journal }: Deps): void {
  journal.transition(revision.status, effects.now())
  journal.set('revision-status', revision.status)
}

async function learnExpected({
  deploymentId,
  revisionId,
  deps,
}: {
  deploymentId: string
  revisionId: string
  deps: Deps
}): Promise<number | undefined> {
  const deadline = startDeadline({ timeoutMs: HISTORY_TIMEOUT_MS, parent: deps.signal, effects: deps.effects })
  try {
    const options = { deploymentId, status: ['DEPLOYED'], max: HISTORY, signal: deadline.signal }
    const earlier = await deps.once.listRevisions(options)
    return expectedDuration(earlier.filter(({ id }) => id !== revisionId))
  } catch {
    // Only a convenience: whatever is wrong will show when the revision is read.
    return undefined
  } finally {
    deadline.stop()
  }
}

async function onTimeout({ inputs, deploymentId, revisionId, deps }: Watched): Promise<string> {
  if (inputs.onTimeout === 'leave') return 'on-timeout is leave: the revision goes on by itself.'
  deps.journal.save('interrupt', 'timeout')
  const { settled, sentence } = await interruptRevision({ deploymentId, revisionId, timeoutMs: ON_TIMEOUT_INTERRUPT_MS, deps })
  if (settled) deps.journal.save('interrupt', '')
  deps.log.info(sentence)
  deps.journal.note(sentence)
  return sentence
}

/** The revision that was made in place of one that was skipped, where the control plane tells. */
async function successor({
  deploymentId,
  revisionId,
  deps,
}: {
  deploymentId: string
  revisionId: string
  deps: Deps
}): Promise<string> {
  const deadline = startDeadline({ timeoutMs: HISTORY_TIMEOUT_MS, parent: deps.signal, effects: deps.effects })
  try {
    const { latest_revision_id: latest } = await deps.once.getDeployment(deploymentId, deadline.signal)
    return latest === null || latest === revisionId ? 'a newer revision' : `a newer revision, ${latest},`
  } catch {
    return 'a newer revision'
  } finally {
    deadline.stop()
  }
}

const CODES: Readonly<Record<string, ErrorCode>> = {
  CREATE_FAILED: 'E_CREATE_FAILED',
  BUILD_FAILED: 'E_BUILD_FAILED',
  DEPLOY_FAILED: 'E_DEPLOY_FAILED',
  INTERRUPTED: 'E_INTERRUPTED',
  SKIPPED: 'E_SUPERSEDED',
}

/** What to do where the control plane has no log to read. */
const WITHOUT_LOG: Partial<Record<ErrorCode, string>> = {
  E_CREATE_FAILED: 'Look at the deployment on the control plane; the quota of the plan is a usual cause.',
  E_BUILD_FAILED: 'Look at the revision on the control plane, correct the source, and deploy again.',
  E_DEPLOY_FAILED: 'Look at the revision on the control plane; a missing variable in `secrets` is a usual cause.',
}
/** So much of a log is read for the names of fields: what a person sees of it without a click. */
const NAMING_LINES = 10

/** What to do about a revision that failed, in the words of the workflow. */
function nextStep(code: ErrorCode, says: string, lines: readonly string[]): string {
  const step = (lines.length === 0 ? WITHOUT_LOG[code] : undefined) ?? ERROR_CODES[code].remedy
  const names = inputsNamedIn([says, ...lines.slice(-NAMING_LINES)].join('\n'))
  return names === undefined ? step : `${step} ${names}`
}

/** Throws unless the revision has ended well. The log of one that failed is printed and kept for the summary. */
async function judge({
  revision,
  deploymentId,
  deps,
}: {
  revision: RevisionAnswer
  deploymentId: string
  deps: Deps
}): Promise<void> {
  const { status } = revision
  if (status === 'DEPLOYED') return
  const code = CODES[status] ?? 'E_DEPLOY_FAILED'
  const says = revision.status_message === null ? '' : ` The control plane says: ${revision.status_message}`
  const ended =
    code === 'E_SUPERSEDED'
      ? `The revision ${revision.id} was SKIPPED: ${await successor({ deploymentId, revisionId: revision.id, deps })} took its place.`
      : `The revision ${revision.id} ended in ${status}.`
  let lines: readonly string[] = []
  if (isFailedRevisionStatus(status)) {
    const tail = await readLogTail({ deploymentId, revisionId: revision.id, status, deps })
    if (tail !== undefined) {
      lines = tail.lines
      deps.journal.setLogTail(tail)
      deps.log.group(tail.title, tail.lines)
    }
    if (deps.signal.aborted) throw new ActionFailure({ code: 'E_CANCELLED', happened: `The step was cancelled. ${ended}${says}` })
  }
  throw new ActionFailure({ code, happened: `${ended}${says}`, next: nextStep(code, says, lines) })
}
