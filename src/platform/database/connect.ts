import { Kysely, PostgresDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import pg from 'pg'
import type { Log } from '../log.ts'
import * as controlPlane from './migrations/0001-control-plane.ts'
import * as traces from './migrations/0002-traces.ts'
import * as rateLimits from './migrations/0003-rate-limits.ts'
import * as bulkExport from './migrations/0004-bulk-export.ts'
import type { Database, Schema } from './schema.ts'

/** The migrations, in order. Forward only: a landed one is never edited. */
const MIGRATIONS = {
  '0001-control-plane': controlPlane,
  '0002-traces': traces,
  '0003-rate-limits': rateLimits,
  '0004-bulk-export': bulkExport,
}

/** Opens a pool of connections and brings the schema up to date; a lock in the database keeps two starting platforms apart. */
export async function connectDatabase({ url, log }: { url: string; log: Log }): Promise<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    max: 20,
    connectionTimeoutMillis: 10_000,
    // A statement that hangs must not hang its request for ever.
    statement_timeout: 30_000,
    // Nor one whose answer never arrives: the connection may be dead without a word.
    query_timeout: 60_000,
    keepAlive: true,
    idle_in_transaction_session_timeout: 60_000,
    application_name: 'deploy-agent-server',
  })
  pool.on('error', (error) => log.warn({ error: error.message }, 'a database connection was lost'))
  // Of a connection that is in use the pool says nothing, and an error that nobody hears ends the process: its query fails anyhow.
  pool.on('connect', (client) => client.on('error', () => undefined))
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
  try {
    await migrate(db)
  } catch (error) {
    await db.destroy()
    throw error
  }
  return db
}

async function migrate(db: Database): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw new Error(`the database could not be brought up to date: ${(error as Error).message}`, { cause: error })
}
