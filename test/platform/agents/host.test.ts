import { rmSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { createRefresh } from '../../../src/platform/agents/directory.ts'
import { AlreadyRunning, makeServing } from '../../../src/platform/agents/host.ts'
import { createAgentRoutes } from '../../../src/platform/agents/routes.ts'
import { createSupervisor } from '../../../src/platform/agents/supervisor.ts'
import { StartFailure } from '../../../src/platform/control-plane/runtimes/runtime.ts'
import type { BuiltAgent } from '../../../src/platform/control-plane/sources/build.ts'
import { agentsOf, createFakeRuntime, createHost, makeBuilt } from '../lifecycle-support/hosting.ts'
import { setLifecycleScene } from '../lifecycle-support/scene.ts'
import { SILENT } from '../support/database.ts'
import { waitingForLocks } from '../support/lock-order.ts'
import { until } from '../support/processes.ts'

const scene = setLifecycleScene()
let active: { id: string; directory: string }

beforeEach(async () => {
  active = await makeBuilt(scene.db, { deploymentId: scene.deploymentId, builds: scene.builds, status: 'DEPLOYED' })
})

const read = async () => ({
  deployment: await scene.db.selectFrom('deployments').selectAll().where('id', '=', scene.deploymentId).executeTakeFirstOrThrow(),
  revision: await scene.db.selectFrom('revisions').selectAll().where('id', '=', active.id).executeTakeFirstOrThrow(),
})
const launching = async () => ({ ...(await read()), signal: new AbortController().signal, timeoutMs: 1000 })
const silence = (seconds: number) =>
  scene.db
    .updateTable('agents')
    .set({ seen_at: new Date(Date.now() - seconds * 1000) })
    .execute()

describe('the agents of a node', () => {
  test('no two nodes start one revision', async () => {
    const [one, two] = ['a', 'b'].map((nodeId) =>
      createHost(scene.db, { runtime: createFakeRuntime().runtime, builds: scene.builds, nodeId }),
    )
    const results = await Promise.allSettled([one!.launch(await launching()), two!.launch(await launching())])
    expect(results.map((result) => result.status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(results.find((result) => result.status === 'rejected')?.reason).toBeInstanceOf(AlreadyRunning)
    expect(await agentsOf(scene.db, scene.deploymentId)).toHaveLength(1)
  })

  test('one that does not start leaves nothing behind, and one that ends by itself neither', async () => {
    const failing = createHost(scene.db, {
      runtime: createFakeRuntime(() => Promise.reject(new StartFailure('no'))).runtime,
      builds: scene.builds,
    })
    await expect(failing.launch(await launching())).rejects.toThrow('no')
    expect(await agentsOf(scene.db, scene.deploymentId)).toEqual([])
    const { runtime, living } = createFakeRuntime()
    const host = createHost(scene.db, { runtime, builds: scene.builds })
    await host.launch(await launching())
    for (const agent of living) agent.die()
    await until(async () => (await agentsOf(scene.db, scene.deploymentId)).length === 0)
    expect(host.all()).toEqual([])
  })

  test('a row without a process is removed by the beat: it would keep the revision from ever starting again', async () => {
    const host = createHost(scene.db, { runtime: createFakeRuntime().runtime, builds: scene.builds })
    const row = {
      id: crypto.randomUUID(),
      deployment_id: scene.deploymentId,
      revision_id: active.id,
      node_id: 'a',
      state: 'starting' as const,
    }
    await scene.db
      .insertInto('agents')
      .values({ ...row, host: null, port: null, reference: null })
      .execute()
    await host.beat()
    expect(await agentsOf(scene.db, scene.deploymentId)).toEqual([])
  })

  test('one that another node has replaced meanwhile is ended by the beat; the others are seen', async () => {
    const { runtime, living } = createFakeRuntime()
    const host = createHost(scene.db, { runtime, builds: scene.builds })
    await host.launch(await launching())
    await silence(20)
    await host.beat()
    const seen = await scene.db.selectFrom('agents').select('seen_at').executeTakeFirstOrThrow()
    expect(Date.now() - seen.seen_at.getTime()).toBeLessThan(5000)
    await scene.db.deleteFrom('agents').execute()
    await host.beat()
    await until(() => living.size === 0)
  })

  test('the beat of a node and the swap of an agent never wait for each other', async () => {
    const next = await makeBuilt(scene.db, { deploymentId: scene.deploymentId, builds: scene.builds, status: 'AWAITING_DEPLOY' })
    const [starting, serving] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
    const agent = { deployment_id: scene.deploymentId, node_id: 'a', host: null, port: null, reference: null }
    await scene.db
      .insertInto('agents')
      .values({ ...agent, id: starting, revision_id: next.id, state: 'starting' })
      .execute()
    await scene.db
      .insertInto('agents')
      .values({ ...agent, id: serving, revision_id: active.id, state: 'serving' })
      .execute()
    const host = createHost(scene.db, { runtime: createFakeRuntime().runtime, builds: scene.builds })
    // While one row is held, the swap waits for it first and the beat second: the very order in which each would hold what the other wants.
    const held = await scene.db.startTransaction().execute()
    await held.selectFrom('agents').select('id').where('id', '=', serving).forUpdate().execute()
    const swap = scene.db.transaction().execute((trx) => makeServing(trx, { id: starting, deploymentId: scene.deploymentId }))
    await until(async () => (await waitingForLocks(scene.db)) === 1)
    const beat = host.beat()
    await until(async () => (await waitingForLocks(scene.db)) === 2)
    await held.commit().execute()
    await Promise.all([swap, beat])
  })

  test('at the start those of an earlier platform of this node are ended, and those of other nodes are left alone', async () => {
    const mine = createHost(scene.db, { runtime: createFakeRuntime().runtime, builds: scene.builds })
    await mine.launch(await launching())
    const { runtime, strays } = createFakeRuntime()
    await createHost(scene.db, { runtime, builds: scene.builds, nodeId: 'b' }).clearStrays()
    expect([strays, (await agentsOf(scene.db, scene.deploymentId)).length]).toEqual([[], 1])
    await createHost(scene.db, { runtime, builds: scene.builds }).clearStrays()
    expect([strays, await agentsOf(scene.db, scene.deploymentId)]).toEqual([['fake:4000'], []])
  })
})

describe('the supervisor', () => {
  const supervise = (
    before?: () => Promise<void>,
    buildAgain: () => Promise<BuiltAgent> = () => Promise.reject(new Error('not asked for')),
  ) => {
    const { runtime, living } = createFakeRuntime(before)
    const host = createHost(scene.db, { runtime, builds: scene.builds })
    const { signal } = new AbortController()
    const supervisor = createSupervisor({ db: scene.db, host, nodeId: 'a', startLimitMs: 1000, signal, buildAgain, log: SILENT })
    return { living, host, round: () => supervisor.round() }
  }

  test('starts what is active and not served, once', async () => {
    const { living, round } = supervise()
    await Promise.all([round(), round()])
    await round()
    expect(living.size).toBe(1)
    expect(await agentsOf(scene.db, scene.deploymentId)).toEqual([{ revision_id: active.id, state: 'serving' }])
  })

  test('takes over from a node that is silent, never from its own', async () => {
    const other = createHost(scene.db, { runtime: createFakeRuntime().runtime, builds: scene.builds, nodeId: 'b' })
    await other.launch(await launching())
    const { living, round } = supervise()
    await silence(20)
    await round()
    expect(living.size).toBe(0)
    await silence(31)
    await round()
    expect(living.size).toBe(1)
    // As after a sleep of this machine.
    await silence(3600)
    await round()
    expect(await agentsOf(scene.db, scene.deploymentId)).toEqual([{ revision_id: active.id, state: 'serving' }])
  })

  test('waits longer after each start that fails, and after one that does not last', async () => {
    let starts = 0
    const failing = supervise(async () => {
      starts += 1
      throw new StartFailure('no')
    })
    for (let times = 0; times < 5; times += 1) await failing.round()
    expect(starts).toBe(1)
    const { living, round } = supervise()
    await round()
    for (const agent of living) agent.die()
    await until(async () => (await agentsOf(scene.db, scene.deploymentId)).length === 0)
    await round()
    expect(living.size, 'it ended at once: not before a second').toBe(0)
    await until(async () => (await round(), living.size === 1), 3000)
  })

  test('builds the recorded commit again when its build is gone, and leaves the one before on failure', async () => {
    rmSync(active.directory, { recursive: true })
    const { built } = (await read()).revision
    const asked: unknown[] = []
    const { living, round } = supervise(undefined, async () => {
      asked.push(await agentsOf(scene.db, scene.deploymentId))
      return built!
    })
    await round()
    expect(asked, 'no other node builds it too').toEqual([[{ revision_id: active.id, state: 'starting' }]])
    expect(living.size).toBe(1)
  })

  test('gives way to a revision that was deployed while it started an older one', async () => {
    const newer = await makeBuilt(scene.db, { deploymentId: scene.deploymentId, builds: scene.builds, status: 'DEPLOYED' })
    await scene.db
      .updateTable('deployments')
      .set({ active_revision_id: active.id })
      .where('id', '=', scene.deploymentId)
      .execute()
    const { living, round } = supervise(async () => {
      await scene.db
        .updateTable('deployments')
        .set({ active_revision_id: newer.id })
        .where('id', '=', scene.deploymentId)
        .execute()
    })
    await round()
    expect([living.size, await agentsOf(scene.db, scene.deploymentId)]).toEqual([0, []])
  })
})

describe('the routes of a process', () => {
  test('follow the database: known, served, swapped, suspended, gone; looks follow one another', async () => {
    const routes = createAgentRoutes()
    const refresh = createRefresh(scene.db, routes)
    const { slug } = (await read()).deployment
    await refresh()
    expect(routes.lookup(slug)).toMatchObject({ target: null })
    const host = createHost(scene.db, { runtime: createFakeRuntime().runtime, builds: scene.builds })
    const agent = await host.launch(await launching())
    await refresh()
    expect(routes.lookup(slug), 'one that starts does not serve').toMatchObject({ target: null })
    await scene.db.transaction().execute((trx) => makeServing(trx, agent))
    await Promise.all([refresh(), refresh(), refresh()])
    expect(routes.lookup(slug)).toMatchObject({ target: { revisionId: active.id, port: agent.process.address.port } })
    await host.end(agent, { graceMs: 0 })
    await refresh()
    expect(routes.lookup(slug)).toMatchObject({ target: null })
    await scene.db.updateTable('deployments').set({ status: 'AWAITING_DELETE' }).execute()
    await refresh()
    expect(routes.lookup(slug)).toBeUndefined()
  })
})
