import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ExportSettings } from '../../../../src/platform/bulk-export/settings.ts'

const PROGRAM = fileURLToPath(new URL('worker-process.ts', import.meta.url))

export interface KillableWorker {
  readonly child: ChildProcess
  /** What it has written to its log. */
  log(): string
  ready: Promise<void>
  kill(): Promise<void>
}

export function startKillableWorker(orders: {
  databaseUrl: string
  spool: string
  owner: string
  settings: ExportSettings
  logLevel?: string
}): KillableWorker {
  const { logLevel = 'warn', ...rest } = orders
  const env = { ...process.env, WORKER_LOG_LEVEL: logLevel }
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(rest)], { stdio: ['ignore', 'pipe', 'pipe'], env })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk.toString('utf8')
  })
  const exited = once(child, 'exit')
  const ready = Promise.race([
    once(child.stdout, 'data').then(() => undefined),
    exited.then(() => {
      if (child.signalCode === null) throw new Error(`the worker ended: ${log}`)
    }),
  ])
  ready.catch(() => undefined)
  return {
    child,
    log: () => log,
    ready,
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}
