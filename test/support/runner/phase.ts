import { createFileCommands, readFileCommands, type FileCommandPaths } from './file-commands.ts'
import type { SecretMasker } from './secret-masker.ts'
import { createStepLog, groupsOf, renderLog, type Annotation, type LogGroup, type LogLine } from './step-log.ts'
import { runStepProcess, type SignalStep, type StepProcessResult, type When } from './step-process.ts'
import type { WorkflowCommand } from './workflow-commands.ts'

/** What became of one process of a step: an action's main or post, or a shell's script. */
export type PhaseResult = StepProcessResult & {
  conclusion: 'success' | 'failure' | 'cancelled'
  outputs: Record<string, string>
  state: Record<string, string>
  env: Record<string, string>
  path: string[]
  /** As GitHub shows it: masked, and empty above 1 MiB. */
  summary: string
  annotations: Annotation[]
  /** Every workflow command that the runner carried out, whoever wrote it. */
  commandsIssued: WorkflowCommand[]
  /** True when `::stop-commands::` was never taken back. */
  commandsStopped: boolean
  lines: LogLine[]
  groups: LogGroup[]
  /** As a person sees it. */
  log: string
}

export type PhaseOptions = {
  command: string
  args: readonly string[]
  cwd: string
  runnerTemp: string
  masker: SecretMasker
  debug?: boolean
  /** Inputs that action.yml does not declare. */
  unexpected?: readonly string[]
  env: (files: FileCommandPaths) => Readonly<Record<string, string>>
  /** Damages the command files before the process starts. */
  tamper?: (files: FileCommandPaths) => Promise<void>
  timeoutMs: number
  cancelWhen?: When
  signals?: readonly SignalStep[]
  /** Gets the process group of what the process leaves running; absent: all of it is killed. */
  leave?: (group: number) => void
}

/** Runs one process of a step, with command files of its own, and reads what it has said to the runner. */
export async function runPhase({ tamper, env, masker, ...options }: PhaseOptions): Promise<PhaseResult> {
  const files = await createFileCommands(options.runnerTemp)
  const log = createStepLog({ masker, debug: options.debug ?? false })
  const unexpected = options.unexpected ?? []
  if (unexpected.length > 0) log.annotate('warning', `Unexpected input(s) '${unexpected.join("', '")}'`)
  await tamper?.(files)
  const result = await runStepProcess({ ...options, env: env(files), onLine: log.write })
  const read = await readFileCommands(files, masker)
  for (const message of [...read.failures, ...read.problems]) log.annotate('error', message)
  const failed = result.exitCode !== 0 || log.failed || read.failures.length > 0
  const cancelled = options.cancelWhen !== undefined && result.signalsSent.includes('SIGINT')
  return {
    ...result,
    conclusion: cancelled ? 'cancelled' : failed ? 'failure' : 'success',
    outputs: { ...log.outputs, ...read.outputs },
    state: { ...log.state, ...read.state },
    env: read.env,
    path: read.path,
    summary: read.summary,
    annotations: log.annotations,
    commandsIssued: log.commands,
    commandsStopped: log.stopped,
    lines: log.lines,
    groups: groupsOf(log.lines),
    log: renderLog(log.lines),
  }
}
