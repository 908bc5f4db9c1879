import { setTimeout as sleep } from 'node:timers/promises'
import type { KubernetesObject } from '@kubernetes/client-node'
import type { Cluster } from './cluster.ts'
import { ClusterRefusal, pauseAfter, statusOf } from './cluster-error.ts'

const LIST_LIMIT_MS = 15_000
/** A watch is asked for anew after this: a connection may be dead without a word. */
const WATCH_SECONDS = 60
const WATCH_SLACK_MS = 15_000
const PAUSE_MS = 250
const GONE = 410

export interface FollowOptions<T> {
  readonly cluster: Pick<Cluster, 'stream'>
  /** Of the collection, like `/api/v1/namespaces/agents/pods`. */
  readonly path: string
  readonly selector: { readonly labelSelector: string } | { readonly fieldSelector: string }
  readonly signal: AbortSignal
  /** Hears all objects, by their uid, at the beginning and after each change. */
  readonly onChange: (objects: ReadonlyMap<string, T>) => void
  /** Hears why nothing is heard at present. */
  readonly onTrouble?: (error: unknown) => void
}

interface ListAnswer<T> {
  readonly metadata?: { readonly resourceVersion?: string }
  readonly items?: readonly T[]
}

interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: T & { readonly code?: number }
}

/**
 * Keeps up with objects of a cluster until the signal ends it: lists them, then hears of changes. Whatever breaks (the connection, the API
 * server, a version that is too old: 410) is begun anew with a list, so that what was missed is seen. Never rejects.
 */
export async function followObjects<T extends KubernetesObject>(options: FollowOptions<T>): Promise<void> {
  const { signal, onChange, onTrouble } = options
  const objects = new Map<string, T>()
  let version: string | null = null
  while (!signal.aborted) {
    try {
      if (version === null) {
        version = await list(options, objects)
        onChange(objects)
      }
      version = await watch(options, { objects, version })
      await sleep(PAUSE_MS, undefined, { signal })
    } catch (error) {
      if (signal.aborted) return
      version = null
      const gone = statusOf(error) === GONE
      if (!gone) onTrouble?.(error)
      await sleep(gone ? PAUSE_MS : pauseAfter(error), undefined, { signal }).catch(() => undefined)
    }
  }
}

async function list<T extends KubernetesObject>(
  { cluster, path, selector, signal }: FollowOptions<T>,
  objects: Map<string, T>,
): Promise<string> {
  const stream = await cluster.stream(path, { ...selector }, AbortSignal.any([signal, AbortSignal.timeout(LIST_LIMIT_MS)]))
  let text = ''
  for await (const chunk of stream.setEncoding('utf8')) text += chunk as string
  const { metadata, items } = JSON.parse(text) as ListAnswer<T>
  objects.clear()
  for (const item of items ?? []) objects.set(item.metadata?.uid ?? '', item)
  return metadata?.resourceVersion ?? ''
}

/** Resolves with the last version heard of when the server ends the watch in order. */
async function watch<T extends KubernetesObject>(
  { cluster, path, selector, signal, onChange }: FollowOptions<T>,
  { objects, version }: { objects: Map<string, T>; version: string },
): Promise<string> {
  const query = {
    ...selector,
    watch: 'true',
    resourceVersion: version,
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(WATCH_SECONDS),
  }
  const limit = AbortSignal.timeout(WATCH_SECONDS * 1000 + WATCH_SLACK_MS)
  const stream = await cluster.stream(path, query, AbortSignal.any([signal, limit]))
  let last = version
  let pending = ''
  for await (const chunk of stream.setEncoding('utf8')) {
    const lines = (pending + (chunk as string)).split('\n')
    pending = lines.pop() ?? ''
    for (const line of lines) {
      if (line === '') continue
      const { type, object } = JSON.parse(line) as WatchEvent<T>
      if (type === 'ERROR') throw new ClusterRefusal(object.code ?? 500, JSON.stringify(object))
      last = object.metadata?.resourceVersion ?? last
      if (type === 'BOOKMARK') continue
      const uid = object.metadata?.uid ?? ''
      if (type === 'DELETED') objects.delete(uid)
      else objects.set(uid, object)
      onChange(objects)
    }
  }
  return last
}
