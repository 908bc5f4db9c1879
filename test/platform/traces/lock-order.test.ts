import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Database, DatabaseTransaction } from '../../../src/platform/database/schema.ts'
import { readFeedback } from '../../../src/platform/traces/feedback.ts'
import { lockTraces } from '../../../src/platform/traces/ingest/derive-order.ts'
import { readRun } from '../../../src/platform/traces/ingest/run-write.ts'
import { storeBatch } from '../../../src/platform/traces/ingest/store.ts'
import { deleteProject, patchProject } from '../../../src/platform/traces/projects.ts'
import { createWorkspace, startTestDatabase, type TestDatabase } from '../support/database.ts'
import { meet } from '../support/lock-order.ts'
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
    const [early, late] = ['one', 'two'].map((key) => readFeedback({ run_id: run.id, key, id: randomUUID() } as never))
    await storeBatch(db, workspaceId, { runs: [], feedback: [early!, late!] })
    const lock = (id: string) => (other: DatabaseTransaction) =>
      other.selectFrom('feedback').select('id').where('id', '=', id).forUpdate().execute()
    await meet(db, {
      first: lock(late!.id),
      act: () => storeBatch(db, workspaceId, { runs: [post(run)], feedback: [late!] }),
      second: lock(early!.id),
    })
    const stored = await db.selectFrom('feedback').select('trace_id').where('workspace_id', '=', workspaceId).execute()
    expect(stored).toEqual([{ trace_id: run.id }, { trace_id: run.id }])
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
