import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { RevisionStatus } from '../../../../src/contract/status.ts'
import { expireWaiting } from '../../../../src/platform/control-plane/lifecycle/expiry.ts'
import { claimRevision, reclaimRevisions } from '../../../../src/platform/control-plane/lifecycle/lease.ts'
import { advanceQueue, advanceStalledQueues } from '../../../../src/platform/control-plane/lifecycle/queue.ts'
import { settle } from '../../../../src/platform/control-plane/lifecycle/settle.ts'
import { recordTransition, RevisionMoved, transition } from '../../../../src/platform/control-plane/lifecycle/transition.ts'
import { interruptRevision } from '../../../../src/platform/control-plane/revisions.ts'
import { claimsOf } from '../../lifecycle-support/claims.ts'
import { makeRevision, statusOf } from '../../lifecycle-support/rows.ts'
import { setLifecycleScene } from '../../lifecycle-support/scene.ts'
import { ago, MINUTE } from '../../lifecycle-support/time.ts'

const scene = setLifecycleScene()
const { claim } = claimsOf(scene)

const LIMITS = { waitLimitMs: 10 * MINUTE, totalLimitMs: 60 * MINUTE, workingSince: new Date(0) }

describe('the queue', () => {
  test('the newest that waits has its turn, the others are superseded; not while one is worked on', async () => {
    const ids = [
      await makeRevision(scene.db, scene.deploymentId),
      await makeRevision(scene.db, scene.deploymentId),
      await makeRevision(scene.db, scene.deploymentId),
    ]
    await scene.db.transaction().execute((trx) => advanceQueue(trx, scene.deploymentId))
    const all = await Promise.all(ids.map((id) => statusOf(scene.db, id)))
    expect(all.map(({ status }) => status)).toEqual(['SKIPPED', 'SKIPPED', 'AWAITING_BUILD'])
    expect(all[0]?.message).toBe(`superseded by revision ${ids[2]}`)
    const later = await makeRevision(scene.db, scene.deploymentId)
    await scene.db.transaction().execute((trx) => advanceQueue(trx, scene.deploymentId))
    expect((await statusOf(scene.db, later)).status).toBe('QUEUED')
  })

  test('one with nothing to build goes straight to its deploy', async () => {
    const id = await makeRevision(scene.db, scene.deploymentId, { built: JSON.stringify({ directory: '/x' }) })
    await scene.db.transaction().execute((trx) => advanceQueue(trx, scene.deploymentId))
    expect((await statusOf(scene.db, id)).status).toBe('AWAITING_DEPLOY')
  })

  test('one that stands still is found and moved on', async () => {
    const id = await makeRevision(scene.db, scene.deploymentId)
    expect(await advanceStalledQueues(scene.db)).toBe(1)
    expect((await statusOf(scene.db, id)).status).toBe('AWAITING_BUILD')
    await makeRevision(scene.db, scene.deploymentId)
    expect(await advanceStalledQueues(scene.db)).toBe(0)
  })

  test('the database itself refuses a second one that is worked on', async () => {
    await makeRevision(scene.db, scene.deploymentId, { status: 'BUILDING' })
    await expect(makeRevision(scene.db, scene.deploymentId, { status: 'AWAITING_DEPLOY' })).rejects.toThrow(
      'revisions_one_worked_on',
    )
  })

  test('a step that the table does not have is refused, and so is one from elsewhere', async () => {
    const id = await makeRevision(scene.db, scene.deploymentId)
    const step = (status: RevisionStatus, to: RevisionStatus) =>
      scene.db.transaction().execute((trx) => transition(trx, { revision: { id, source: 'git_host', status }, to, reason: 'x' }))
    await expect(step('QUEUED', 'DEPLOYED')).rejects.toThrow('cannot go from QUEUED to DEPLOYED')
    await expect(step('AWAITING_BUILD', 'BUILDING')).rejects.toThrow(RevisionMoved)
  })
})

