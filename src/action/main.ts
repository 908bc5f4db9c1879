import { RequestFailure } from '../client/failure.ts'
import { isFinalRevisionStatus } from '../contract/status.ts'
import type { Deps } from './deps.ts'
import { deploy } from './deploy.ts'
import { exportTraces } from './export/export.ts'
import { type Inputs, type StepInputs, wantsDeploy } from './inputs.ts'
import { interruptRevision } from './interrupt.ts'
import type { Status } from './registry.ts'
import { ActionFailure } from './report/error-codes.ts'
import { requestFailure } from './report/request-failure.ts'

/** How a step ended: well, with this status, or with a failure. */
export type Outcome = { status: Status } | { failure: ActionFailure }

/** What is left of the time that the runner gives a cancelled step goes to telling what happened. */
const ON_CANCEL_INTERRUPT_MS = 2000

/** The whole step, from checked inputs to its outcome. Never throws. */
export async function run(inputs: StepInputs, deps: Deps): Promise<Outcome> {
  try {
    for (const warning of inputs.warnings) deps.log.warning(warning)
    return { status: await work(inputs, deps) }
  } catch (error) {
    const failure = failureOf(error, deps.signal)
    if (failure.code === 'E_CANCELLED' && wantsDeploy(inputs)) await onCancel(inputs, deps)
    return { failure }
  }
}

/** An export after a deploy changes nothing of how the deploy went: the status stays. */
async function work(inputs: StepInputs, deps: Deps): Promise<Status> {
  const status = wantsDeploy(inputs) ? await deploy(inputs, deps) : undefined
  if (inputs.export === undefined) return status ?? 'failed'
  const exported = await exportTraces({ wish: inputs.export, policy: inputs, deps })
  return status ?? exported
}

function failureOf(error: unknown, signal: AbortSignal): ActionFailure {
  const foreign = !(error instanceof ActionFailure) && !(error instanceof RequestFailure)
  // A wait that the signal ended rejects with the signal's own reason.
  if (foreign && signal.aborted)
    return new ActionFailure({ code: 'E_CANCELLED', happened: 'The step was cancelled.', cause: error })
  return requestFailure(error, 'The step')
}

async function onCancel(inputs: Inputs, deps: Deps): Promise<void> {
  const { journal, log } = deps
  const [deploymentId, revisionId] = [journal.output('deployment-id'), journal.output('revision-id')]
  if (deploymentId === undefined || revisionId === undefined) return
  if (isFinalRevisionStatus(journal.output('revision-status') ?? '')) return
  if (inputs.onCancel === 'leave') {
    const sentence = `on-cancel is leave: the revision ${revisionId} goes on by itself.`
    log.info(sentence)
    journal.note(sentence)
    return
  }
  journal.save('interrupt', 'cancel')
  const { settled, sentence } = await interruptRevision({ deploymentId, revisionId, timeoutMs: ON_CANCEL_INTERRUPT_MS, deps })
  if (settled) journal.save('interrupt', '')
  log.info(sentence)
  journal.note(sentence)
}
