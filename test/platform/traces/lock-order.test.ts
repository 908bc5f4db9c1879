import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Database, DatabaseTransaction } from '../../../src/platform/database/schema.ts'
import { readFeedback } from '../../../src/platform/traces/feedback.ts'
import { lockTraces } from '../../../src/platform/traces/ingest/derive-order.ts'
import { readRun } from '../../../src/platform/traces/ingest/run-write.ts'
import { storeBatch } from '../../../src/platform/traces/ingest/store.ts'
import { fixIngestedSequence } from '../../../src/platform/traces/ingested-sequence.ts'
import { deleteProject, patchProject } from '../../../src/platform/traces/projects.ts'
import { createWorkspace, startTestDatabase, type TestDatabase } from '../support/database.ts'
import { meet, waitingForLocks } from '../support/lock-order.ts'
import { until } from '../support/processes.ts'
import { makeRun } from './support/runs.ts'

let database: TestDatabase
let db: Database
let workspaceId: string
let projectId: string

beforeAll(async () => {
  database = await startTestDatabase()
  db = database.db
})
afterAll(() => database.stop())
beforeEach(async () => {
  workspaceId = (await createWorkspace(db)).id
  projectId = randomUUID()
  await db.insertInto('tracing_projects').values({ id: projectId, workspace_id: workspaceId, name: 'project' }).execute()
})

const post = (fields: Record<string, unknown>) => readRun({ kind: 'post', fields })
const end = (id: string, fields = {}) => readRun({ kind: 'patch', id, fields: { end_time: '2026-11-20T08:00:01Z', ...fields } })
const store = (...runs: ReturnType<typeof post>[]) => storeBatch(db, workspaceId, { runs })
const inProject = (given: object = {}) => makeRun({ session_name: undefined, session_id: projectId, ...given })

const lockRuns =
  (...ids: string[]) =>
  async (other: DatabaseTransaction) =>
    expect(await other.selectFrom('runs').select('id').where('id', 'in', ids).orderBy('id').forUpdate().execute()).toHaveLength(
      ids.length,
    )
const lockProject = (other: DatabaseTransaction) =>
  other.selectFrom('tracing_projects').select('id').where('id', '=', projectId).forUpdate().execute()
const lockFeedback = (id: string) => (other: DatabaseTransaction) =>
  other.selectFrom('feedback').select('id').where('id', '=', id).forUpdate().execute()
const feedbackOn = (run: string) => readFeedback({ run_id: run, key: 'good', id: randomUUID() } as never)
const runs = () =>
  db.selectFrom('runs').select(['id', 'session_id', 'end_time']).where('workspace_id', '=', workspaceId).execute()

