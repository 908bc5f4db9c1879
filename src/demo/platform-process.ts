import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** The line that the platform prints with `--json` once it is ready. */
type Ready = { url: string; apiKey: string; workspaceId: string; pid: number }

export type PlatformProcess = Ready & {
  /** Asks it to end, and waits until it has; after 20 s it is killed. */
  stop: () => Promise<void>
  /** The end of its log. */
  logTail: (lines: number) => string
}

const READY_LIMIT_MS = 60_000
const STOP_LIMIT_MS = 20_000

/**
 * Starts the platform as a process of its own, with everything it keeps in `folder`. Throws, with its log, when it does not get
 * ready; nothing is left running then.
 */
export async function startPlatform(options: { folder: string; signal: AbortSignal }): Promise<PlatformProcess> {
  const logPath = join(options.folder, 'platform.log')
  const log = openSync(logPath, 'a')
  const script = join(import.meta.dirname, '..', 'platform', 'main.ts')
  const child = spawn(process.execPath, [script, '--port', '0', '--data-dir', join(options.folder, 'data'), '--json'], {
    stdio: ['ignore', 'pipe', log],
    // Out of the terminal's group: Ctrl-C reaches the demo alone, which ends things in their order.
    detached: true,
  })
  closeSync(log)
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  const logTail = (lines: number): string => readFileSync(logPath, 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
    await exited
    clearTimeout(limit)
  }

  const ready = new Promise<Ready>((resolve) => {
    if (child.stdout === null) return
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('{')) resolve(JSON.parse(line) as Ready)
    })
  })
  const first = await Promise.race([ready, exited, aborted(AbortSignal.any([options.signal, AbortSignal.timeout(READY_LIMIT_MS)]))])
  if (first !== undefined) return { ...first, stop, logTail }
  await stop()
  options.signal.throwIfAborted()
  throw new Error(`the platform did not get ready; the end of its log:\n${logTail(40)}`)
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
