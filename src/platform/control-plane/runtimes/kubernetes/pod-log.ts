import { setTimeout as sleep } from 'node:timers/promises'
import type { V1Pod } from '@kubernetes/client-node'
import { type OutputStream, splitLines } from '../lines.ts'
import type { Cluster } from './cluster.ts'
import { isAway } from './cluster-error.ts'
import { CONTAINER } from './names.ts'
import { agentOf } from './rollout.ts'

const PAUSE_MS = 500
const PAUSE_MAX_MS = 10_000
/** How long output is still read after its pod has gone. */
const OUTPUT_GRACE_MS = 2000
const READ_LIMIT_MS = 10_000
/** A log that is followed is asked for anew after this: a connection may be dead without a word. */
const FOLLOW_LIMIT_MS = 10 * 60_000

export type OnLine = (line: string, stream: OutputStream) => void

export interface PodLogs {
  /** Takes up the logs of pods that have begun, and leaves those that are gone. */
  readonly see: (pods: readonly V1Pod[]) => void
  /** Resolves when all that was printed has been read, or after a moment. */
  readonly end: () => Promise<void>
}

/** Who reads the log of one pod. */
interface Reader {
  readonly over: AbortController
  /** How often its container has been started again. */
  restarts: number
  /** Its pod is: then what is there is read, and no more is waited for. */
  gone: boolean
  done: Promise<void>
}

/** Reads what the agent's containers print, from their beginning, whatever starts them again. A cluster does not tell errors from output. */
export function createPodLogs({ cluster, namespace, onLine }: { cluster: Cluster; namespace: string; onLine: OnLine }): PodLogs {
  const readers = new Map<string, Reader>()
  const reading = new Set<Reader>()
  let closed = false

  const leave = (reader: Reader) => {
    reader.gone = true
    const timer = setTimeout(() => reader.over.abort(), OUTPUT_GRACE_MS)
    void reader.done.then(() => clearTimeout(timer))
  }

  return {
    see: (pods) => {
      if (closed) return
      const names = new Set<string>()
      for (const pod of pods) {
        const name = pod.metadata?.name ?? ''
        names.add(name)
        const { state, lastState, restartCount: restarts = 0 } = agentOf(pod) ?? {}
        const begun = state?.running ?? state?.terminated ?? lastState?.terminated
        const known = readers.get(name)
        if (known !== undefined) known.restarts = restarts
        if (begun === undefined || known !== undefined) continue
        const reader: Reader = { over: new AbortController(), restarts, gone: false, done: Promise.resolve() }
        reader.done = readOn({ cluster, place: placeOf(namespace, name), onLine, reader }).then(() => void reading.delete(reader))
        reading.add(reader)
        readers.set(name, reader)
      }
      for (const [name, reader] of readers) {
        if (names.has(name)) continue
        readers.delete(name)
        leave(reader)
      }
    },
    end: async () => {
      closed = true
      for (const reader of readers.values()) leave(reader)
      readers.clear()
      await Promise.all([...reading].map(({ done }) => done))
    },
  }
}

/** The last lines of a container that has ended; empty when they cannot be read. */
export async function lastLines(
  cluster: Cluster,
  { namespace, pod, previous, count }: { namespace: string; pod: string; previous: boolean; count: number },
): Promise<string[]> {
  const query = { container: CONTAINER, tailLines: String(count), ...(previous ? { previous: 'true' } : {}) }
  const lines: string[] = []
  try {
    const stream = await cluster.stream(placeOf(namespace, pod), query, AbortSignal.timeout(READ_LIMIT_MS))
    await splitLines(stream, 'stdout', (line) => lines.push(line))
  } catch {
    // What it printed as it was followed is told instead.
  }
  return lines
}

function placeOf(namespace: string, pod: string): string {
  return `/api/v1/namespaces/${namespace}/pods/${pod}/log`
}

interface Reading {
  readonly cluster: Cluster
  readonly place: string
  readonly onLine: OnLine
  readonly reader: Reader
}

async function readOn({ cluster, place, onLine, reader }: Reading): Promise<void> {
  const { signal } = reader.over
  let last = ''
  let pause = PAUSE_MS
  let restarts = 0
  const read = async (more: Readonly<Record<string, string>>) => {
    const before = last
    const since = last === '' ? {} : { sinceTime: `${new Date(last).toISOString().slice(0, 19)}Z` }
    const query = { container: CONTAINER, timestamps: 'true', ...since, ...more }
    const stream = await cluster.stream(place, query, AbortSignal.any([signal, AbortSignal.timeout(FOLLOW_LIMIT_MS)]))
    await splitLines(stream, 'stdout', (line, name) => {
      const [, stamp = '', text = line] = /^(\d{4}-\d\d-\d\dT\S+) ?(.*)$/.exec(line) ?? []
      // Told before the connection broke, or the container was started again.
      if (stamp !== '' && stamp <= before) return
      if (stamp > last) last = stamp
      if (text !== '') onLine(text, name)
    })
  }
  while (!signal.aborted) {
    const wasGone = reader.gone
    const before = last
    try {
      if (reader.restarts > restarts) {
        // The end of the one before, if its log was not followed up to there.
        const seen = reader.restarts
        await read({ previous: 'true' }).catch((error: unknown) => {
          // It may be forgotten by now.
          if (isAway(error)) throw error
        })
        restarts = seen
      }
      await read({ follow: 'true' })
    } catch {
      // The API is away, or the pod is gone.
    }
    if (wasGone) return
    // A container that waits for its next start has an ended log.
    pause = last === before ? Math.min(2 * pause, PAUSE_MAX_MS) : PAUSE_MS
    await sleep(pause, undefined, { signal }).catch(() => undefined)
  }
}
