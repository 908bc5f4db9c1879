import { randomUUID } from 'node:crypto'
import type { Fault, ListedFault } from './fault.ts'

/** Most faults at one time. */
const FAULTS_MAX = 1000

/** The faults of one process, in the order in which they were added. */
export interface FaultList {
  /** @throws {RangeError} when there are too many. */
  add(fault: Fault): ListedFault
  list(): ListedFault[]
  /** @returns whether it was there. */
  remove(id: string): boolean
  clear(): void
  /** The fault that this request meets: the first that fits and has requests left. Counts it. */
  take(request: { method: string; path: string }): Fault | null
}

export function createFaultList(): FaultList {
  let entries: { fault: Fault; id: string; path: RegExp; left: number; skip: number; struck: number }[] = []
  const shown = ({ fault, id, left, struck }: (typeof entries)[number]): ListedFault => ({ ...fault, id, left, struck })
  return {
    add: (fault) => {
      // Those that are used up are only there to be counted.
      if (entries.length >= FAULTS_MAX) entries = entries.filter(({ left }) => left > 0)
      if (entries.length >= FAULTS_MAX) throw new RangeError(`there are ${FAULTS_MAX} faults already: remove some`)
      const entry = {
        fault,
        id: randomUUID(),
        path: patternOf(fault.path ?? '/**'),
        left: fault.times,
        skip: fault.skip,
        struck: 0,
      }
      entries.push(entry)
      return shown(entry)
    },
    list: () => entries.map(shown),
    remove: (id) => {
      const before = entries.length
      entries = entries.filter((entry) => entry.id !== id)
      return entries.length < before
    },
    clear: () => {
      entries = []
    },
    take: ({ method, path }) => {
      for (const entry of entries) {
        if (entry.left === 0 || !entry.path.test(path)) continue
        if (entry.fault.method && entry.fault.method !== method) continue
        if (entry.skip > 0) {
          entry.skip -= 1
          continue
        }
        entry.left -= 1
        entry.struck += 1
        return entry.fault
      }
      return null
    },
  }
}

/** A slash at the end makes no difference, as on the routes. */
function patternOf(path: string): RegExp {
  const parts = path.replace(/\/+$/, '').split(/(\*\*|\*)/)
  const source = parts.map((part) =>
    part === '**' ? '.*' : part === '*' ? '[^/]+' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'),
  )
  return new RegExp(`^${source.join('')}/?$`)
}
