import { rmSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { deployNext } from '../../../../src/platform/control-plane/lifecycle/deploy-worker.ts'
import { MAX_LOSSES } from '../../../../src/platform/control-plane/lifecycle/lease.ts'
import type { Hands } from '../../../../src/platform/control-plane/lifecycle/work.ts'
import { interruptRevision } from '../../../../src/platform/control-plane/revisions.ts'
import { StartFailure } from '../../../../src/platform/control-plane/runtimes/runtime.ts'
import type { Database } from '../../../../src/platform/database/schema.ts'
import { agentsOf, createFakeRuntime, createHost, type FakeAgent, makeBuilt } from '../../lifecycle-support/hosting.ts'
import { makeDeployment, statusOf, stepsOf } from '../../lifecycle-support/rows.ts'
import { clear } from '../../lifecycle-support/world.ts'
import { createWorkspace, SILENT, startTestDatabase, type TestDatabase } from '../../support/database.ts'

let database: TestDatabase
let db: Database
let workspaceId: string
let builds: string
let deploymentId: string

beforeAll(async () => {
  database = await startTestDatabase()
  db = database.db
  builds = path.join(database.directory, 'builds')
  workspaceId = (await createWorkspace(db)).id
})

afterAll(() => database.stop())

beforeEach(async () => {
  await clear(db, builds)
  deploymentId = await makeDeployment(db, workspaceId)
})

/** Deploys what waits with a runtime that does `before` first. */
function worker(before?: (signal: AbortSignal) => Promise<void>) {
  const { runtime, living } = createFakeRuntime(before)
  const hands: Hands = { inHand: new Set(), stopping: new AbortController().signal }
  const host = createHost(db, { runtime, builds })
  const swaps: unknown[] = []
  const onSwap = async () => void swaps.push(await agentsOf(db, deploymentId))
  return { living, host, hands, swaps, next: () => deployNext({ db, host, log: SILENT, nodeId: 'a', limitMs: 60_000, hands, onSwap }) }
}

const waiting = () => makeBuilt(db, { deploymentId, builds, status: 'AWAITING_DEPLOY' })
const activeOf = async () => {
  const row = await db.selectFrom('deployments').select('active_revision_id').where('id', '=', deploymentId).executeTakeFirstOrThrow()
  return row.active_revision_id
}

describe('a deploy', () => {
  test('swaps the new agent in and lets the one before drain, in one commit', async () => {
    const { next, swaps, living } = worker()
    const first = await waiting()
    await next()
    const second = await waiting()
    await next()
    expect(await statusOf(db, second.id)).toMatchObject({ status: 'DEPLOYED', message: 'the agent server answers' })
    expect(await activeOf()).toBe(second.id)
    expect(swaps.at(-1)).toEqual([
      { revision_id: first.id, state: 'draining' },
      { revision_id: second.id, state: 'serving' },
    ])
    expect([...living].map((agent) => agent.request.agent.stateDirectory)).toEqual([first.id, second.id].map((id) => path.join(builds, id, 'state')))
  })

  test('of an agent that does not come up leaves the one before alone', async () => {
    const good = worker()
    const first = await waiting()
    await good.next()
    const second = await waiting()
    await worker(() => Promise.reject(new StartFailure('the agent exited with code 1'))).next()
    expect(await statusOf(db, second.id)).toMatchObject({ status: 'DEPLOY_FAILED', message: 'the agent exited with code 1' })
    expect(await activeOf()).toBe(first.id)
    expect(await agentsOf(db, deploymentId)).toEqual([{ revision_id: first.id, state: 'serving' }])
  })

  test('of an agent that ends in the moment of the swap leaves the one before alone', async () => {
    const good = worker()
    const first = await waiting()
    await good.next()
    const second = await waiting()
    const { next, living, host } = worker()
    const launch = host.launch.bind(host)
    Object.assign(host, {
      launch: async (options: Parameters<typeof launch>[0]) => {
        const agent = await launch(options)
        ;(agent.process as FakeAgent).die()
        while ((await agentsOf(db, deploymentId)).length > 1) await new Promise((resolve) => setTimeout(resolve, 5))
        return agent
      },
    })
    await next()
    expect(await statusOf(db, second.id)).toMatchObject({ status: 'DEPLOY_FAILED' })
    expect(await activeOf()).toBe(first.id)
    expect(await agentsOf(db, deploymentId)).toEqual([{ revision_id: first.id, state: 'serving' }])
    expect(living.size).toBe(0)
  })

  test('that is interrupted while the agent comes up ends the agent, also when it comes up all the same', async () => {
    const { id } = await waiting()
    const { next, living, hands } = worker(async (signal) => {
      await interruptRevision(db, { deploymentId, revisionId: id })
      for (const hand of hands.inHand) hand.look()
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    })
    await next()
    expect((await statusOf(db, id)).status).toBe('INTERRUPTED')
    expect(living.size).toBe(0)
    expect(await agentsOf(db, deploymentId)).toEqual([])
  })

  test('whose interruption comes in the moment of the swap ends the agent, and does not swap', async () => {
    const { id } = await waiting()
    const { next, living, swaps } = worker(async () => void (await interruptRevision(db, { deploymentId, revisionId: id })))
    await next()
    expect((await statusOf(db, id)).status).toBe('INTERRUPTED')
    expect([living.size, swaps.length, await activeOf(), await agentsOf(db, deploymentId)]).toEqual([0, 0, null, []])
  })

  test('whose lease is another’s by the end does not swap, and ends its agent', async () => {
    const { id } = await waiting()
    const { next, living } = worker(async () => {
      await db.updateTable('revisions').set({ lease_token: '00000000-0000-4000-8000-000000000000' }).where('id', '=', id).execute()
    })
    await next()
    expect((await statusOf(db, id)).status).toBe('DEPLOYING')
    expect([living.size, await activeOf(), await agentsOf(db, deploymentId)]).toEqual([0, null, []])
  })

  test('without its build goes back to be built, a few times, and says so', async () => {
    const { id, directory } = await waiting()
    rmSync(directory, { recursive: true })
    await worker().next()
    expect(await statusOf(db, id)).toMatchObject({ status: 'AWAITING_BUILD', losses: 1 })
    expect(await stepsOf(db, id)).toContain('DEPLOYING>AWAITING_BUILD')
    await db.updateTable('revisions').set({ status: 'AWAITING_DEPLOY', losses: MAX_LOSSES }).where('id', '=', id).execute()
    await worker().next()
    expect(await statusOf(db, id)).toMatchObject({ status: 'DEPLOY_FAILED', losses: MAX_LOSSES + 1 })
  })
})