describe('an ingest', () => {
  test('waits for its traces before it writes a run: who holds them may need that run', async () => {
    const run = makeRun({ session_name: 'project', dotted_order: undefined })
    await store(post(run))
    await meet(db, {
      first: (other) => lockTraces(other, [run.id]),
      act: () => store(end(run.id, { trace_id: run.id })),
      second: lockRuns(run.id),
    })
    expect(await runs()).toMatchObject([{ end_time: expect.any(Date) }])
  })

  test('waits for a project that is renamed before it makes one of the new name', async () => {
    await meet(db, {
      first: lockProject,
      act: () => store(post(inProject()), post(makeRun({ session_name: 'fresh' }))),
      second: (other) => patchProject(other, { workspaceId, projectId, body: { name: 'fresh' } }),
    })
    expect((await runs()).map((run) => run.session_id)).toEqual([projectId, projectId])
  })

  test.each([
    ['named by its id', { session_id: () => projectId }],
    ['named by its name', { session_name: () => 'project' }],
    ['known by the trace', {}],
  ])('waits for a project that is deleted before it writes a run of it: %s', async (_, mention) => {
    const root = inProject()
    await store(post(root))
    const fields = Object.fromEntries(Object.entries(mention).map(([name, value]) => [name, value()]))
    const child = { ...makeRun({}, root), session_name: undefined, ...fields }
    await meet(db, { first: lockProject, act: () => store(end(root.id), post(child)), second: lockRuns(root.id) })
    expect((await runs()).map((run) => run.session_id)).toEqual([projectId, projectId])
  })

  test('fills the traces of earlier feedback when it has waited for its own', async () => {
    const run = makeRun()
    const [early, late] = [feedbackOn(run.id), feedbackOn(run.id)]
    await storeBatch(db, workspaceId, { runs: [], feedback: [early, late] })
    await meet(db, {
      first: lockFeedback(late.id),
      act: () => storeBatch(db, workspaceId, { runs: [post(run)], feedback: [late] }),
      second: lockFeedback(early.id),
    })
    const stored = await db.selectFrom('feedback').select('trace_id').where('workspace_id', '=', workspaceId).execute()
    expect(stored).toEqual([{ trace_id: run.id }, { trace_id: run.id }])
  })

  test('waits for the project of feedback that is deleted before it writes other feedback', async () => {
    const run = inProject()
    const [known, fresh] = [feedbackOn(run.id), feedbackOn(run.id)]
    await storeBatch(db, workspaceId, { runs: [post(run)], feedback: [known] })
    await meet(db, {
      first: lockProject,
      act: () => storeBatch(db, workspaceId, { runs: [], feedback: [known, fresh] }),
      second: lockFeedback(known.id),
    })
    const stored = await db.selectFrom('feedback').select('session_id').where('workspace_id', '=', workspaceId).execute()
    expect(stored).toEqual([{ session_id: projectId }, { session_id: projectId }])
  })

  test('waits for the project of feedback that is deleted before it writes a run of another one', async () => {
    const [judged, other] = [inProject(), makeRun({ session_name: 'elsewhere' })]
    await store(post(judged), post(other))
    await meet(db, {
      first: lockProject,
      act: () =>
        storeBatch(db, workspaceId, { runs: [end(other.id, { trace_id: other.id })], feedback: [feedbackOn(judged.id)] }),
      second: lockRuns(other.id),
    })
    expect((await runs()).find(({ id }) => id === other.id)).toMatchObject({ end_time: expect.any(Date) })
  })

  test.each([
    ['deleted', (id: string) => deleteProject(db, { workspaceId, projectId: id })],
    ['renamed', (id: string) => patchProject(db, { workspaceId, projectId: id, body: { name: 'old x' } })],
  ])('makes a project anew that is %s while it makes others: no run of it is left without one', async (_, change) => {
    const [x, y] = [randomUUID(), randomUUID()]
    const [makesX, makesY] = [await db.startTransaction().execute(), await db.startTransaction().execute()]
    for (const [other, id, name] of [
      [makesX, x, 'x'],
      [makesY, y, 'y'],
    ] as const)
      await other.insertInto('tracing_projects').values({ id, workspace_id: workspaceId, name }).execute()
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(makesY)
    const given = ['x', 'y', undefined].map((name) => makeRun({ session_name: name }))
    const storing = store(...given.map(post))
    await until(async () => (await waitingForLocks(db)) === 1)
    await makesX.commit().execute()
    await until(async () => {
      const waiting = sql`select 1 from pg_stat_activity where ${rows[0]?.pid} = any(pg_blocking_pids(pid))`
      return (await waiting.execute(db)).rows.length === 1
    })
    await change(x)
    await makesY.commit().execute()
    await storing
    const stored = db.selectFrom('runs').innerJoin('tracing_projects', 'tracing_projects.id', 'session_id')
    const placed = await stored
      .select(['runs.id', 'tracing_projects.name'])
      .where('runs.workspace_id', '=', workspaceId)
      .execute()
    expect(new Map(placed.map(({ id, name }) => [id, name]))).toEqual(
      new Map(given.map(({ id, session_name }) => [id, session_name ?? 'default'])),
    )
  })

  test('that waits for a project keeps neither an export from its beginning nor others from their ingest', async () => {
    const another = (await createWorkspace(db)).id
    const deleting = await db.startTransaction().execute()
    await lockProject(deleting)
    const storing = store(post(inProject()))
    await until(async () => (await waitingForLocks(db)) === 1)
    const beginning = fixIngestedSequence(db)
    const ingest = storeBatch(db, another, { runs: [post(makeRun())] })
    let ended = false
    const others = Promise.all([beginning, ingest]).then(() => {
      ended = true
    })
    await until(async () => ended || (await waitingForLocks(db)) === 3)
    const waited = !ended
    await deleting.commit().execute()
    await Promise.all([storing, others])
    expect(waited).toBe(false)
  })
})

describe('the deletion of a project', () => {
  test('waits for those who write to it before it deletes a run', async () => {
    const run = inProject()
    await store(post(run))
    await meet(db, {
      first: (other) => other.selectFrom('tracing_projects').select('id').where('id', '=', projectId).forKeyShare().execute(),
      act: () => deleteProject(db, { workspaceId, projectId }),
      second: lockRuns(run.id),
    })
    expect(await runs()).toEqual([])
  })

  test('takes the runs in the order in which an ingest writes them', async () => {
    const ids = Array.from({ length: 20 }, () => randomUUID())
    for (const id of ids) await store(post(inProject({ id })))
    // Without statistics PostgreSQL would sort them by itself.
    await sql`analyze runs`.execute(db)
    const [lowest, ...others] = ids.toSorted()
    await meet(db, {
      first: lockRuns(lowest!),
      act: () => deleteProject(db, { workspaceId, projectId }),
      second: lockRuns(...others),
    })
    expect(await runs()).toEqual([])
  })

  test('goes on until nothing is left, however many runs there are', async () => {
    await sql`
      insert into runs (workspace_id, id, session_id, posted, patched)
      select ${workspaceId}::uuid, gen_random_uuid(), ${projectId}::uuid, true, false from generate_series(1, 10001)`.execute(db)
    await deleteProject(db, { workspaceId, projectId })
    const projects = await db.selectFrom('tracing_projects').select('id').where('id', '=', projectId).execute()
    expect([projects, await runs()]).toEqual([[], []])
  })
})
