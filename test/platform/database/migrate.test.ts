import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { connectDatabase } from '../../../src/platform/database/connect.ts'
import { migrate } from '../../../src/platform/database/migrate.ts'
import { SILENT, startTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
let url: string
let number = 0

beforeAll(async () => {
  database = await startTestDatabase()
})
afterAll(() => database.stop())
beforeEach(async () => {
  number += 1
  await sql.raw(`create database migrated_${number}`).execute(database.db)
  url = Object.assign(new URL(database.url), { pathname: `/migrated_${number}` }).href
})

const create = (statement: string) => ({
  up: async (db: Kysely<unknown>) => {
    await sql.raw(statement).execute(db)
  },
})

async function connectTo(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  return client
}

test('a schema that newer code has added to serves the older code, while it runs and after it starts again', async () => {
  const before = await connectDatabase({ url, log: SILENT })
  await sql`alter table deployments add column from_the_future text not null default 'x'`.execute(before)
  await sql`insert into kysely_migration (name, timestamp) values ('9999-future', ${new Date().toISOString()})`.execute(before)
  const after = await connectDatabase({ url, log: SILENT })
  for (const db of [before, after]) expect(await db.selectFrom('deployments').selectAll().execute()).toEqual([])
  await after.destroy()
  await before.destroy()
})

test('a schema that needs newer code refuses the older one in one sentence, and changes nothing', async () => {
  const db = await connectDatabase({ url, log: SILENT })
  await sql`insert into installation (key_check, oldest_code) values ('x', '9999-future')`.execute(db)
  // Its own last migration counts, not what the database says alone: code that knows it goes on.
  await (await connectDatabase({ url, log: SILENT })).destroy()
  await sql`insert into kysely_migration (name, timestamp) values ('9999-future', ${new Date().toISOString()})`.execute(db)
  await expect(connectDatabase({ url, log: SILENT })).rejects.toThrow('needs one that knows 9999-future')
  await db.destroy()
})

test('processes that start together migrate once; a migration that fails leaves nothing of it', async () => {
  const migrations = { '0001-a': create('create table a (n integer)'), '0002-b': create('create table b (n integer)') }
  await Promise.all([1, 2, 3].map(() => migrate({ url, migrations, log: SILENT })))
  const failing = { ...migrations, '0003-c': create('create table c (n integer); select 1 / 0') }
  await expect(migrate({ url, migrations: failing, log: SILENT })).rejects.toThrow(
    'the database could not be brought up to date: division by zero',
  )
  await migrate({ url, migrations: { ...migrations, '0003-c': create('create table c (n integer)') }, log: SILENT })
})

test('a migration that waits for a table in use lets others by, and is made when the table is free', async () => {
  const migrations = { '0001-a': create('create table a (n integer)') }
  await migrate({ url, migrations, log: SILENT })
  const reader = await connectTo(url)
  await reader.query('begin')
  await reader.query('select * from a')
  const migrating = migrate({
    url,
    migrations: { ...migrations, '0002-b': create('alter table a add column m integer') },
    log: SILENT,
  })
  const other = await connectTo(url)
  await other.query("set statement_timeout = '20s'")
  // Behind a waiting ALTER TABLE every reader waits: this one is let by when the migration gives way.
  for (let look = 0; look < 3; look += 1) {
    await other.query('select * from a')
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  await reader.query('commit')
  await migrating
  expect((await other.query('select m from a')).rows).toEqual([])
  await reader.end()
  await other.end()
})
