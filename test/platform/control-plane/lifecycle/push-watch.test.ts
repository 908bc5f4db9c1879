import path from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { judge, watchPushes } from '../../../../src/platform/control-plane/lifecycle/push-watch.ts'
import { resolveGitHead } from '../../../../src/platform/control-plane/sources/git.ts'
import type { Database, DatabaseTransaction } from '../../../../src/platform/database/schema.ts'
import { makeDeployment, makeRevision } from '../../lifecycle-support/rows.ts'
import { clear } from '../../lifecycle-support/world.ts'
import { createWorkspace, SILENT, startTestDatabase, type TestDatabase } from '../../support/database.ts'
import { createGitRepository, type GitRepository } from '../../support/git-repository.ts'
import { meet } from '../../support/lock-order.ts'

let database: TestDatabase
let db: Database
let workspaceId: string
let repository: GitRepository
let deploymentId: string
let count = 0

beforeAll(async () => {
  database = await startTestDatabase()
  db = database.db
  workspaceId = (await createWorkspace(db)).id
})

afterAll(() => database.stop())

beforeEach(async () => {
  await clear(db, path.join(database.directory, 'builds'))
  count += 1
  repository = createGitRepository(path.join(database.directory, `repository-${count}`))
  deploymentId = await makeDeployment(db, workspaceId, { repo_url: `file://${repository.directory}`, build_on_push: true })
})

let asked = 0
const look = async (changes: Partial<Parameters<typeof watchPushes>[0]> = {}) => {
  await db.updateTable('branch_watches').set({ next_look_at: new Date(0) }).execute()
  await watchPushes({
    db,
    log: SILENT,
    intervalMs: 1000,
    atOnce: 4,
    resolveHead: (source, options) => {
      asked += 1
      return resolveGitHead(source, options)
    },
    tokenFor: () => undefined,
    signal: new AbortController().signal,
    ...changes,
  })
}
const revisions = () => db.selectFrom('revisions').selectAll().where('deployment_id', '=', deploymentId).orderBy('number').execute()
const deployed = (sha: string) => makeRevision(db, deploymentId, { status: 'DEPLOYED', repo_commit_sha: sha })
const push = (text: string) => repository.commit({ 'file.txt': text })

