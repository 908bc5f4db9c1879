import { rmSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { deployNext } from '../../../../src/platform/control-plane/lifecycle/deploy-worker.ts'
import { MAX_LOSSES } from '../../../../src/platform/control-plane/lifecycle/lease.ts'
import type { Hands } from '../../../../src/platform/control-plane/lifecycle/work.ts'
import { interruptRevision } from '../../../../src/platform/control-plane/revisions.ts'
import { StartFailure } from '../../../../src/platform/control-plane/runtimes/runtime.ts'
import { agentsOf, createFakeRuntime, createHost, type FakeAgent, makeBuilt } from '../../lifecycle-support/hosting.ts'
import { statusOf, stepsOf } from '../../lifecycle-support/rows.ts'
import { setLifecycleScene } from '../../lifecycle-support/scene.ts'
import { SILENT } from '../../support/database.ts'

const scene = setLifecycleScene()

/** Deploys what waits with a runtime that does `before` first. */
function worker(before?: (signal: AbortSignal) => Promise<void>) {
  const { runtime, living } = createFakeRuntime(before)
  const hands: Hands = { inHand: new Set(), stopping: new AbortController().signal }
  const host = createHost(scene.db, { runtime, builds: scene.builds })
  const swaps: unknown[] = []
  const onSwap = async () => void swaps.push(await agentsOf(scene.db, scene.deploymentId))
  return {
    living,
    host,
    hands,
    swaps,
    next: () => deployNext({ db: scene.db, host, log: SILENT, nodeId: 'a', limitMs: 60_000, hands, onSwap }),
  }
}

const waiting = () => makeBuilt(scene.db, { deploymentId: scene.deploymentId, builds: scene.builds, status: 'AWAITING_DEPLOY' })
const activeOf = async () => {
  const row = await scene.db
    .selectFrom('deployments')
    .select('active_revision_id')
    .where('id', '=', scene.deploymentId)
    .executeTakeFirstOrThrow()
  return row.active_revision_id
}

describe('a deploy', () => {
  test('swaps the new agent in and lets the one before drain, in one commit', async () => {
    const { next, swaps, living } = worker()
    const first = await waiting()
    await next()
    const second = await waiting()
    await next()
    expect(await statusOf(scene.db, second.id)).toMatchObject({ status: 'DEPLOYED', message: 'the agent server answers' })
    expect(await activeOf()).toBe(second.id)
    expect(swaps.at(-1)).toEqual([
      { revision_id: first.id, state: 'draining' },
      { revision_id: second.id, state: 'serving' },
    ])
    expect([...living].map((agent) => agent.request.agent.stateDirectory)).toEqual(
      [first.id, second.id].map((id) => path.join(scene.builds, id, 'state')),
    )
  })

  test('of an agent that does not come up leaves the one before alone', async () => {
    const good = worker()
    const first = await waiting()
    await good.next()
    const second = await waiting()
    await worker(() => Promise.reject(new StartFailure('the agent exited with code 1'))).next()
    expect(await statusOf(scene.db, second.id)).toMatchObject({
      status: 'DEPLOY_FAILED',
      message: 'the agent exited with code 1',
    })
    expect(await activeOf()).toBe(first.id)
    expect(await agentsOf(scene.db, scene.deploymentId)).toEqual([{ revision_id: first.id, state: 'serving' }])
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
        while ((await agentsOf(scene.db, scene.deploymentId)).length > 1) await new Promise((resolve) => setTimeout(resolve, 5))
        return agent
      },
    })
    await next()
    expect(await statusOf(scene.db, second.id)).toMatchObject({ status: 'DEPLOY_FAILED' })
    expect(await activeOf()).toBe(first.id)
    expect(await agentsOf(scene.db, scene.deploymentId)).toEqual([{ revision_id: first.id, state: 'serving' }])
    expect(living.size).toBe(0)
  })

  test('that is interrupted while the agent comes up ends the agent, also when it comes up all the same', async () => {
    const { id } = await waiting()
    const { next, living, hands } = worker(async (signal) => {
      await interruptRevision(scene.db, { deploymentId: scene.deploymentId, revisionId: id })
      for (const hand of hands.inHand) hand.look()
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    })
    await next()
    expect((await statusOf(scene.db, id)).status).toBe('INTERRUPTED')
    expect(living.size).toBe(0)
    expect(await agentsOf(scene.db, scene.deploymentId)).toEqual([])
  })

  test('whose interruption comes in the moment of the swap ends the agent, and does not swap', async () => {
    const { id } = await waiting()
    const { next, living, swaps } = worker(
      async () => void (await interruptRevision(scene.db, { deploymentId: scene.deploymentId, revisionId: id })),
    )
    await next()
    expect((await statusOf(scene.db, id)).status).toBe('INTERRUPTED')
    expect([living.size, swaps.length, await activeOf(), await agentsOf(scene.db, scene.deploymentId)]).toEqual([0, 0, null, []])
  })

  test('whose lease is another’s by the end does not swap, and ends its agent', async () => {
    const { id } = await waiting()
    const { next, living } = worker(async () => {
      await scene.db
        .updateTable('revisions')
        .set({ lease_token: '00000000-0000-4000-8000-000000000000' })
        .where('id', '=', id)
        .execute()
    })
    await next()
    expect((await statusOf(scene.db, id)).status).toBe('DEPLOYING')
    expect([living.size, await activeOf(), await agentsOf(scene.db, scene.deploymentId)]).toEqual([0, null, []])
  })

  test('without its build goes back to be built, a few times, and says so', async () => {
    const { id, directory } = await waiting()
    rmSync(directory, { recursive: true })
    await worker().next()
    expect(await statusOf(scene.db, id)).toMatchObject({ status: 'AWAITING_BUILD', losses: 1 })
    expect(await stepsOf(scene.db, id)).toContain('DEPLOYING>AWAITING_BUILD')
    await scene.db.updateTable('revisions').set({ status: 'AWAITING_DEPLOY', losses: MAX_LOSSES }).where('id', '=', id).execute()
    await worker().next()
    expect(await statusOf(scene.db, id)).toMatchObject({ status: 'DEPLOY_FAILED', losses: MAX_LOSSES + 1 })
  })
})
