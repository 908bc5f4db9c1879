import { setTimeout as sleep } from 'node:timers/promises'
import { Kysely, PostgresDialect, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import pg from 'pg'
import type { Log } from '../log.ts'

/** How long a migration waits for a table that is in use: everybody who comes after it waits as well. Milliseconds. */
const LOCK_WAIT_MS = 3000
const LOCK_RETRIES = 40
const RETRY_PAUSE_MS = 2000

/**
 * Brings the schema up to date. A lock in the database keeps starting processes apart, and no statement has a time limit; one that waits for a
 * table in use gives way to the others and tries again. A schema that is newer than this code is left as it is: migrations only add.
 * @throws {Error} when the schema no longer works with this code, or a migration fails.
 */
export async function migrate({
  url,
  migrations,
  log,
}: {
  url: string
  migrations: Readonly<Record<string, Migration>>
  log: Log
}): Promise<void> {
  const pool = new pg.Pool({
    connectionString: url,
    max: 1,
    connectionTimeoutMillis: 10_000,
    application_name: 'deploy-agent-server migrations',
  })
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  try {
    await sql`set lock_timeout = ${sql.lit(LOCK_WAIT_MS)}`.execute(db)
    for (let attempt = 1; ; attempt += 1) {
      const newer = await newerThan(db, migrations)
      if (newer.length > 0) await checkOldestCode(db, migrations)
      const { error } = await migrator(db, migrations, newer).migrateToLatest()
      if (error === undefined) {
        if (newer.length > 0) log.warn({ newer }, 'the schema is newer than this platform: it goes on with what it knows')
        return
      }
      if (!isBusy(error) || attempt > LOCK_RETRIES) {
        throw new Error(`the database could not be brought up to date: ${(error as Error).message}`, { cause: error })
      }
      log.warn({ attempt }, 'a table is in use, or another process migrates: the migration is tried again')
      await sleep(RETRY_PAUSE_MS)
    }
  } finally {
    await db.destroy()
  }
}

/** Migrations that were made by newer code, by their names. */
async function newerThan(db: Kysely<unknown>, known: Readonly<Record<string, Migration>>): Promise<string[]> {
  const { rows: exists } = await sql<{ there: boolean }>`select to_regclass('kysely_migration') is not null as there`.execute(db)
  if (exists[0]?.there !== true) return []
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db)
  return rows.map(({ name }) => name).filter((name) => !(name in known))
}

/** The migrator wants to know every migration that was made; those of newer code are never run by this one. */
function migrator(db: Kysely<unknown>, known: Readonly<Record<string, Migration>>, newer: readonly string[]): Migrator {
  const strangers = newer.map((name): [string, Migration] => [
    name,
    { up: () => Promise.reject(new Error(`${name} is not known here`)) },
  ])
  return new Migrator({ db, provider: { getMigrations: async () => ({ ...known, ...Object.fromEntries(strangers) }) } })
}

async function checkOldestCode(db: Kysely<unknown>, known: Readonly<Record<string, Migration>>): Promise<void> {
  const { rows } = await sql<{
    oldest: string | null
  }>`select to_jsonb(installation) ->> 'oldest_code' as oldest from installation`.execute(db)
  const oldest = rows[0]?.oldest ?? null
  const last = Object.keys(known).toSorted().at(-1) ?? ''
  if (oldest !== null && last < oldest) {
    throw new Error(
      `the database was brought up to date by a newer platform, and needs one that knows ${oldest}; this one knows ${last} at most: ` +
        'start the newer version, or restore the backup that was made before',
    )
  }
}

/** 55P03: the table, or the lock of another migrating process, was not free in time. */
function isBusy(error: unknown): boolean {
  return (error as { code?: unknown }).code === '55P03'
}
