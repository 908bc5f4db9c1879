/** How long a key that was found counts without a look, and how long one that was not. Milliseconds. */
export const FOUND_MS = 5000
export const NOT_FOUND_MS = 1000

/** How many keys are remembered of each kind: wrong ones are kept apart, so that a flood of them pushes no right one out. */
export const KEYS_MAX = 1000

interface Remembered<T> {
  readonly until: number
  readonly value: T | null
}

export interface KeyCache<T> {
  get(hash: Buffer): Promise<T | null>
}

/** Remembers what keys stand for, by their hashes, for seconds. Questions for one key that come together ask once. */
export function createKeyCache<T>({ find, now }: { find: (hash: Buffer) => Promise<T | null>; now: () => number }): KeyCache<T> {
  const found = new Map<string, Remembered<T>>()
  const notFound = new Map<string, Remembered<T>>()
  const asked = new Map<string, Promise<T | null>>()

  const ask = async (hash: Buffer, name: string): Promise<T | null> => {
    try {
      const value = await find(hash)
      if (value === null) remember(notFound, name, { until: now() + NOT_FOUND_MS, value: null })
      else remember(found, name, { until: now() + FOUND_MS, value })
      return value
    } finally {
      asked.delete(name)
    }
  }

  return {
    get: async (hash) => {
      const name = hash.toString('base64')
      for (const kind of [found, notFound]) {
        const remembered = kind.get(name)
        if (remembered !== undefined && remembered.until > now()) return remembered.value
        kind.delete(name)
      }
      const running = asked.get(name)
      if (running !== undefined) return running
      const asking = ask(hash, name)
      asked.set(name, asking)
      return asking
    },
  }
}

/** The oldest goes when there are too many. */
function remember<T>(kind: Map<string, Remembered<T>>, name: string, value: Remembered<T>): void {
  if (kind.size >= KEYS_MAX) {
    const [oldest] = kind.keys()
    if (oldest !== undefined) kind.delete(oldest)
  }
  kind.set(name, value)
}
