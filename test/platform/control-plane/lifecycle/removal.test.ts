import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { LOG_LINES_KEPT, openRevisionLog } from '../../../../src/platform/control-plane/logs.ts'
import { removeDeleted } from '../../../../src/platform/control-plane/lifecycle/deletions.ts'
import { heartbeat } from '../../../../src/platform/control-plane/lifecycle/lease.ts'
import { settle } from '../../../../src/platform/control-plane/lifecycle/settle.ts'
import { sweepBuilds, sweepCache, sweepLogs } from '../../../../src/platform/control-plane/lifecycle/sweep.ts'
import type { DatabaseTransaction } from '../../../../src/platform/database/schema.ts'
import { claimsOf } from '../../lifecycle-support/claims.ts'
import { makeDeployment, makeRevision, statusOf } from '../../lifecycle-support/rows.ts'
import { setLifecycleScene } from '../../lifecycle-support/scene.ts'
import { SILENT } from '../../support/database.ts'
import { meet } from '../../support/lock-order.ts'
import { until } from '../../support/processes.ts'

const scene = setLifecycleScene()
const { building } = claimsOf(scene)

describe('deletion', () => {
  const awaitDeletion = (set: object = {}, id = scene.deploymentId) =>
    scene.db
      .updateTable('deployments')
      .set({ status: 'AWAITING_DELETE', ...set })
      .where('id', '=', id)
      .execute()
  const round = () => removeDeleted({ db: scene.db, builds: scene.builds, log: SILENT })
  const exists = async (id = scene.deploymentId) =>
    (await scene.db.selectFrom('deployments').select('id').where('id', '=', id).execute()).length === 1

  test('ends what waits, waits for what is worked on and served, then removes everything', async () => {
    const { id, waits, claim } = await building()
    const folder = path.join(scene.builds, id)
    mkdirSync(folder)
    const agent = {
      id: randomUUID(),
      deployment_id: scene.deploymentId,
      revision_id: id,
      node_id: 'a',
      state: 'serving' as const,
    }
    await scene.db
      .insertInto('agents')
      .values({ ...agent, host: null, port: null, reference: null })
      .execute()
    await awaitDeletion()
    await round()
    expect(await statusOf(scene.db, waits)).toMatchObject({ status: 'INTERRUPTED', message: 'the deployment is being deleted' })
    expect(await heartbeat(scene.db, claim)).toBe('interrupted')
    expect((await scene.db.selectFrom('agents').select('state').executeTakeFirst())?.state).toBe('draining')
    await settle(scene.db, claim, { to: 'INTERRUPTED', reason: 'interrupted by a user' })
    await round()
    expect(await exists(), 'its agent is still there').toBe(true)
    await scene.db.deleteFrom('agents').execute()
    await round()
    expect(await exists()).toBe(false)
    expect(existsSync(folder)).toBe(false)
    expect(await scene.db.selectFrom('revision_transitions').selectAll().execute()).toEqual([])
  })

  test('the tracing project goes with it only when that was asked for', async () => {
    const projects = () => scene.db.selectFrom('tracing_projects').select('name').execute()
    for (const [name, wanted] of [
      ['stays', false],
      ['goes', true],
    ] as const) {
      const deploymentId = await makeDeployment(scene.db, scene.workspaceId)
      const id = randomUUID()
      await scene.db.insertInto('tracing_projects').values({ id, workspace_id: scene.workspaceId, name }).execute()
      await awaitDeletion({ tracing_project_id: id, delete_tracing_project: wanted }, deploymentId)
      await round()
      expect(await exists(deploymentId)).toBe(false)
    }
    expect(await projects()).toEqual([{ name: 'stays' }])
  })
})

