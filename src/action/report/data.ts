import type { GithubContext } from '../github/context.ts'
import { type StepInputs, wantsDeploy } from '../inputs.ts'
import type { Journal } from '../journal.ts'
import { OUTPUTS, type OutputName, type Status } from '../registry.ts'
import type { ActionFailure } from './error-codes.ts'
import { safeLines } from './plain.ts'
import type { SummaryData } from './summary.ts'

/** What the step knows, as the summary and the comment are made from it: redacted, and not escaped yet. */
export function summaryData({
  status,
  failure,
  inputs,
  journal,
  github,
  redact,
  now,
  rateLimitWaitMs = 0,
  rateLimits = [],
}: {
  status: Status
  failure: ActionFailure | undefined
  /** Absent when they could not be read. */
  inputs: StepInputs | undefined
  journal: Journal
  github: GithubContext
  redact: (text: string) => string
  now: number
  rateLimitWaitMs?: number
  rateLimits?: readonly string[]
}): SummaryData {
  const names = Object.keys(OUTPUTS) as OutputName[]
  const data: SummaryData = {
    status,
    failure:
      failure === undefined
        ? undefined
        : {
            code: failure.code,
            message: failure.message,
            tried: failure.tried,
            next: failure.next,
            aftermath: failure.aftermath,
          },
    outputs: Object.fromEntries(names.map((name) => [name, journal.output(name)]).filter(([, value]) => value !== undefined)),
    source: inputs !== undefined && wantsDeploy(inputs) ? inputs.source : undefined,
    transitions: journal.transitions,
    plan: journal.plan,
    notes: journal.notes,
    logTail: journal.logTail,
    smokeTest: journal.smokeTest,
    export: journal.export,
    rollback: journal.rollback,
    sweep: journal.sweep,
    rateLimitWaitMs,
    rateLimits,
    startedAt: journal.startedAt,
    endedAt: now,
    github: { serverUrl: github.serverUrl, actionRepository: github.actionRepository },
  }
  // Redacted before it is escaped: an entity in the middle of a secret would hide it from the runner's own masks.
  return redactAll(data, redact)
}

function redactAll<T>(value: T, redact: (text: string) => string): T {
  if (typeof value === 'string') return safeLines(value, redact).join('\n') as T
  if (Array.isArray(value)) return value.map((part: unknown) => redactAll(part, redact)) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, redactAll(part as unknown, redact)])) as T
}
