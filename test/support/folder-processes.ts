import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isSameProcess, type ProcessIdentity, processStartedAt } from '../../src/platform/process-identity.ts'

/** Makes a temporary folder for something that may outlive this process, and notes in it whose it is. */
export async function makeOwnedFolder<T extends object>(prefix: string, more: T): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), prefix))
  const owner: ProcessIdentity = { pid: process.pid, startedAt: await processStartedAt(process.pid) }
  writeFileSync(join(folder, 'owner.json'), JSON.stringify({ ...owner, ...more }))
  return folder
}

/** The folders of that kind whose processes have gone without removing them, with what was noted. */
export async function abandonedFolders<T extends object>(prefix: string): Promise<{ folder: string; noted: T }[]> {
  const found = []
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(prefix))) {
    const folder = join(tmpdir(), name)
    try {
      const noted = JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8')) as ProcessIdentity & T
      if (!(await isSameProcess(noted))) found.push({ folder, noted })
    } catch {
      // It is being made, or unmade, at this moment.
    }
  }
  return found
}

/** Waits until no process of the folder is left, as long as the limit allows. */
export async function gone(folder: string, limitMs: number): Promise<void> {
  const deadline = Date.now() + limitMs
  while (processesOf(folder).length > 0 && Date.now() < deadline) await sleep(50)
}

/** The processes that have the folder in their commands. */
export function processesOf(folder: string): number[] {
  return allProcesses().filter((pid) => commandOf(pid).includes(`${folder}/`))
}

export function withDescendants(pids: readonly number[]): number[] {
  const found = new Set(pids)
  const parents = new Map(allProcesses().map((pid) => [pid, parentOf(pid)]))
  for (let size = -1; size !== found.size;) {
    size = found.size
    for (const [pid, parent] of parents) if (parent !== null && found.has(parent)) found.add(pid)
  }
  return [...found]
}

function allProcesses(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid)
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return null
  }
}

export function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch {
      // It is gone.
    }
  }
}

/** The mounts in a folder, the innermost first. */
export function mountsBelow(folder: string): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  return mounts
    .map((line) => line.split(' ')[1] ?? '')
    .filter((place) => place.startsWith(`${folder}/`))
    .toReversed()
}
