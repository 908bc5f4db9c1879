import { randomUUID } from 'node:crypto'
import type { V1ObjectMeta } from '@kubernetes/client-node'

/** An object as it stands in the double: plain JSON, dates as text. */
export interface Stored {
  apiVersion: string
  kind: string
  metadata: Omit<V1ObjectMeta, 'deletionTimestamp' | 'creationTimestamp'> & {
    name: string
    namespace: string
    uid: string
    deletionTimestamp?: string
    creationTimestamp?: string
  }
  // What is in it is looked at field by field.
  // oxlint-disable-next-line typescript/no-explicit-any
  spec?: any
  // oxlint-disable-next-line typescript/no-explicit-any
  status?: any
  data?: Record<string, string>
  [field: string]: unknown
}

export type Change = 'ADDED' | 'MODIFIED' | 'DELETED'

interface Past {
  readonly version: number
  readonly collection: string
  readonly type: Change
  readonly object: Stored
}

/** The version that was asked for is no longer known. */
export class TooOld extends Error {}

/** Objects of a cluster by their collection (`pods`, `deployments`, …), with the history that watches read. */
export interface Objects {
  add(collection: string, object: object): Stored
  /** The object as it is now, for changing; call `touch` afterwards. */
  get(collection: string, place: { namespace: string; name: string }): Stored | undefined
  all(collection: string): Stored[]
  touch(collection: string, object: Stored): void
  remove(collection: string, object: Stored): void
  version(): number
  /** What changed after a version. @throws {TooOld} */
  since(collection: string, version: number): Past[]
  /** Forgets the history: whoever asks from an older version hears 410. */
  compact(): void
  onChange(listener: (past: Past) => void): () => void
}

export function createObjects(): Objects {
  const collections = new Map<string, Map<string, Stored>>()
  const listeners = new Set<(past: Past) => void>()
  let history: Past[] = []
  let version = 1000
  let oldest = version

  const of = (collection: string) => {
    const found = collections.get(collection) ?? new Map<string, Stored>()
    collections.set(collection, found)
    return found
  }
  const tell = (collection: string, type: Change, object: Stored) => {
    version += 1
    object.metadata.resourceVersion = String(version)
    const past = { version, collection, type, object: structuredClone(object) }
    history.push(past)
    for (const listener of listeners) listener(past)
  }

  return {
    add: (collection, given) => {
      const object = structuredClone(given) as Stored
      object.metadata = { ...object.metadata, uid: randomUUID(), creationTimestamp: now(), generation: 1 }
      of(collection).set(keyOf(object.metadata), object)
      tell(collection, 'ADDED', object)
      return object
    },
    get: (collection, place) => of(collection).get(keyOf(place)),
    all: (collection) => [...of(collection).values()],
    touch: (collection, object) => {
      if (of(collection).get(keyOf(object.metadata)) === object) tell(collection, 'MODIFIED', object)
    },
    remove: (collection, object) => {
      if (of(collection).delete(keyOf(object.metadata))) tell(collection, 'DELETED', object)
    },
    version: () => version,
    since: (collection, from) => {
      if (from < oldest) throw new TooOld(`too old resource version: ${from} (${oldest})`)
      return history.filter((past) => past.collection === collection && past.version > from)
    },
    compact: () => {
      history = []
      version += 1
      oldest = version
    },
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export function now(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`
}

function keyOf({ namespace, name }: { namespace?: string | undefined; name?: string | undefined }): string {
  return `${namespace}/${name}`
}
