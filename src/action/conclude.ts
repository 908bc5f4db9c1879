import type { GithubContext } from './github/context.ts'
import { formatWritten } from './export/report.ts'
import { type StepInputs, wantsDeploy } from './inputs.ts'
import type { Io } from './io.ts'
import type { Journal } from './journal.ts'
import type { Outcome } from './main.ts'
import type { Redactor } from './masks.ts'
import { formatDuration } from './parse/duration.ts'
import { countSwept } from './preview/report.ts'
import type { Status } from './registry.ts'
import { summaryData } from './report/data.ts'
import { ActionFailure, ERROR_CODES } from './report/error-codes.ts'
import type { Log } from './report/log.ts'
import { clip, safeLines } from './report/plain.ts'
import { helpAddress, renderSummary } from './report/summary.ts'

const ANNOTATION_LOG_LINES = 10
const ANNOTATION_LINE_MAX = 200

type ConcludeOptions = {
  outcome: Outcome
  /** Absent when they could not be read. */
  inputs: StepInputs | undefined
  /** Whether to write the job summary. */
  summary: boolean
  journal: Journal
  io: Io
  log: Log
  redactor: Redactor
  github: GithubContext
  rateLimitWaitMs: number
  /** Names of the limits that were waited for. */
  rateLimits?: readonly string[]
  now: number
}

/**
 * Tells the runner and people how the step ended. Returns whether it is green: only when the outputs could be written as well.
 */
export function conclude(options: ConcludeOptions): boolean {
  const { journal, io, log } = options
  let { status, failure } = ending(options.outcome)
  journal.set('status', status)
  if (failure !== undefined) journal.set('error-code', failure.code)
  const problem = io.outputProblem()
  if (problem !== undefined && failure === undefined) {
    failure = unwritableOutput(problem)
    status = 'failed'
  } else if (problem !== undefined) {
    log.warning(`The outputs of the step could not be written: ${problem}`)
  }
  if (failure === undefined) log.info(success(status, options))
  else log.error({ title: `${failure.code}: ${ERROR_CODES[failure.code].title}`, message: annotationText(failure, options) })
  writeSummary({ status, failure, options })
  journal.save('done', 'true')
  return failure === undefined
}

/** The failure for a runner that cannot take outputs: later steps would go on with nothing. */
export function unwritableOutput(problem: string): ActionFailure {
  return new ActionFailure({
    code: 'E_INPUT',
    happened: `The outputs of the step cannot be written to the file that GITHUB_OUTPUT names: ${problem}.`,
    next: 'Repair the runner: the file has to exist and be writable.',
  })
}

function ending(outcome: Outcome): { status: Status; failure: ActionFailure | undefined } {
  return 'failure' in outcome
    ? { status: outcome.failure.status, failure: outcome.failure }
    : { status: outcome.status, failure: undefined }
}

function success(status: Status, { journal, inputs, now }: ConcludeOptions): string {
  if (status === 'skipped') return 'Skipped: nothing was changed.'
  if (inputs?.mode === 'export') return exportSuccess(status, journal)
  if (inputs?.mode === 'sweep') return `${status === 'planned' ? 'Planned' : 'Swept'}: ${countSwept(journal.sweep ?? [])}.`
  const name = journal.output('deployment-name') ?? ''
  const address = journal.output('deployment-url')
  const took = formatDuration(now - journal.startedAt)
  if (status === 'planned') return `Planned '${name}': nothing was changed.`
  if (status === 'unchanged') return `'${name}' is unchanged${address === undefined ? '' : `: ${address}`}`
  if (status === 'removed')
    return journal.output('deployment-id') === undefined ? `There is no '${name}' to remove.` : `Removed '${name}' in ${took}.`
  const done = inputs !== undefined && wantsDeploy(inputs) && !inputs.wait ? 'Accepted' : 'Deployed'
  return `${done} '${name}' in ${took}${address === undefined ? '' : `: ${address}`}`
}

function exportSuccess(status: Status, { export: report }: Journal): string {
  const id = report?.id ?? ''
  if (status === 'planned') return 'Planned the export: nothing was changed.'
  if (status === 'unchanged') return `The schedule ${id} is unchanged.`
  if (report?.status !== 'COMPLETED') return `Accepted the export ${id}.`
  return `Exported ${formatWritten(report)}${report.path === undefined ? '' : `: ${report.path}`}`
}

function annotationText({ code, message, tried, next, aftermath }: ActionFailure, { journal, github, redactor }: ConcludeOptions): string {
  const help = helpAddress({ code, github })
  // Redacted before it is cut: what is left of half a secret would not be recognised.
  const short = (text: string, max: number): string => clip(safeLines(text, redactor.redact).join('\n'), max)
  const tail = journal.logTail?.lines.slice(-ANNOTATION_LOG_LINES).map((line) => short(line, ANNOTATION_LINE_MAX)) ?? []
  return [
    short(message, aftermath === undefined ? 2600 : 1800),
    ...(aftermath === undefined ? [] : [`Afterwards: ${short(aftermath, 900)}`]),
    ...(tried === undefined ? [] : [`What was tried: ${short(tried, 300)}`]),
    `What to do: ${short(next, 400)}`,
    ...(help === undefined ? [`More: README, section ${code}`] : [`More: ${help}`]),
    ...(tail.length === 0 ? [] : ['', `${journal.logTail?.title ?? ''}:`, ...tail]),
  ].join('\n')
}

function writeSummary({
  status,
  failure,
  options,
}: {
  status: Status
  failure: ActionFailure | undefined
  options: ConcludeOptions
}): void {
  const { summary, journal, inputs, io, log, redactor, github, rateLimitWaitMs, rateLimits = [], now } = options
  if (!summary) return
  try {
    const { redact } = redactor
    io.writeSummary(renderSummary(summaryData({ status, failure, inputs, journal, github, redact, now, rateLimitWaitMs, rateLimits })))
  } catch (error) {
    log.warning(`The job summary could not be written: ${error instanceof Error ? error.message : String(error)}`)
  }
}