describe('time limits', () => {
  test.each([
    ['AWAITING_BUILD', 'BUILD_FAILED'],
    ['AWAITING_DEPLOY', 'DEPLOY_FAILED'],
    ['CREATING', 'CREATE_FAILED'],
  ] as const)('%s for too long ends as %s, and the queue moves on', async (status, end) => {
    const id = await makeRevision(scene.db, scene.deploymentId, { status, status_since: ago(11) })
    const waits = await makeRevision(scene.db, scene.deploymentId)
    expect(await expireWaiting(scene.db, LIMITS)).toBe(1)
    expect(await statusOf(scene.db, id)).toMatchObject({ status: end, message: 'no worker was free for 10 minutes' })
    expect((await statusOf(scene.db, waits)).status).toBe('AWAITING_BUILD')
  })

  test('the time in which nobody worked does not count as waiting', async () => {
    const id = await makeRevision(scene.db, scene.deploymentId, { status: 'AWAITING_BUILD', status_since: ago(600) })
    expect(await expireWaiting(scene.db, { ...LIMITS, workingSince: ago(9) })).toBe(0)
    expect((await statusOf(scene.db, id)).status).toBe('AWAITING_BUILD')
  })

  test('a turn that is handed back again and again ends', async () => {
    const id = await makeRevision(scene.db, scene.deploymentId, { status: 'AWAITING_BUILD' })
    await scene.db
      .transaction()
      .execute((trx) => recordTransition(trx, { revisionId: id, from: 'QUEUED', to: 'AWAITING_BUILD', reason: 'its turn' }))
    expect(await expireWaiting(scene.db, LIMITS)).toBe(0)
    await scene.db
      .updateTable('revision_transitions')
      .set({ at: ago(61) })
      .where('revision_id', '=', id)
      .execute()
    expect(await expireWaiting(scene.db, LIMITS)).toBe(1)
    expect(await statusOf(scene.db, id)).toMatchObject({
      status: 'BUILD_FAILED',
      message: 'its turn has lasted longer than 60 minutes',
    })
  })

  test('what a worker holds is left to the worker', async () => {
    await makeRevision(scene.db, scene.deploymentId, { status: 'AWAITING_BUILD', status_since: ago(600) })
    await claim()
    expect(await expireWaiting(scene.db, LIMITS)).toBe(0)
  })
})

test('locks are taken in one order: everything at once, and no deadlock', { timeout: 30_000 }, async () => {
  const began = Date.now()
  let settled = 0
  // Longer where the machine has too much to do.
  const goesOn = () => Date.now() < began + 2500 || (settled < 10 && Date.now() < began + 20_000)
  const until = async (act: () => Promise<unknown>) => {
    while (goesOn()) {
      await act().catch((error: Error & { status?: number }) => {
        if (error.status === undefined) throw error
      })
      await sleep(1)
    }
  }
  const settleNext = async () => {
    const claimed = await claimRevision(scene.db, { from: 'AWAITING_BUILD', to: 'BUILDING', owner: 'a' })
    if (claimed === null) return
    await settle(scene.db, claimed, { to: 'BUILD_FAILED', reason: 'x' })
    settled += 1
  }
  const interruptNext = async () => {
    const row = await scene.db
      .selectFrom('revisions')
      .select('id')
      .where('status', 'in', ['QUEUED', 'AWAITING_BUILD', 'BUILDING'])
      .executeTakeFirst()
    if (row !== undefined) await interruptRevision(scene.db, { deploymentId: scene.deploymentId, revisionId: row.id })
  }
  await Promise.all([
    until(() => makeRevision(scene.db, scene.deploymentId)),
    until(settleNext),
    until(settleNext),
    until(interruptNext),
    until(() => advanceStalledQueues(scene.db)),
    until(() => reclaimRevisions(scene.db, { deadOwner: 'a' })),
    until(() => expireWaiting(scene.db, { ...LIMITS, waitLimitMs: 5 })),
  ])
  const worked = await scene.db
    .selectFrom('revision_transitions')
    .select((is) => is.fn.countAll<string>().as('steps'))
    .executeTakeFirstOrThrow()
  expect(Number(worked.steps)).toBeGreaterThan(20)
})
