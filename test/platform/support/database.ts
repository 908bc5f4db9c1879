import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pino } from 'pino'
import { connectDatabase } from '../../../src/platform/database/connect.ts'
import { startEmbeddedDatabase } from '../../../src/platform/database/embedded.ts'
import type { Database } from '../../../src/platform/database/schema.ts'
import { hashApiKey } from '../../../src/platform/workspaces/authenticate.ts'
import { registerDatabase } from '../cluster-support/registry.ts'

export const SILENT = pino({ level: 'silent' })

export interface TestDatabase {
  readonly db: Database
  readonly url: string
  /** Where the server keeps its files. */
  readonly directory: string
  stop(): Promise<void>
}

/** A real PostgreSQL of its own with the schema in it: start it once for a test file. */
export async function startTestDatabase(): Promise<TestDatabase> {
  const root = await mkdtemp(path.join(tmpdir(), 'platform-database-'))
  const directory = path.join(root, 'database')
  const server = await startEmbeddedDatabase({ directory, log: SILENT })
  const db = await connectDatabase({ url: server.url, log: SILENT })
  const endClusters = registerDatabase({ db, url: server.url })
  return {
    db,
    url: server.url,
    directory: root,
    stop: async () => {
      await endClusters()
      await db.destroy()
      await server.stop()
      await rm(root, { recursive: true, force: true })
    },
  }
}

export interface TestWorkspace {
  readonly id: string
  readonly key: string
}

/** A workspace with a key. */
export async function createWorkspace(db: Database, plan = 'enterprise'): Promise<TestWorkspace> {
  const id = randomUUID()
  const key = `das_${randomBytes(24).toString('base64url')}`
  await db.insertInto('workspaces').values({ id, name: id, plan }).execute()
  await db.insertInto('api_keys').values({ id: randomUUID(), workspace_id: id, key_hash: hashApiKey(key) }).execute()
  return { id, key }
}
