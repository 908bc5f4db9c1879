import path from 'node:path'
import { isSameProcess, type ProcessIdentity, processStartedAt } from '../../process-identity.ts'
import type { BuildLog } from '../build-log.ts'
import { writeAgentLine } from './agent-log.ts'
import { waitUntilHealthy } from './health.ts'
import { prepareLaunch } from './launch.ts'
import { type LaunchMessage, launchMessageSchema, type LaunchOrder } from './launch-options.ts'
import { createTail } from './lines.ts'
import { describeExit, KILL_GRACE_MS, type ProcessGroup, startGroup } from './process-group.ts'
import { type AgentProcess, type BuildStart, type Runtime, StartFailure } from './runtime.ts'

const HOST = '127.0.0.1'
const OUTPUT_LINES = 30
/** The state is written to disk at the end of the grace. */
const FLUSH_MS = 2000
/** Node's exit code when nothing is left to do and a top-level await has not settled. */
const UNSETTLED_EXIT = 13

export interface ProcessRuntimeOptions {
  /** The Node that runs JavaScript agents; the platform's own by default. */
  readonly node?: string
  /** Between two questions whether the agent answers. */
  readonly pollMs?: number
}

/** Runs each agent as a process of this machine, in a group of its own, on a port of 127.0.0.1 that the system chooses. */
export function createProcessRuntime({ node = process.execPath, pollMs = 50 }: ProcessRuntimeOptions = {}): Runtime<BuildStart> {
  return {
    unavailable: async () => null,

    async start(request, { log, signal, timeoutMs }) {
      signal.throwIfAborted()
      const tail = createTail(OUTPUT_LINES)
      const messages = createMailbox()
      const directory = path.dirname(path.join(request.agent.directory, request.agent.configPath))
      const launch = await prepareLaunch(request, { host: HOST, node, directory })
      const group = await startGroup({
        ...launch,
        cwd: directory,
        onLine: (line, stream) => tail.push(writeAgentLine(log, line, stream)),
        onMessage: messages.deliver,
      })
      const startedAt = await processStartedAt(group.pid)
      const deadline = AbortSignal.timeout(timeoutMs)
      const either = AbortSignal.any([signal, deadline])
      try {
        const port = await firstOf({ group, messages, signal: either })
        await waitUntilHealthy({ host: HOST, port, pollMs, signal: either, exited: group.exited })
        log.write('INFO', `The agent answers (process ${group.pid}, port ${port})`)
        return agentProcess({ group, port, startedAt, log })
      } catch (error) {
        group.kill()
        await group.exited
        signal.throwIfAborted()
        const timedOut = `The agent did not answer GET /ok within ${timeoutMs / 1000} s.`
        const message = deadline.aborted ? timedOut : error instanceof StartFailure ? error.message : null
        if (message === null) throw error
        log.write('ERROR', message)
        throw new StartFailure(message, tail.lines())
      }
    },

    async endStray(reference) {
      const identity = identityOf(reference)
      if (identity === null || !(await isSameProcess(identity))) return false
      const { pid } = identity
      signalGroup(pid, 'SIGTERM')
      const deadline = Date.now() + KILL_GRACE_MS
      while (Date.now() < deadline && (await isSameProcess(identity))) await new Promise((resolve) => setTimeout(resolve, 50))
      signalGroup(pid, 'SIGKILL')
      return true
    },

    list: async () => [],
  }
}

/** The start time tells the process from a later one with the same number. */
function referenceOf({ pid, startedAt }: ProcessIdentity): string {
  return `process:${pid}:${startedAt}`
}

function identityOf(reference: string): ProcessIdentity | null {
  const [, pid, startedAt] = /^process:(\d+):(.+)$/.exec(reference) ?? []
  return pid === undefined || startedAt === undefined ? null : { pid: Number(pid), startedAt }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // It is gone.
  }
}

interface Mailbox {
  readonly deliver: (message: unknown) => void
  readonly first: Promise<LaunchMessage>
}

function createMailbox(): Mailbox {
  const { promise, resolve } = Promise.withResolvers<LaunchMessage>()
  return {
    first: promise,
    deliver: (message) => {
      const parsed = launchMessageSchema.safeParse(message)
      if (parsed.success) resolve(parsed.data)
    },
  }
}

interface Beginning {
  readonly group: ProcessGroup
  readonly messages: Mailbox
  readonly signal: AbortSignal
}

/** The port, unless the process fails, ends, or the signal is aborted first. */
async function firstOf({ group, messages, signal }: Beginning): Promise<number> {
  signal.throwIfAborted()
  const aborted = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  )
  const ended = group.exited.then((exit) => {
    const why = exit.code === UNSETTLED_EXIT ? ': a module waits for something that never comes (top-level await)' : ''
    throw new StartFailure(`The agent ${describeExit(exit)} before it answered${why}.`)
  })
  // Whichever loses the race has nobody else to catch it.
  aborted.catch(() => undefined)
  ended.catch(() => undefined)
  const message = await Promise.race([messages.first, aborted, ended])
  if (message.type === 'listening') return message.port
  // What it printed comes before its sentence: it is about to exit.
  await Promise.race([group.exited, new Promise((resolve) => setTimeout(resolve, 2000))])
  throw new StartFailure(`The agent could not start: ${message.message}`)
}

interface Running {
  readonly group: ProcessGroup
  readonly port: number
  readonly startedAt: string
  readonly log: BuildLog
}

function agentProcess({ group, port, startedAt, log }: Running): AgentProcess {
  let stopping: Promise<void> | undefined
  void group.exited.then((exit) => {
    log.write(stopping === undefined ? 'ERROR' : 'INFO', `The agent ${describeExit(exit)}`)
  })
  const stop = async (graceMs: number) => {
    const order: LaunchOrder = { type: 'stop', graceMs }
    group.send(order)
    const timer = setTimeout(() => group.kill(), graceMs + FLUSH_MS)
    await group.exited
    clearTimeout(timer)
  }
  return {
    address: { host: HOST, port },
    reference: referenceOf({ pid: group.pid, startedAt }),
    exited: group.exited,
    stop: ({ graceMs }) => (stopping ??= stop(graceMs)),
  }
}
