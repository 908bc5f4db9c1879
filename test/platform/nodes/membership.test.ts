import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { listen, type Notifications } from '../../../src/platform/database/notifications.ts'
import type { DatabaseTransaction } from '../../../src/platform/database/schema.ts'
import { createLeadership, whenLeading } from '../../../src/platform/nodes/leadership.ts'
import { createMembership, markPresent } from '../../../src/platform/nodes/membership.ts'
import { noteLeader } from '../../../src/platform/nodes/take-over.ts'
import { SILENT, startTestDatabase, type TestDatabase } from '../support/database.ts'
import { meet } from '../support/lock-order.ts'
import { until } from '../support/processes.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await startTestDatabase()
})
afterAll(() => database.stop())
beforeEach(async () => {
  await database.db.deleteFrom('nodes').execute()
})

/** The session of a node, as its process holds it. */
const session = (id: string): Promise<Notifications> =>
  listen({ url: `${database.url}?application_name=${id}`, log: SILENT, onSession: (client) => markPresent(client, id) })
const cut = (id: string) =>
  sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${id}`.execute(database.db)
const silent = (id: string, seconds: number) =>
  database.db
    .updateTable('nodes')
    .set({ seen_at: new Date(Date.now() - seconds * 1000) })
    .where('id', '=', id)
    .execute()

/** A node that has been there for long by its own clock, which stands still. */
async function veteran(id: string) {
  let now = 0
  const membership = createMembership(database.db, { id, role: 'queue', url: null, keyNames: [] }, { monotonic: () => now })
  await membership.beat()
  for (let beat = 0; beat < 6; beat += 1) {
    now += 2000
    await membership.beat()
  }
  return { ...membership, sleep: (ms: number) => (now += ms) }
}

describe('who is gone', () => {
  test('a node whose session has ended is gone after six seconds of silence, one whose session lasts after thirty', async () => {
    const me = await veteran('me')
    const other = await session('other')
    await createMembership(database.db, { id: 'other', role: 'queue', url: null, keyNames: [] }).beat()
    await silent('other', 20)
    expect(await me.gone(), 'its session lasts: it is only slow').toEqual([])
    await silent('other', 31)
    expect(await me.gone()).toEqual(['other'])
    await silent('other', 5)
    await other.close()
    expect(await me.gone(), 'it may only be on its way back').toEqual([])
    await silent('other', 7)
    expect(await me.gone()).toEqual(['other'])
  })

  test('a node that was away itself does not judge: all of them may have been away', async () => {
    const me = await veteran('me')
    await createMembership(database.db, { id: 'other', role: 'queue', url: null, keyNames: [] }).beat()
    await silent('other', 60)
    expect(await me.gone()).toEqual(['other'])
    me.sleep(7000)
    expect(await me.gone(), 'it has not said that it is there for a while').toEqual([])
    await me.beat()
    me.sleep(5000)
    await me.beat()
    expect([await me.gone(), me.canJudge()]).toEqual([[], false])
    me.sleep(5001)
    await me.beat()
    expect(await me.gone()).toEqual(['other'])
    const young = createMembership(database.db, { id: 'young', role: 'queue', url: null, keyNames: [] })
    await young.beat()
    expect(await young.gone()).toEqual([])
  })

  test('a session that is lost and comes back is there again', async () => {
    const me = await veteran('me')
    const other = await session('other')
    await createMembership(database.db, { id: 'other', role: 'api', url: null, keyNames: [] }).beat()
    await silent('other', 10)
    await cut('other')
    await until(async () => (await me.gone()).length === 1)
    await until(async () => (await me.gone()).length === 0)
    await other.close()
  })
})

describe('the leader', () => {
  test('is noted on the nodes in one order: two may do it at once', async () => {
    const nodes = ['c', 'b', 'a'].map((id) => ({ id, role: 'queue' as const, url: null, leads_since: new Date(0) }))
    await database.db.insertInto('nodes').values(nodes).execute()
    const lock = (ids: string[]) => (other: DatabaseTransaction) =>
      other.selectFrom('nodes').select('id').where('id', 'in', ids).orderBy('id').forUpdate().execute()
    await meet(database.db, { first: lock(['a']), act: () => noteLeader(database.db, 'b'), second: lock(['b', 'c']) })
    const leading = await database.db.selectFrom('nodes').select('id').where('leads_since', 'is not', null).execute()
    expect(leading).toEqual([{ id: 'b' }])
  })

  test('is one, does alone what only one may do, and is replaced when its session ends', async () => {
    const names = ['a', 'b', 'c', 'd']
    const sessions = await Promise.all(names.map(session))
    for (const id of names) await createMembership(database.db, { id, role: 'queue', url: null, keyNames: [] }).beat()
    const leaderships = names.map((id, index) =>
      createLeadership({
        session: () => sessions[index]?.session() ?? null,
        log: SILENT,
        onChange: () => noteLeader(database.db, id),
      }),
    )
    let inside = 0
    const rounds = new Map<string, number>()
    const round = (id: string) => async () => {
      inside += 1
      expect(inside, 'two at once').toBe(1)
      await new Promise((resolve) => setTimeout(resolve, 5))
      inside -= 1
      rounds.set(id, (rounds.get(id) ?? 0) + 1)
    }
    const all = () => Promise.all(names.map((id, index) => whenLeading(leaderships[index]!, round(id))()))
    for (let turn = 0; turn < 10; turn += 1) await all()
    expect([...rounds.values()]).toEqual([10])
    const [first] = rounds.keys()
    expect(await database.db.selectFrom('nodes').select('id').where('leads_since', 'is not', null).execute()).toEqual([
      { id: first },
    ])

    await cut(first ?? '')
    await until(async () => {
      await all()
      return rounds.size === 2
    })
    for (let turn = 0; turn < 10; turn += 1) await all()
    const [, second] = rounds.keys()
    expect([rounds.size, rounds.get(first ?? '')], 'the one before comes back as a follower').toEqual([2, 10])
    expect(await database.db.selectFrom('nodes').select('id').where('leads_since', 'is not', null).execute()).toEqual([
      { id: second },
    ])
    for (const one of sessions) await one.close()
    expect(await leaderships[0]?.leads()).toBe(false)
  })

  test('loses the lead when it is silent and its session lasts: its process was stopped, or its machine is lost', async () => {
    const names = ['stopped', 'next']
    const [stopped, next] = (await Promise.all(names.map(session))) as [Notifications, Notifications]
    for (const id of names) await createMembership(database.db, { id, role: 'queue', url: null, keyNames: [] }).beat()
    let now = 0
    const leadership = (one: Notifications) => createLeadership({ session: one.session, log: SILENT, monotonic: () => now })
    expect(await leadership(stopped).leads()).toBe(true)
    const heir = leadership(next)
    /** Twelve seconds of questions, after which a lock that was given up is to be had. */
    const asks = async () => {
      for (let turn = 0; turn < 6; turn += 1) {
        now += 2001
        expect(await heir.leads()).toBe(false)
      }
    }
    await asks()
    await silent('stopped', 60)
    now += 2001
    expect(await heir.leads()).toBe(false)
    await silent('stopped', 0)
    await asks()
    expect(stopped.session(), 'it was only away together with the database').not.toBeNull()

    await silent('stopped', 21)
    await asks()
    await until(async () => {
      now += 2001
      return heir.leads()
    })
    await Promise.all([stopped.close(), next.close()])
  })
})
