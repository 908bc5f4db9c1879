import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { Log } from '../log.ts'
import * as controlPlane from './migrations/0001-control-plane.ts'
import * as traces from './migrations/0002-traces.ts'
import * as rateLimits from './migrations/0003-rate-limits.ts'
import * as bulkExport from './migrations/0004-bulk-export.ts'
import * as agentReferences from './migrations/0005-agent-references.ts'
import * as nodes from './migrations/0006-nodes.ts'
import * as runsByProject from './migrations/0007-runs-by-project.ts'
import { migrate } from './migrate.ts'
import type { Database, Schema } from './schema.ts'

/**
 * The migrations, in order. Forward only: a landed one is never edited. They only add (docs/operations.md, upgrade): processes of the version
 * before go on while they run and after.
 */
const MIGRATIONS = {
  '0001-control-plane': controlPlane,
  '0002-traces': traces,
  '0003-rate-limits': rateLimits,
  '0004-bulk-export': bulkExport,
  '0005-agent-references': agentReferences,
  '0006-nodes': nodes,
  '0007-runs-by-project': runsByProject,
}

/** Brings the schema up to date and opens a pool of connections. */
export async function connectDatabase({ url, log }: { url: string; log: Log }): Promise<Database> {
  await migrate({ url, migrations: MIGRATIONS, log })
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
  return new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
}
