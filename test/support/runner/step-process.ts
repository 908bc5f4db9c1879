import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as delay } from 'node:timers/promises'

/** What a schedule can look at while the process runs. */
export type StepProgress = { stdout: string; stderr: string; elapsedMs: number }

/** True when the next thing may happen. It is asked every few milliseconds. */
export type When = (progress: StepProgress) => boolean

/** One signal to the process alone (not to its children), `afterMs` after `when` became true. Signals go out in order. */
export type SignalStep = { signal: NodeJS.Signals; when?: When; afterMs?: number }

/** The runner's own schedule on cancellation (actions/runner: ProcessInvoker.cs); the last step kills the whole tree. */
export const INTERRUPT_GRACE_MS = 7500
export const TERMINATE_GRACE_MS = 2500

/** The runner waits this long for the pipes of a process that has ended, then kills what holds them. */
const PIPE_GRACE_MS = 5000

export type StepProcessOptions = {
  command: string
  args: readonly string[]
  cwd: string
  env: Readonly<Record<string, string>>
  onLine: (line: string) => void
  /** The test's own limit: above it everything is killed and the result says `timedOut`. */
  timeoutMs: number
  cancelWhen?: When
  signals?: readonly SignalStep[]
  /** Gets the process group of what the process leaves running; absent: all of it is killed. */
  leave?: (group: number) => void
}

export type StepProcessResult = {
  /** As the runner sees it: 128 and the signal's number for a process that a signal ended. */
  exitCode: number
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
  durationMs: number
  /** From the first signal to the end; null when none was sent. */
  endedAfterSignalMs: number | null
  signalsSent: NodeJS.Signals[]
  timedOut: boolean
  /** True when the process had ended but something that it had started still held its output. */
  leftChildren: boolean
}

/** Runs one process as the runner does: output by lines, no standard input, signals by the runner's schedule. */
export async function runStepProcess(options: StepProcessOptions): Promise<StepProcessResult> {
  const started = performance.now()
  const elapsed = () => performance.now() - started
  const child = spawn(options.command, options.args, {
    cwd: options.cwd,
    env: { ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that the tree can be killed as a whole.
    detached: true,
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    const decoder = new StringDecoder('utf8')
    const lines = splitLines(options.onLine)
    child[name].on('data', (chunk: Buffer) => {
      const text = decoder.write(chunk)
      output[name] += text
      lines.write(text)
    })
    child[name].on('end', () => lines.end())
  }

  let firstSignalAt: number | null = null
  const signalsSent: NodeJS.Signals[] = []
  const send = (signal: NodeJS.Signals) => {
    firstSignalAt ??= elapsed()
    signalsSent.push(signal)
    child.kill(signal)
  }
  const killTree = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // The group is gone.
    }
  }

  const ended = new AbortController()
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const progress = () => ({ ...output, elapsedMs: elapsed() })
  const schedule = runSchedule({ ...options, progress, send, killTree, until: ended.signal })
  let timedOut = false
  const limit = setTimeout(() => {
    timedOut = true
    killTree()
  }, options.timeoutMs)

  let leftChildren = false
  try {
    const { code, signal } = await exited
    const durationMs = elapsed()
    const pipes = setTimeout(() => {
      leftChildren = true
      killTree()
      child.stdout.destroy()
      child.stderr.destroy()
    }, PIPE_GRACE_MS)
    await closed
    clearTimeout(pipes)
    return {
      exitCode: code ?? 128 + (signal === null ? 0 : constants.signals[signal]),
      signal,
      ...output,
      durationMs,
      endedAfterSignalMs: firstSignalAt === null ? null : durationMs - firstSignalAt,
      signalsSent,
      timedOut,
      leftChildren,
    }
  } finally {
    clearTimeout(limit)
    ended.abort()
    await schedule
    if (options.leave === undefined || timedOut || child.pid === undefined) killTree()
    else options.leave(child.pid)
  }
}

type Schedule = Pick<StepProcessOptions, 'cancelWhen' | 'signals'> & {
  progress: () => StepProgress
  send: (signal: NodeJS.Signals) => void
  killTree: () => void
  until: AbortSignal
}

/** Never rejects: it ends when its work is done or when `until` fires. */
async function runSchedule({ cancelWhen, signals, progress, send, killTree, until }: Schedule): Promise<void> {
  const sleep = (ms: number) => delay(ms, undefined, { signal: until })
  const waitFor = async (when: When) => {
    while (!when(progress())) await sleep(5)
  }
  try {
    for (const step of signals ?? []) {
      await waitFor(step.when ?? (() => true))
      await sleep(step.afterMs ?? 0)
      send(step.signal)
    }
    if (cancelWhen === undefined) return
    await waitFor(cancelWhen)
    send('SIGINT')
    await sleep(INTERRUPT_GRACE_MS)
    send('SIGTERM')
    await sleep(TERMINATE_GRACE_MS)
    send('SIGKILL')
    killTree()
  } catch (error) {
    if (!until.aborted) throw error
  }
}

/** Lines as .NET's reader makes them: LF, CR LF and a CR alone all end one. */
export function splitLines(onLine: (line: string) => void): { write: (text: string) => void; end: () => void } {
  let rest = ''
  return {
    write: (text) => {
      rest += text
      // A CR at the very end may be the first half of CR LF.
      for (let match = /\r\n|\n|\r(?!$)/.exec(rest); match !== null; match = /\r\n|\n|\r(?!$)/.exec(rest)) {
        onLine(rest.slice(0, match.index))
        rest = rest.slice(match.index + match[0].length)
      }
    },
    end: () => {
      if (rest !== '') onLine(rest.replace(/\r$/, ''))
      rest = ''
    },
  }
}
