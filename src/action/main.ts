import { RequestFailure } from '../client/failure.ts'
import { isFinalRevisionStatus } from '../contract/status.ts'
import type { Deps } from './deps.ts'
import { deploy } from './deploy.ts'
import { exportTraces } from './export/export.ts'
import { createReporter, type Reporter } from './github/reporter.ts'
import { type ExportInputs, type Inputs, type StepInputs, wantedExport, wantsDeploy } from './inputs.ts'
import { interruptRevision } from './interrupt.ts'
import { preview } from './preview/preview.ts'
import { sweep } from './preview/sweep.ts'
import { teardown } from './preview/teardown.ts'
import { promote } from './promote/promote.ts'
import type { Status } from './registry.ts'
import { ActionFailure } from './report/error-codes.ts'
import { requestFailure } from './report/request-failure.ts'

/** How a step ended: well, with this status, or with a failure. */
export type Outcome = { status: Status } | { failure: ActionFailure }

/** What is left of the time that the runner gives a cancelled step goes to telling what happened. */
const ON_CANCEL_INTERRUPT_MS = 2000

/** The whole step, from checked inputs to its outcome. Never throws. */
export async function run(inputs: StepInputs, deps: Deps): Promise<Outcome> {
  const reporter = createReporter(inputs, deps)
  try {
    for (const warning of inputs.warnings) deps.log.warning(warning)
    await reporter.begin()
    const outcome = { status: await work(inputs, reporter, deps) }
    await reporter.end(outcome)
    return outcome
  } catch (error) {
    const failure = failureOf(error, deps.signal)
    const cancelled = failure.code === 'E_CANCELLED' && wantsDeploy(inputs)
    // At the same time: a cancelled step has little of it.
    await Promise.all([reporter.end({ failure }), ...(cancelled ? [onCancel(inputs, deps)] : [])])
    return { failure }
  }
}

/** An export after a deploy changes nothing of how the deploy went: the status stays. */
async function work(inputs: StepInputs, reporter: Reporter, deps: Deps): Promise<Status> {
  const status = inputs.mode === 'export' ? 'exported' : await workOfMode(inputs, deps)
  const wish = wantedExport(inputs)
  if (wish === undefined || status === 'removed' || status === 'skipped') return status
  if (inputs.mode !== 'export') await reporter.deployed(status)
  const exported = await exportTraces({ wish, policy: inputs, deps })
  return inputs.mode === 'export' ? exported : status
}

async function workOfMode(inputs: Exclude<StepInputs, ExportInputs>, deps: Deps): Promise<Status> {
  switch (inputs.mode) {
    case 'deploy':
      return await deploy(inputs, deps)
    case 'promote':
      return await promote(inputs, deps)
    case 'preview':
      return await preview(inputs, deps)
    case 'teardown':
      return await teardown(inputs, deps)
    case 'sweep':
      return await sweep(inputs, deps)
  }
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
