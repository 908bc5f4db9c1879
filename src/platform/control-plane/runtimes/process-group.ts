import { type ChildProcess, spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { constants } from 'node:os'
import type { Duplex } from 'node:stream'
import { type OutputStream, splitLines } from './lines.ts'
import type { ProcessExit } from './runtime.ts'

/** What a tree of processes has between SIGTERM and SIGKILL. */
export const KILL_GRACE_MS = 3000

/** How long output is still read after the command has ended. */
const OUTPUT_GRACE_MS = 1000

/** How long the killed are waited for. Where nobody reaps orphans, their remains stay for ever: they hold nothing. */
const DEATH_GRACE_MS = 1000

/**
 * Leads the group. It runs the command, and beside it a watcher that blocks on descriptor 3, whose other end only the platform
 * holds: when the platform dies, however it dies, the watcher ends the group. It takes the watcher with it when it ends by itself:
 * in a container without an init process nobody else would, and each command would leave a dead entry in the process table.
 */
const GUARD = `
trap : TERM
"$@" 3<&- &
child=$!
(trap '' TERM; exec >/dev/null 2>&1; read -r _ <&3; kill -TERM 0; sleep ${KILL_GRACE_MS / 1000}; kill -KILL 0) &
watcher=$!
while :; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done
kill -KILL "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
exit "$code"
`

export interface GroupOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  /** The whole environment: nothing of the platform's own is added. */
  readonly env: Readonly<Record<string, string>>
  readonly onLine: (line: string, stream: OutputStream) => void
  /** Receives what the command sends over its IPC channel (there is one only when this is given). */
  readonly onMessage?: (message: unknown) => void
}

/** A command with everything that it starts, in a process group of its own. */
export interface ProcessGroup {
  readonly pid: number
  /** Settles when the command has ended and its output was read; whatever it left in its group is killed by then. */
  readonly exited: Promise<ProcessExit>
  send(message: object): void
  /** SIGTERM to all of the group, SIGKILL after the grace; resolves when it has ended. */
  terminate(graceMs?: number): Promise<void>
  kill(): void
}

/**
 * Starts a command without a shell in between that would read its arguments.
 * @throws {Error} when there is no `/bin/sh` or no such folder; a command that does not exist exits with 127.
 */
export async function startGroup(options: GroupOptions): Promise<ProcessGroup> {
  const child = spawn('/bin/sh', ['-c', GUARD, 'guard', options.command, ...options.args], {
    cwd: options.cwd,
    env: { ...options.env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', ...(options.onMessage === undefined ? [] : ['ipc' as const])],
  })
  await new Promise<void>((resolve, reject) => child.once('spawn', resolve).once('error', reject))
  const pid = child.pid as number
  const lifeline = child.stdio[3] as Duplex
  // The watcher's end closes first when the group is killed.
  lifeline.on('error', () => undefined)
  if (options.onMessage !== undefined) child.on('message', options.onMessage)

  let over = false
  const kill = (signal: NodeJS.Signals = 'SIGKILL') => {
    // The number may be a stranger's by now.
    if (over) return
    try {
      process.kill(-pid, signal)
    } catch {
      // The whole group is gone.
    }
  }
  const ended = new Promise<ProcessExit>((resolve) => {
    child.once('exit', (code, signal) => {
      // Nothing that the command left behind may outlive it, or hold its output open.
      kill()
      over = true
      lifeline.destroy()
      resolve(exitOf(code, signal))
    })
  })
  const read = Promise.all([
    splitLines(child.stdout, 'stdout', options.onLine),
    splitLines(child.stderr, 'stderr', options.onLine),
  ])
  const exited = ended.then(async (exit) => {
    // A process that left the group may still hold the output open: it is not waited for.
    const timer = setTimeout(() => {
      child.stdout?.destroy()
      child.stderr?.destroy()
    }, OUTPUT_GRACE_MS)
    await read
    clearTimeout(timer)
    await goneWithin(pid, DEATH_GRACE_MS)
    return exit
  })

  return {
    pid,
    exited,
    send: (message) => sendTo(child, message),
    async terminate(graceMs = KILL_GRACE_MS) {
      kill('SIGTERM')
      const timer = setTimeout(kill, graceMs)
      await ended
      clearTimeout(timer)
      await exited
    },
    kill,
  }
}

async function goneWithin(group: number, limitMs: number): Promise<void> {
  const start = Date.now()
  while (Date.now() - start < limitMs) {
    try {
      process.kill(-group, 0)
    } catch {
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
    if (Date.now() - start > 50 && !(await hasLiving(group))) return
  }
}

/** Whether any of the group is more than an entry in the process table (Linux; unknown elsewhere, and then true). */
async function hasLiving(group: number): Promise<boolean> {
  const names = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  if (names.length === 0) return true
  const states = await Promise.all(
    names.map(async (name) => {
      // `pid (name) state parent group …`; the name may hold anything.
      const text = await readFile(`/proc/${name}/stat`, 'latin1').catch(() => '')
      const [state, , member] = text.slice(text.lastIndexOf(')') + 2).split(' ')
      return Number(member) === group && state !== 'Z' && state !== 'X'
    }),
  )
  return states.includes(true)
}

function sendTo(child: ChildProcess, message: object): void {
  // Not connected: it is ending, and its exit tells all there is to know.
  if (child.connected) child.send(message, () => undefined)
}

/** The guard passes a death by signal on as 128 and the signal's number. */
function exitOf(code: number | null, signal: string | null): ProcessExit {
  const number = code === null ? 0 : code - 128
  const name = Object.entries(constants.signals).find(([, value]) => value === number)?.[0]
  return name === undefined ? { code, signal } : { code: null, signal: name }
}

/** Tells an end in words: `exited with code 1`, `was killed by SIGKILL`. */
export function describeExit({ code, signal }: ProcessExit): string {
  if (code === null && signal === null) return 'is gone'
  return signal === null ? `exited with code ${code}` : `was killed by ${signal}`
}