describe('the sweep', () => {
  const folderOf = (id: string) => path.join(scene.builds, id)
  const deployed = async (columns = {}) => {
    const id = await makeRevision(scene.db, scene.deploymentId, { status: 'DEPLOYED', ...columns })
    const directory = path.join(folderOf(id), 'attempt', 'checkout')
    mkdirSync(directory, { recursive: true })
    await scene.db
      .updateTable('revisions')
      .set({ built: JSON.stringify({ directory }) })
      .where('id', '=', id)
      .execute()
    return id
  }

  test('keeps what runs, what is active, what is unfinished and the newest builds; removes the rest', async () => {
    const active = await deployed()
    const old = await deployed()
    const reused = await deployed()
    const kept = [await deployed(), await deployed()]
    const failed = await makeRevision(scene.db, scene.deploymentId, { status: 'BUILD_FAILED' })
    const built = JSON.stringify({ directory: path.join(folderOf(reused), 'attempt', 'checkout') })
    const unfinished = await makeRevision(scene.db, scene.deploymentId, { status: 'AWAITING_DEPLOY', built })
    for (const name of [failed, unfinished, 'left-over']) mkdirSync(folderOf(name))
    await scene.db.updateTable('deployments').set({ active_revision_id: active }).where('id', '=', scene.deploymentId).execute()
    expect(await sweepBuilds(scene.db, { builds: scene.builds, buildsKept: 2 })).toBe(3)
    expect([active, reused, unfinished, ...kept].map((id) => existsSync(folderOf(id)))).toEqual(Array(5).fill(true))
    expect([old, failed, 'left-over'].map((id) => existsSync(folderOf(id)))).toEqual([false, false, false])
  })

  test('keeps the logs of the newest revisions, of the active one and of what is unfinished', async () => {
    const log = async (revisionId: string) => {
      const line = { revision_id: revisionId, type: 'build' as const, level: 'INFO' as const, message: 'x', at: new Date() }
      await scene.db.insertInto('revision_logs').values([line, line, line]).execute()
    }
    const active = await makeRevision(scene.db, scene.deploymentId, { status: 'DEPLOYED' })
    const ids = [active]
    for (const status of ['DEPLOYED', 'QUEUED', 'BUILD_FAILED', 'DEPLOYED', 'DEPLOYED'] as const) {
      ids.push(await makeRevision(scene.db, scene.deploymentId, { status }))
    }
    for (const id of ids) await log(id)
    await scene.db.updateTable('deployments').set({ active_revision_id: active }).where('id', '=', scene.deploymentId).execute()
    expect(await sweepLogs(scene.db, { logsKept: 2 })).toBe(6)
    const left = await scene.db.selectFrom('revision_logs').select('revision_id').distinct().execute()
    expect(left.map((row) => row.revision_id).toSorted()).toEqual([ids[0], ids[2], ids[4], ids[5]].toSorted())
    expect(await sweepLogs(scene.db, { logsKept: 2 })).toBe(0)
  })

  test('empties the caches above their bound, and not under a build', async () => {
    const cache = path.join(scene.database.directory, 'cache')
    mkdirSync(path.join(cache, 'deep'), { recursive: true })
    writeFileSync(path.join(cache, 'deep', 'file'), 'x'.repeat(1000))
    expect(await sweepCache({ cache, maxBytes: 1000, isIdle: () => true })).toBe(false)
    expect(await sweepCache({ cache, maxBytes: 999, isIdle: () => false })).toBe(false)
    expect(await sweepCache({ cache, maxBytes: 999, isIdle: () => true })).toBe(true)
    expect(existsSync(path.join(cache, 'deep'))).toBe(false)
  })
})

describe('the lines of a log, which several may delete at once, are locked in one order', () => {
  const lines = async () => (await scene.db.selectFrom('revision_logs').select('id').execute()).map(({ id }) => Number(id))
  const lock = (ids: readonly number[]) => (other: DatabaseTransaction) =>
    sql`select id from revision_logs where id = any(${ids}) order by id for update`.execute(other)
  /** What is left of a log that `act` deletes when somebody else holds the first line. */
  const leftBy = async (act: () => Promise<unknown>) => {
    const revisionId = await makeRevision(scene.db, scene.deploymentId, { status: 'BUILD_FAILED' })
    await makeRevision(scene.db, scene.deploymentId, { status: 'DEPLOYED' })
    // Neither the table nor its index has them in the order of their ids.
    await sql`
      insert into revision_logs (id, revision_id, type, level, message, at) overriding system value
      select 1000 - n, ${revisionId}::uuid, case when n < 10 then 'build' else 'deploy' end, 'INFO', 'x', now()
      from generate_series(0, 19) n`.execute(scene.db)
    const [lowest, ...others] = (await lines()).toSorted((a, b) => a - b)
    await meet(scene.db, { first: lock([lowest!]), act, second: lock(others) })
    return lines()
  }

  test('by the sweep', async () => {
    expect(await leftBy(() => sweepLogs(scene.db, { logsKept: 1 }))).toEqual([])
  })

  test('by the removal of the deployment', async () => {
    await scene.db.updateTable('deployments').set({ status: 'AWAITING_DELETE' }).execute()
    expect(await leftBy(() => removeDeleted({ db: scene.db, builds: scene.builds, log: SILENT }))).toEqual([])
  })

  test('by the log itself, when it has become too long', async () => {
    const revisionId = await makeRevision(scene.db, scene.deploymentId)
    await sql`
      insert into revision_logs (id, revision_id, type, level, message, at) overriding system value
      select -n, ${revisionId}::uuid, 'build', 'INFO', 'x', now() from generate_series(1, ${LOG_LINES_KEPT}::int) n`.execute(
      scene.db,
    )
    // So that PostgreSQL knows that nearly all lines are of this log, and reads them as they lie.
    await sql`analyze revision_logs`.execute(scene.db)
    const log = openRevisionLog(scene.db, { revisionId, type: 'build', secrets: [], log: SILENT })
    const write = async () => {
      for (let part = 1; part <= 3; part += 1) {
        log.write('INFO', Array(1800).fill('y').join('\n'))
        await until(async () => (await lines()).length === LOG_LINES_KEPT + part * 1800)
      }
      await log.close()
    }
    await meet(scene.db, {
      first: lock([-LOG_LINES_KEPT]),
      act: write,
      second: lock([-LOG_LINES_KEPT + 1, -LOG_LINES_KEPT + 5000]),
    })
    expect(await lines()).toHaveLength(LOG_LINES_KEPT)
  })
})
