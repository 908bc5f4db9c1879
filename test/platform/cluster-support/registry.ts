import type { Database } from '../../../src/platform/database/schema.ts'

/** A database of the tests: where it is, and what has to end before it. */
export interface Registered {
  readonly db: Database
  readonly url: string
  readonly beforeStop: (() => Promise<void>)[]
}

const databases = new WeakMap<Database, Registered>()

/** Makes a database known to the cluster that will work on it. @returns what ends that cluster. */
export function registerDatabase({ db, url }: Pick<Registered, 'db' | 'url'>): () => Promise<void> {
  const registered: Registered = { db, url, beforeStop: [] }
  databases.set(db, registered)
  return async () => {
    for (const end of registered.beforeStop.splice(0)) await end()
  }
}

export function registeredDatabase(db: Database): Registered {
  const registered = databases.get(db)
  if (registered === undefined) throw new Error('the database is not one of startTestDatabase')
  return registered
}
