import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

/** A process that was seen: the start time tells it from a later one with the same number. */
export interface ProcessIdentity {
  readonly pid: number
  readonly startedAt: string
}

/**
 * When the process started, in whatever unit the system counts in: clock ticks since boot on Linux, a date elsewhere.
 * Returns `''` when there is no such process.
 */
export async function processStartedAt(pid: number): Promise<string> {
  if (process.platform === 'linux') {
    try {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
      // The second field is the command in brackets and may hold spaces; field 22 counts from behind the last bracket.
      return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
    } catch {
      return ''
    }
  }
  try {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'lstart=', '-p', String(pid)])
    return stdout.trim()
  } catch {
    return ''
  }
}

/** True when that very process still runs (a zombie does not). */
export async function isSameProcess(identity: ProcessIdentity): Promise<boolean> {
  const startedAt = await processStartedAt(identity.pid)
  if (startedAt === '' || startedAt !== identity.startedAt) return false
  return !(await isZombie(identity.pid))
}

async function isZombie(pid: number): Promise<boolean> {
  if (process.platform !== 'linux') return false
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')
  } catch {
    return true
  }
}
