import { COMMAND_NAMES, parseCommand, type WorkflowCommand } from './workflow-commands.ts'
import type { SecretMasker } from './secret-masker.ts'

/** Limits of one step (actions/runner: ExecutionContext.cs). */
export const ANNOTATION_MESSAGE_MAX = 4096
export const ANNOTATIONS_PER_LEVEL_MAX = 10

export type AnnotationLevel = 'error' | 'warning' | 'notice'

/** One annotation as GitHub would store it: message masked and cut, title as it came (the runner does not mask it). */
export type Annotation = {
  level: AnnotationLevel
  title: string
  message: string
  properties: Record<string, string>
  /** False for the eleventh of its level and beyond: it is in the log only. */
  shown: boolean
}

export type LogLine = { kind: 'output' | 'group' | 'endgroup' | 'debug' | AnnotationLevel; text: string }

/** What the runner makes of a step's output, line by line (actions/runner: ActionCommandManager.cs, OutputManager.cs). */
export type StepLog = {
  /** One line of standard output or standard error; both are read for commands. */
  write: (line: string) => void
  annotate: (level: AnnotationLevel, message: string) => void
  lines: LogLine[]
  annotations: Annotation[]
  /** Every command that was carried out, in order. */
  commands: WorkflowCommand[]
  /** Outputs and state that came as legacy commands. */
  outputs: Record<string, string>
  state: Record<string, string>
  /** True once a command could not be carried out: the runner fails the step. */
  failed: boolean
  /** True while `::stop-commands::` holds. */
  stopped: boolean
}

export function createStepLog(options: { masker: SecretMasker; debug: boolean }): StepLog {
  const { masker } = options
  const registered = new Set<string>(COMMAND_NAMES)
  let stopToken = ''
  let echo = options.debug

  const output = (text: string, kind: LogLine['kind'] = 'output') => log.lines.push({ kind, text: masker.mask(text) })
  const annotate = (level: AnnotationLevel, message: string, properties: Record<string, string> = {}) => {
    const masked = masker.mask(message).slice(0, ANNOTATION_MESSAGE_MAX)
    const shown = log.annotations.filter((annotation) => annotation.level === level).length < ANNOTATIONS_PER_LEVEL_MAX
    const title = Object.entries(properties).find(([key]) => key.toLowerCase() === 'title')?.[1] ?? ''
    log.annotations.push({ level, title, message: masked, properties, shown })
    if (masked !== '') output(masked, level)
  }
  const log: StepLog = {
    lines: [], annotations: [], commands: [], outputs: {}, state: {}, failed: false, stopped: false,
    annotate: (level, message) => annotate(level, message),
    write: (line) => {
      const command = parseCommand(line, registered)
      if (command === null) output(line)
      else if (log.stopped) resumeOrPrint(command)
      else execute(command)
    },
  }

  const resumeOrPrint = (command: WorkflowCommand) => {
    output(command.line)
    if (stopToken === '' || command.name !== stopToken.toLowerCase()) return
    registered.delete(stopToken.toLowerCase())
    log.stopped = false
    stopToken = ''
  }
  const stop = (command: WorkflowCommand) => {
    const token = command.data
    if (token === '' || registered.has(token.toLowerCase()) || token.toLowerCase() === 'pause-logging') {
      throw new Error("You cannot use a endToken that is empty, the string 'pause-logging', or another workflow command.")
    }
    stopToken = token
    registered.add(token.toLowerCase())
    log.stopped = true
    if (token.length > 6) masker.add(token)
    output(command.line)
  }
  const execute = (command: WorkflowCommand) => {
    log.commands.push(command)
    try {
      if (command.name === 'stop-commands') stop(command)
      else perform(command)
    } catch (error) {
      annotate('error', `Unable to process command '${command.name === 'add-mask' ? command.name : command.line}' successfully.`)
      annotate('error', (error as Error).message)
      log.failed = true
    }
  }
  const perform = ({ name, properties, data, line }: WorkflowCommand) => {
    const quiet = ['add-mask', 'debug', 'warning', 'error', 'notice'].includes(name)
    if (echo && !quiet) output(line)
    if (name === 'error' || name === 'warning' || name === 'notice') return annotate(name, data, properties)
    if (name === 'debug') return options.debug ? void output(data, 'debug') : undefined
    if (name === 'group') return void output(data, 'group')
    if (name === 'endgroup') return void output('', 'endgroup')
    if (name === 'add-mask') return addMask(data)
    if (name === 'set-output') return void (log.outputs[requiredName(name, properties)] = data)
    if (name === 'save-state') return void (log.state[requiredName(name, properties)] = data)
    if (name === 'echo') return void (echo = parseEcho(data))
    if (name === 'set-env' || name === 'add-path') {
      throw new Error(`The \`${name}\` command is disabled. Please upgrade to using Environment Files.`)
    }
  }
  const addMask = (value: string) => {
    if (value.trim() === '') return annotate('warning', "Can't add secret mask for empty string in ##[add-mask] command.")
    if (echo) output('::add-mask::***')
    masker.add(value)
    for (const part of value.split(/[\r\n]/)) masker.add(part.trim())
  }
  return log
}

function requiredName(command: string, properties: Record<string, string>): string {
  const name = Object.entries(properties).find(([key]) => key.toLowerCase() === 'name')?.[1]
  if (name === undefined) throw new Error(`Required field 'name' is missing in ##[${command}] command.`)
  return name
}

function parseEcho(data: string): boolean {
  const value = data.trim().toUpperCase()
  if (value === 'ON' || value === 'OFF') return value === 'ON'
  throw new Error(`Invalid echo command value. Possible values can be: 'on', 'off'. Current value is: '${data}'.`)
}

/** The log as a person sees it on GitHub with every group open. */
export function renderLog(lines: readonly LogLine[]): string {
  const labels: Record<string, string> = { error: 'Error: ', warning: 'Warning: ', notice: 'Notice: ', debug: '##[debug]' }
  let grouped = false
  const rendered: string[] = []
  for (const { kind, text } of lines) {
    if (kind === 'endgroup') {
      grouped = false
    } else if (kind === 'group') {
      grouped = true
      rendered.push(`▼ ${text}`)
    } else {
      const indent = grouped ? '    ' : ''
      rendered.push(`${labels[kind] ?? ''}${text}`.replace(/^/gm, indent))
    }
  }
  return rendered.join('\n')
}

export type LogGroup = { title: string; lines: string[] }

/** The groups of a log. An unclosed one ends where the next begins, or at the end. */
export function groupsOf(lines: readonly LogLine[]): LogGroup[] {
  const groups: LogGroup[] = []
  let current: LogGroup | undefined
  for (const { kind, text } of lines) {
    if (kind === 'group') groups.push((current = { title: text, lines: [] }))
    else if (kind === 'endgroup') current = undefined
    else current?.lines.push(text)
  }
  return groups
}
