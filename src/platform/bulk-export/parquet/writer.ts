import { fork } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { PartRequest, RowCounts, WriterAnswer, WriterRequest, WriterSetup, WrittenPart } from './messages.ts'

const PROGRAM = fileURLToPath(new URL('writer-process.ts', import.meta.url))

/** The writer could not do it. `code` is the database's, when it was the database that refused. */
export class WriterFailure extends Error {
  readonly code: string | null

  constructor(message: string, code: string | null) {
    super(message)
    this.code = code
  }
}

/** The process that writes an export run's files. */
export interface ParquetWriter {
  /** Writes the next part; null when no row is left. @throws {WriterFailure} */
  writePart(part: PartRequest): Promise<WrittenPart | null>
  countRows(): Promise<RowCounts>
  /** Ends the process at once, with whatever it does. */
  close(): Promise<void>
}

export function startParquetWriter(setup: WriterSetup): ParquetWriter {
  const child = fork(PROGRAM, {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // What streams through is garbage at once: it is collected early, and few heaps of the C library keep it.
    execArgv: ['--max-semi-space-size=2'],
    env: { ...process.env, MALLOC_ARENA_MAX: '2' },
  })
  stepBack(child.pid)
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let next = 0
  let over: string | null = null
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('utf8')).slice(-2000)
  })
  const exited = new Promise<void>((resolve) => {
    const end = (how: string) => {
      over ??= `the process that writes the files ended (${how})${said === '' ? '' : `: ${said.trim().split('\n').at(-1)}`}`
      for (const { reject } of waiting.values()) reject(new WriterFailure(over, null))
      waiting.clear()
      resolve()
    }
    child.on('exit', (code, signal) => end(signal === null ? `exit code ${code}` : `signal ${signal}`))
    child.on('error', (error) => end(error.message))
  })
  child.on('message', (answer: WriterAnswer) => {
    const asked = waiting.get(answer.id)
    waiting.delete(answer.id)
    if (answer.ok) asked?.resolve(answer.value)
    else asked?.reject(new WriterFailure(answer.message, answer.code))
  })
  const send = (request: WriterRequest) => {
    // A failure to send shows as the end of the process.
    child.send(request, () => undefined)
  }
  const ask = (make: (id: number) => WriterRequest): Promise<unknown> => {
    if (over !== null) return Promise.reject(new WriterFailure(over, null))
    const asked = Promise.withResolvers<unknown>()
    next += 1
    waiting.set(next, asked)
    send(make(next))
    return asked.promise
  }
  send({ kind: 'setup', setup })
  return {
    writePart: (part) => ask((id) => ({ kind: 'part', id, part })) as Promise<WrittenPart | null>,
    countRows: () => ask((id) => ({ kind: 'count', id })) as Promise<RowCounts>,
    close: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** An export takes what is left of the machine: whoever waits for an answer of the API comes first. */
function stepBack(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // It has ended already, or the system does not let us: it works all the same.
  }
}
