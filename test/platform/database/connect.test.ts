import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectDatabase } from '../../../src/platform/database/connect.ts'
import { announce, listen } from '../../../src/platform/database/notifications.ts'
import { SILENT, startTestDatabase, type TestDatabase } from '../support/database.ts'
import { until } from '../support/processes.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await startTestDatabase()
})

afterAll(() => database.stop())

/** As when the server restarts, or the network between breaks. */
const cut = (application: string) =>
  sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${application}`.execute(database.db)

const connectionsOf = async (application: string) => {
  const { rows } = await sql<{ n: number }>`
    select count(*)::int as n from pg_stat_activity where application_name = ${application}`.execute(database.db)
  return rows[0]?.n
}

describe('connections', () => {
  test('one that is lost between two statements of a transaction fails it, and nothing else', async () => {
    const uncaught: unknown[] = []
    const note = (error: unknown) => uncaught.push(error)
    process.on('uncaughtExceptionMonitor', note)
    const db = await connectDatabase({ url: `${database.url}?application_name=cut`, log: SILENT })
    const work = db.transaction().execute(async (trx) => {
      await sql`select 1`.execute(trx)
      await cut('cut')
      await new Promise((resolve) => setTimeout(resolve, 50))
      await sql`select 1`.execute(trx)
    })
    await expect(work).rejects.toThrow(/terminat|not queryable/i)
    expect((await sql<{ one: number }>`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }])
    process.off('uncaughtExceptionMonitor', note)
    expect(uncaught).toEqual([])
    await db.destroy()
  })

  test('two platforms that start at once bring one database up to date', async () => {
    await sql`create database fresh`.execute(database.db)
    const url = new URL(database.url)
    url.pathname = '/fresh'
    const both = await Promise.all([1, 2].map(() => connectDatabase({ url: url.href, log: SILENT })))
    for (const db of both) {
      expect(await db.selectFrom('revisions').selectAll().execute()).toEqual([])
      await db.destroy()
    }
  })
})

describe('announcements', () => {
  test('reach every listener, and after a lost connection each is called once for what it may have missed', async () => {
    const heard = { work: 0, agents: 0 }
    const notifications = await listen({ url: `${database.url}?application_name=listener`, log: SILENT })
    notifications.on('work', () => (heard.work += 1))
    notifications.on('agents', () => (heard.agents += 1))
    await announce(database.db, 'work')
    await until(() => heard.work === 1)
    expect(heard.agents).toBe(0)
    await cut('listener')
    await until(() => heard.agents === 1)
    await announce(database.db, 'agents')
    await until(() => heard.agents === 2)
    await notifications.close()
  })

  test('come over one connection, also when the end of the one before is heard late', async () => {
    const notifications = await listen({ url: `${database.url}?application_name=late`, log: SILENT })
    const before = notifications.session()
    before?.emit('error', new Error('the network broke'))
    await until(() => notifications.session() !== null && notifications.session() !== before)
    const now = notifications.session()
    await before?.end()
    expect(notifications.session()).toBe(now)
    // Longer than it takes to make another.
    await sleep(1500)
    expect([notifications.session() === now, await connectionsOf('late')]).toEqual([true, 1])
    await notifications.close()
  })

  test('whose first connection cannot be made are not listened to later', async () => {
    let tried = 0
    const refused = listen({
      url: `${database.url}?application_name=refused`,
      log: SILENT,
      onSession: async () => {
        tried += 1
        throw new Error('no')
      },
    })
    await expect(refused).rejects.toThrow('no')
    await sleep(1500)
    expect([tried, await connectionsOf('refused')]).toEqual([1, 0])
  })

  test('of a transaction that is rolled back are not made', async () => {
    let heard = 0
    const notifications = await listen({ url: database.url, log: SILENT })
    notifications.on('work', () => (heard += 1))
    const failing = database.db.transaction().execute(async (trx) => {
      await announce(trx, 'work')
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    await announce(database.db, 'work')
    await until(() => heard > 0)
    expect(heard).toBe(1)
    await notifications.close()
  })
})
