import type { LogLevel } from '../../../contract/log.ts'
import { createTail, type OutputStream } from '../runtimes/lines.ts'
import { startGroup } from '../runtimes/process-group.ts'
import type { ProcessExit } from '../runtimes/runtime.ts'
import { redactUrls } from './repository-url.ts'
import type { BuildEffects } from './source.ts'

export interface Step {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Level of a line, or null to leave it out of the log. Default: by the line's own words. */
  readonly level?: (line: string, stream: OutputStream) => LogLevel | null
}

export interface StepResult {
  readonly exit: ProcessExit
  readonly ok: boolean
  /** All of standard output, up to `STDOUT_MAX` characters. */
  readonly stdout: string
  /** The last lines of both streams, in the order in which they came. */
  readonly tail: readonly string[]
}

const STDOUT_MAX = 1024 * 1024
const TAIL_LINES = 200

/**
 * Runs one command of a build to its end; every line goes to the log, credentials in addresses blacked out.
 * On abort the whole process tree is killed, and the signal's reason is thrown once it is gone.
 */
export async function runStep(step: Step, { log, signal }: BuildEffects): Promise<StepResult> {
  signal.throwIfAborted()
  const tail = createTail(TAIL_LINES)
  let stdout = ''
  const group = await startGroup({
    command: step.command,
    args: step.args,
    cwd: step.cwd,
    env: step.env,
    onLine: (raw, stream) => {
      const line = redactUrls(raw)
      tail.push(line)
      if (stream === 'stdout' && stdout.length < STDOUT_MAX) stdout += `${line}\n`
      const level = (step.level ?? levelOf)(line, stream)
      if (level !== null) log.write(level, line)
    },
  })
  const onAbort = () => void group.terminate()
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  const exit = await group.exited
  signal.removeEventListener('abort', onAbort)
  signal.throwIfAborted()
  return { exit, ok: exit.code === 0, stdout, tail: tail.lines() }
}

/** Programs write progress to standard error as well: only a line's own words tell that something is wrong. */
function levelOf(line: string): LogLevel {
  if (/^(npm (error|ERR!)|error\b|fatal:|ERR_)/i.test(line)) return 'ERROR'
  if (/^(npm warn|warn(ing)?\b)/i.test(line)) return 'WARNING'
  return 'INFO'
}