describe('build_on_push', () => {
  test('a push makes one revision, however often it is looked at and whatever became of it', async () => {
    await deployed(push('one'))
    await look()
    expect(await revisions()).toHaveLength(1)
    const head = push('two')
    for (const status of ['CREATING', 'AWAITING_BUILD', 'BUILDING', 'BUILD_FAILED'] as const) {
      await look()
      const made = (await revisions())[1]!
      expect(await revisions()).toHaveLength(2)
      await db.updateTable('revisions').set({ status }).where('id', '=', made.id).execute()
    }
    const [first, made] = await revisions()
    const steps = await db.selectFrom('revision_transitions').selectAll().where('revision_id', '=', made!.id).execute()
    expect(steps).toMatchObject([{ from_status: null, to_status: 'CREATING', reason: `push to main: ${head}` }])
    expect(made).toMatchObject({ repo_ref: first?.repo_ref, graph_config_path: first?.graph_config_path })
  })

  test('several pushes between two looks make one revision; the next one makes another', async () => {
    await deployed(push('one'))
    await look()
    push('two')
    push('three')
    await look()
    expect(await revisions()).toHaveLength(2)
    const done = { status: 'DEPLOYED' as const, repo_commit_sha: repository.git('rev-parse', 'HEAD') }
    await db.updateTable('revisions').set(done).where('status', '=', 'CREATING').execute()
    push('four')
    await look()
    expect(await revisions()).toHaveLength(3)
  })

  test('a push while the one before is built waits until its commit is known, and is not lost', async () => {
    const first = push('one')
    const id = await makeRevision(db, deploymentId, { status: 'BUILDING' })
    push('two')
    await look()
    expect(await revisions()).toHaveLength(1)
    await db.updateTable('revisions').set({ status: 'AWAITING_DEPLOY', repo_commit_sha: first }).where('id', '=', id).execute()
    await look()
    expect(await revisions()).toHaveLength(2)
  })

  test('a redeploy of an older commit stays until somebody pushes', async () => {
    const old = push('one')
    await deployed(push('two'))
    await look()
    await deployed(old)
    await look()
    expect(await revisions()).toHaveLength(2)
    push('three')
    await look()
    expect(await revisions()).toHaveLength(3)
  })

  test('the deletion of the branch makes none, and is looked at less and less often', async () => {
    push('one')
    repository.git('branch', 'feature')
    await makeRevision(db, deploymentId, { status: 'DEPLOYED', repo_ref: 'feature', repo_commit_sha: repository.git('rev-parse', 'HEAD') })
    await look()
    repository.git('branch', '-D', 'feature')
    for (let times = 0; times < 5; times += 1) await look()
    expect(await revisions()).toHaveLength(1)
    const watch = await db.selectFrom('branch_watches').selectAll().executeTakeFirstOrThrow()
    expect(watch.failures).toBe(5)
    expect(watch.next_look_at.getTime() - Date.now(), 'after four failures sixteen intervals').toBeGreaterThan(10_000)
    repository.git('branch', 'feature')
    await look()
    expect((await db.selectFrom('branch_watches').selectAll().executeTakeFirstOrThrow()).failures).toBe(0)
  })

  test('a tag, a deployment without it and one that is being deleted are not looked at', async () => {
    const sha = push('one')
    await makeRevision(db, deploymentId, { status: 'DEPLOYED', repo_ref: 'refs/tags/v1', repo_commit_sha: sha })
    const without = await makeDeployment(db, workspaceId, { repo_url: 'file:///nowhere', build_on_push: false })
    await makeRevision(db, without, { status: 'DEPLOYED' })
    asked = 0
    await look()
    expect(asked).toBe(0)
    await db.updateTable('deployments').set({ status: 'AWAITING_DELETE' }).execute()
    await look()
    expect(await db.selectFrom('branch_watches').selectAll().execute()).toEqual([])
  })

  test('two processes share the looks, and only so many run at once', async () => {
    await clear(db, path.join(database.directory, 'builds'))
    const sha = push('one')
    for (let number = 0; number < 6; number += 1) {
      deploymentId = await makeDeployment(db, workspaceId, { repo_url: `file://${repository.directory}`, build_on_push: true })
      await deployed(sha)
    }
    await watchPushes({ ...IDLE, atOnce: 6, db })
    await db.updateTable('branch_watches').set({ next_look_at: new Date(0) }).execute()
    let together = 0
    let most = 0
    let total = 0
    const resolveHead = async () => {
      total += 1
      together += 1
      most = Math.max(most, together)
      await new Promise((resolve) => setTimeout(resolve, 20))
      together -= 1
      return sha
    }
    const process = async () => {
      while (await watchPushes({ ...IDLE, db, atOnce: 2, resolveHead })) continue
    }
    await Promise.all([process(), process()])
    expect(total).toBe(6)
    expect(most).toBeLessThanOrEqual(4)
  })

  test('the deployments to be watched are locked in the order in which several are deleted', async () => {
    for (let number = 0; number < 20; number += 1) await makeDeployment(db, workspaceId, { build_on_push: true })
    const ids = (await db.selectFrom('deployments').select('id').execute()).map(({ id }) => id)
    const [lowest, ...others] = ids.toSorted()
    // So that PostgreSQL knows how few they are, and reads them as they lie.
    await sql`analyze deployments`.execute(db)
    const lock = (wanted: string[]) => (other: DatabaseTransaction) =>
      other.selectFrom('deployments').select('id').where('id', 'in', wanted).orderBy('id').forUpdate().execute()
    await meet(db, { first: lock([lowest!]), act: () => watchPushes({ ...IDLE, atOnce: 1, db }), second: lock(others) })
    expect(await db.selectFrom('branch_watches').selectAll().execute()).toHaveLength(21)
  })
})

const IDLE = {
  log: SILENT,
  intervalMs: 60_000,
  tokenFor: () => undefined,
  signal: new AbortController().signal,
  resolveHead: async () => 'f'.repeat(40),
}

test.each([
  ['the head that was seen', { head: 'a', seen: 'a', sha: 'b', status: 'DEPLOYED' }, 'known'],
  ['the commit of the latest revision', { head: 'a', seen: null, sha: 'a', status: 'DEPLOYED' }, 'known'],
  ['another than the latest has, at the first look', { head: 'b', seen: null, sha: 'a', status: 'DEPLOYED' }, 'make'],
  ['another while the latest is deployed', { head: 'b', seen: 'a', sha: 'a', status: 'DEPLOYING' }, 'make'],
  ['one that the latest will clone', { head: 'b', seen: 'a', sha: null, status: 'QUEUED' }, 'known'],
  ['one that the latest may have cloned', { head: 'b', seen: 'a', sha: null, status: 'BUILDING' }, 'wait'],
  ['one after a build that failed before its commit was known', { head: 'b', seen: 'a', sha: null, status: 'BUILD_FAILED' }, 'make'],
  ['the first look after such a build', { head: 'b', seen: null, sha: null, status: 'BUILD_FAILED' }, 'known'],
] as const)('a head is judged: %s', (_, { head, seen, sha, status }, verdict) => {
  expect(judge({ head, seen, latest: { status, repo_commit_sha: sha } })).toBe(verdict)
})
