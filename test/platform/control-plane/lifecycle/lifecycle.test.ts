import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { RevisionStatus } from '../../../../src/contract/status.ts'
import { removeDeleted } from '../../../../src/platform/control-plane/lifecycle/deletions.ts'
import { expireWaiting } from '../../../../src/platform/control-plane/lifecycle/expiry.ts'
import { type Claim, claimRevision, heartbeat, MAX_LOSSES, reclaimRevisions } from '../../../../src/platform/control-plane/lifecycle/lease.ts'
import { advanceQueue, advanceStalledQueues } from '../../../../src/platform/control-plane/lifecycle/queue.ts'
import { settle, settlementOf, settleStubbornly } from '../../../../src/platform/control-plane/lifecycle/settle.ts'
import { sweepBuilds, sweepCache, sweepLogs } from '../../../../src/platform/control-plane/lifecycle/sweep.ts'
import { recordTransition, RevisionMoved, transition } from '../../../../src/platform/control-plane/lifecycle/transition.ts'
import { hold, WorkStopped } from '../../../../src/platform/control-plane/lifecycle/work.ts'
import { interruptRevision } from '../../../../src/platform/control-plane/revisions.ts'
import { StartFailure } from '../../../../src/platform/control-plane/runtimes/runtime.ts'
import type { Database } from '../../../../src/platform/database/schema.ts'
import { expireLease, makeDeployment, makeRevision, statusOf, stepsOf } from '../../lifecycle-support/rows.ts'
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

const MINUTE = 60_000
const LIMITS = { waitLimitMs: 10 * MINUTE, totalLimitMs: 60 * MINUTE, workingSince: new Date(0) }
const ago = (minutes: number) => new Date(Date.now() - minutes * MINUTE)

const claim = async (owner = 'a'): Promise<Claim> => {
  const claimed = await claimRevision(db, { from: 'AWAITING_BUILD', to: 'BUILDING', owner })
  if (claimed === null) throw new Error('nothing waits')
  return claimed
}

/** A revision in a worker's hands, and another that waits behind it. */
const building = async (columns: { losses?: number } = {}) => {
  const id = await makeRevision(db, deploymentId, { status: 'AWAITING_BUILD', ...columns })
  const waits = await makeRevision(db, deploymentId)
  return { id, waits, claim: await claim() }
}

describe('leases', () => {
  test('a worker that slept past its lease cannot commit, nor renew it, once another has taken over', async () => {
    const { id, claim: first } = await building()
    await expireLease(db, id)
    expect(await reclaimRevisions(db)).toBe(1)
    const second = await claim('b')
    expect(second.id).toBe(id)
    expect(await settle(db, first, { to: 'AWAITING_DEPLOY', reason: 'built' })).toBe('lost')
    expect(await heartbeat(db, first)).toBe('lost')
    expect(await settle(db, second, { to: 'AWAITING_DEPLOY', reason: 'built' })).toBe('settled')
    expect((await stepsOf(db, id)).filter((step) => step.endsWith('AWAITING_DEPLOY'))).toHaveLength(1)
  })

  test('a worker past its lease cannot commit although nobody has taken over yet', async () => {
    const { id, claim } = await building()
    await expireLease(db, id)
    expect(await settle(db, claim, { to: 'AWAITING_DEPLOY', reason: 'built' })).toBe('lost')
    expect(await heartbeat(db, claim), 'one that is still wanted may go on').toBe('go on')
    expect(await settle(db, claim, { to: 'AWAITING_DEPLOY', reason: 'built' })).toBe('settled')
  })

  test('two workers never take the same revision', async () => {
    await makeRevision(db, deploymentId, { status: 'AWAITING_BUILD' })
    const take = (_: unknown, worker: number) => claimRevision(db, { from: 'AWAITING_BUILD', to: 'BUILDING', owner: `${worker}` })
    const claims = await Promise.all(Array.from({ length: 8 }, take))
    expect(claims.filter((one) => one !== null)).toHaveLength(1)
  })

  test('one that loses every worker fails, and the next has its turn', async () => {
    const { id, waits } = await building({ losses: MAX_LOSSES })
    await expireLease(db, id)
    await reclaimRevisions(db)
    expect(await statusOf(db, id)).toEqual({ status: 'BUILD_FAILED', message: 'its worker was lost 4 times while it was BUILDING', losses: 4 })
    expect((await statusOf(db, waits)).status).toBe('AWAITING_BUILD')
  })

  test('at the start everything of this node is taken back at once, and nothing of another', async () => {
    const { id } = await building()
    expect(await reclaimRevisions(db, { deadOwner: 'b' })).toBe(0)
    expect(await reclaimRevisions(db, { deadOwner: 'a' })).toBe(1)
    expect(await statusOf(db, id)).toMatchObject({ status: 'AWAITING_BUILD', losses: 1 })
  })

  test('an interrupted one whose worker is lost ends, and is not taken up again', async () => {
    const { id, waits } = await building()
    await interruptRevision(db, { deploymentId, revisionId: id })
    await expireLease(db, id)
    await reclaimRevisions(db)
    expect((await statusOf(db, id)).status).toBe('INTERRUPTED')
    expect((await statusOf(db, waits)).status).toBe('AWAITING_BUILD')
  })
})

describe('the end of a worker’s work', () => {
  test('an acknowledged interruption counts, also when the work was done a moment later', async () => {
    const { id, claim } = await building()
    await interruptRevision(db, { deploymentId, revisionId: id })
    expect(await settle(db, claim, { to: 'AWAITING_DEPLOY', reason: 'built' })).toBe('interrupted')
    expect(await settle(db, claim, { to: 'INTERRUPTED', reason: 'interrupted by a user' })).toBe('settled')
  })

  test('the step, what belongs to it and the next one’s turn are one transaction', async () => {
    const { id, waits, claim } = await building()
    const fails = settle(db, claim, { to: 'BUILD_FAILED', reason: 'x', also: () => Promise.reject(new Error('no')) })
    await expect(fails).rejects.toThrow('no')
    expect((await statusOf(db, id)).status).toBe('BUILDING')
    expect((await statusOf(db, waits)).status).toBe('QUEUED')
    await settle(db, claim, { to: 'BUILD_FAILED', reason: 'npm ci exited with code 1' })
    expect(await statusOf(db, id)).toMatchObject({ status: 'BUILD_FAILED', message: 'npm ci exited with code 1' })
    expect((await statusOf(db, waits)).status).toBe('AWAITING_BUILD')
  })

  test('a step that is refused for good is not tried again', async () => {
    const { claim } = await building()
    let tried = 0
    const also = () => {
      tried += 1
      return Promise.reject(new StartFailure('it ended'))
    }
    await expect(settleStubbornly(db, claim, { to: 'AWAITING_DEPLOY', reason: 'x', also }, SILENT)).rejects.toThrow('it ended')
    expect(tried).toBe(1)
  })

  test('why it was stopped decides where it goes', () => {
    const claim = { status: 'DEPLOYING' } as Claim
    const where = (error: unknown) => settlementOf(claim, error, () => 'sentence')
    expect(where(new WorkStopped('interrupted'))?.to).toBe('INTERRUPTED')
    expect(where(new WorkStopped('time limit'))).toEqual({ to: 'DEPLOY_FAILED', reason: 'the time limit for DEPLOYING passed' })
    expect(where(new WorkStopped('stopping'))?.to).toBe('AWAITING_DEPLOY')
    expect(where(new WorkStopped('lost'))).toBeNull()
    expect(where(new Error('x'))).toEqual({ to: 'DEPLOY_FAILED', reason: 'sentence' })
    expect(where(new WorkStopped('time limit', { abandoned: true }))?.reason).toContain('its work could not be ended')
  })
})

describe('work under a claim', () => {
  const endless = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }))
  const hands = (stopping = new AbortController().signal) => ({ inHand: new Set<{ revisionId: string; look(): void }>(), stopping })

  test('is stopped by an interruption as soon as it looks', async () => {
    const { id, claim } = await building()
    const mine = hands()
    const held = hold(db, { claim, limitMs: MINUTE, hands: mine, work: endless })
    await interruptRevision(db, { deploymentId, revisionId: id })
    for (const hand of mine.inHand) hand.look()
    await expect(held).rejects.toMatchObject({ reason: 'interrupted', abandoned: false })
    expect(mine.inHand.size).toBe(0)
  })

  test('is stopped by its time limit, by the end of the lease, and by a stop that was asked for before it began', async () => {
    const { id, claim: mine } = await building()
    await expect(hold(db, { claim: mine, limitMs: 20, hands: hands(), work: endless })).rejects.toMatchObject({ reason: 'time limit' })
    const stopped = { claim: mine, limitMs: MINUTE, hands: hands(AbortSignal.abort()), work: endless }
    await expect(hold(db, stopped)).rejects.toMatchObject({ reason: 'stopping' })
    await expireLease(db, id)
    await reclaimRevisions(db)
    const late = hands()
    const held = hold(db, { claim: mine, limitMs: MINUTE, hands: late, work: endless })
    for (const hand of late.inHand) hand.look()
    await expect(held).rejects.toMatchObject({ reason: 'lost' })
  })

  test('that does not end is given up, so that the queue moves on', async () => {
    const { claim } = await building()
    const deaf = () => new Promise<never>(() => undefined)
    const held = hold(db, { claim, limitMs: 10, hands: hands(), work: deaf, endLimitMs: 30 })
    await expect(held).rejects.toMatchObject({ reason: 'time limit', abandoned: true })
  })

  test('that fails by itself tells its own error', async () => {
    const { claim } = await building()
    await expect(hold(db, { claim, limitMs: MINUTE, hands: hands(), work: () => Promise.reject(new Error('npm')) })).rejects.toThrow('npm')
  })
})

describe('the queue', () => {
  test('the newest that waits has its turn, the others are superseded; not while one is worked on', async () => {
    const ids = [await makeRevision(db, deploymentId), await makeRevision(db, deploymentId), await makeRevision(db, deploymentId)]
    await db.transaction().execute((trx) => advanceQueue(trx, deploymentId))
    const all = await Promise.all(ids.map((id) => statusOf(db, id)))
    expect(all.map(({ status }) => status)).toEqual(['SKIPPED', 'SKIPPED', 'AWAITING_BUILD'])
    expect(all[0]?.message).toBe(`superseded by revision ${ids[2]}`)
    const later = await makeRevision(db, deploymentId)
    await db.transaction().execute((trx) => advanceQueue(trx, deploymentId))
    expect((await statusOf(db, later)).status).toBe('QUEUED')
  })

  test('one with nothing to build goes straight to its deploy', async () => {
    const id = await makeRevision(db, deploymentId, { built: JSON.stringify({ directory: '/x' }) })
    await db.transaction().execute((trx) => advanceQueue(trx, deploymentId))
    expect((await statusOf(db, id)).status).toBe('AWAITING_DEPLOY')
  })

  test('one that stands still is found and moved on', async () => {
    const id = await makeRevision(db, deploymentId)
    expect(await advanceStalledQueues(db)).toBe(1)
    expect((await statusOf(db, id)).status).toBe('AWAITING_BUILD')
    await makeRevision(db, deploymentId)
    expect(await advanceStalledQueues(db)).toBe(0)
  })

  test('the database itself refuses a second one that is worked on', async () => {
    await makeRevision(db, deploymentId, { status: 'BUILDING' })
    await expect(makeRevision(db, deploymentId, { status: 'AWAITING_DEPLOY' })).rejects.toThrow('revisions_one_worked_on')
  })

  test('a step that the table does not have is refused, and so is one from elsewhere', async () => {
    const id = await makeRevision(db, deploymentId)
    const step = (status: RevisionStatus, to: RevisionStatus) =>
      db.transaction().execute((trx) => transition(trx, { revision: { id, source: 'git_host', status }, to, reason: 'x' }))
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
    const id = await makeRevision(db, deploymentId, { status, status_since: ago(11) })
    const waits = await makeRevision(db, deploymentId)
    expect(await expireWaiting(db, LIMITS)).toBe(1)
    expect(await statusOf(db, id)).toMatchObject({ status: end, message: 'no worker was free for 10 minutes' })
    expect((await statusOf(db, waits)).status).toBe('AWAITING_BUILD')
  })

  test('the time in which nobody worked does not count as waiting', async () => {
    const id = await makeRevision(db, deploymentId, { status: 'AWAITING_BUILD', status_since: ago(600) })
    expect(await expireWaiting(db, { ...LIMITS, workingSince: ago(9) })).toBe(0)
    expect((await statusOf(db, id)).status).toBe('AWAITING_BUILD')
  })

  test('a turn that is handed back again and again ends', async () => {
    const id = await makeRevision(db, deploymentId, { status: 'AWAITING_BUILD' })
    await db.transaction().execute((trx) => recordTransition(trx, { revisionId: id, from: 'QUEUED', to: 'AWAITING_BUILD', reason: 'its turn' }))
    expect(await expireWaiting(db, LIMITS)).toBe(0)
    await db.updateTable('revision_transitions').set({ at: ago(61) }).where('revision_id', '=', id).execute()
    expect(await expireWaiting(db, LIMITS)).toBe(1)
    expect(await statusOf(db, id)).toMatchObject({ status: 'BUILD_FAILED', message: 'its turn has lasted longer than 60 minutes' })
  })

  test('what a worker holds is left to the worker', async () => {
    await makeRevision(db, deploymentId, { status: 'AWAITING_BUILD', status_since: ago(600) })
    await claim()
    expect(await expireWaiting(db, LIMITS)).toBe(0)
  })
})

describe('deletion', () => {
  const awaitDeletion = (set: object = {}) =>
    db.updateTable('deployments').set({ status: 'AWAITING_DELETE', ...set }).where('id', '=', deploymentId).execute()
  const round = () => removeDeleted({ db, builds, log: SILENT })
  const exists = async () => (await db.selectFrom('deployments').select('id').where('id', '=', deploymentId).execute()).length === 1

  test('ends what waits, waits for what is worked on and served, then removes everything', async () => {
    const { id, waits, claim } = await building()
    const folder = path.join(builds, id)
    mkdirSync(folder)
    const agent = { id: randomUUID(), deployment_id: deploymentId, revision_id: id, node_id: 'a', state: 'serving' as const }
    await db.insertInto('agents').values({ ...agent, host: null, port: null, reference: null }).execute()
    await awaitDeletion()
    await round()
    expect(await statusOf(db, waits)).toMatchObject({ status: 'INTERRUPTED', message: 'the deployment is being deleted' })
    expect(await heartbeat(db, claim)).toBe('interrupted')
    expect((await db.selectFrom('agents').select('state').executeTakeFirst())?.state).toBe('draining')
    await settle(db, claim, { to: 'INTERRUPTED', reason: 'interrupted by a user' })
    await round()
    expect(await exists(), 'its agent is still there').toBe(true)
    await db.deleteFrom('agents').execute()
    await round()
    expect(await exists()).toBe(false)
    expect(existsSync(folder)).toBe(false)
    expect(await db.selectFrom('revision_transitions').selectAll().execute()).toEqual([])
  })

  test('the tracing project goes with it only when that was asked for', async () => {
    const projects = () => db.selectFrom('tracing_projects').select('name').execute()
    for (const [name, wanted] of [['stays', false], ['goes', true]] as const) {
      deploymentId = await makeDeployment(db, workspaceId)
      const id = randomUUID()
      await db.insertInto('tracing_projects').values({ id, workspace_id: workspaceId, name }).execute()
      await awaitDeletion({ tracing_project_id: id, delete_tracing_project: wanted })
      await round()
      expect(await exists()).toBe(false)
    }
    expect(await projects()).toEqual([{ name: 'stays' }])
  })
})

describe('the sweep', () => {
  const folderOf = (id: string) => path.join(builds, id)
  const deployed = async (columns = {}) => {
    const id = await makeRevision(db, deploymentId, { status: 'DEPLOYED', ...columns })
    const directory = path.join(folderOf(id), 'attempt', 'checkout')
    mkdirSync(directory, { recursive: true })
    await db.updateTable('revisions').set({ built: JSON.stringify({ directory }) }).where('id', '=', id).execute()
    return id
  }

  test('keeps what runs, what is active, what is unfinished and the newest builds; removes the rest', async () => {
    const active = await deployed()
    const old = await deployed()
    const reused = await deployed()
    const kept = [await deployed(), await deployed()]
    const failed = await makeRevision(db, deploymentId, { status: 'BUILD_FAILED' })
    const built = JSON.stringify({ directory: path.join(folderOf(reused), 'attempt', 'checkout') })
    const unfinished = await makeRevision(db, deploymentId, { status: 'AWAITING_DEPLOY', built })
    for (const name of [failed, unfinished, 'left-over']) mkdirSync(folderOf(name))
    await db.updateTable('deployments').set({ active_revision_id: active }).where('id', '=', deploymentId).execute()
    expect(await sweepBuilds(db, { builds, buildsKept: 2 })).toBe(3)
    expect([active, reused, unfinished, ...kept].map((id) => existsSync(folderOf(id)))).toEqual(Array(5).fill(true))
    expect([old, failed, 'left-over'].map((id) => existsSync(folderOf(id)))).toEqual([false, false, false])
  })

  test('keeps the logs of the newest revisions, of the active one and of what is unfinished', async () => {
    const log = async (revisionId: string) => {
      const line = { revision_id: revisionId, type: 'build' as const, level: 'INFO' as const, message: 'x', at: new Date() }
      await db.insertInto('revision_logs').values([line, line, line]).execute()
    }
    const active = await makeRevision(db, deploymentId, { status: 'DEPLOYED' })
    const ids = [active]
    for (const status of ['DEPLOYED', 'QUEUED', 'BUILD_FAILED', 'DEPLOYED', 'DEPLOYED'] as const) {
      ids.push(await makeRevision(db, deploymentId, { status }))
    }
    for (const id of ids) await log(id)
    await db.updateTable('deployments').set({ active_revision_id: active }).where('id', '=', deploymentId).execute()
    expect(await sweepLogs(db, { logsKept: 2 })).toBe(6)
    const left = await db.selectFrom('revision_logs').select('revision_id').distinct().execute()
    expect(left.map((row) => row.revision_id).toSorted()).toEqual([ids[0], ids[2], ids[4], ids[5]].toSorted())
    expect(await sweepLogs(db, { logsKept: 2 })).toBe(0)
  })

  test('empties the caches above their bound, and not under a build', async () => {
    const cache = path.join(database.directory, 'cache')
    mkdirSync(path.join(cache, 'deep'), { recursive: true })
    writeFileSync(path.join(cache, 'deep', 'file'), 'x'.repeat(1000))
    expect(await sweepCache({ cache, maxBytes: 1000, isIdle: () => true })).toBe(false)
    expect(await sweepCache({ cache, maxBytes: 999, isIdle: () => false })).toBe(false)
    expect(await sweepCache({ cache, maxBytes: 999, isIdle: () => true })).toBe(true)
    expect(existsSync(path.join(cache, 'deep'))).toBe(false)
  })
})

test('locks are taken in one order: everything at once, and no deadlock', { timeout: 30_000 }, async () => {
  const stop = Date.now() + 2500
  const until = async (act: () => Promise<unknown>) => {
    while (Date.now() < stop) {
      await act().catch((error: Error & { status?: number }) => {
        if (error.status === undefined) throw error
      })
      await sleep(1)
    }
  }
  const settleNext = async () => {
    const claimed = await claimRevision(db, { from: 'AWAITING_BUILD', to: 'BUILDING', owner: 'a' })
    if (claimed !== null) await settle(db, claimed, { to: 'BUILD_FAILED', reason: 'x' })
  }
  const interruptNext = async () => {
    const row = await db.selectFrom('revisions').select('id').where('status', 'in', ['QUEUED', 'AWAITING_BUILD', 'BUILDING']).executeTakeFirst()
    if (row !== undefined) await interruptRevision(db, { deploymentId, revisionId: row.id })
  }
  await Promise.all([
    until(() => makeRevision(db, deploymentId)),
    until(settleNext),
    until(settleNext),
    until(interruptNext),
    until(() => advanceStalledQueues(db)),
    until(() => reclaimRevisions(db, { deadOwner: 'a' })),
    until(() => expireWaiting(db, { ...LIMITS, waitLimitMs: 5 })),
  ])
  const worked = await db.selectFrom('revision_transitions').select((is) => is.fn.countAll<string>().as('steps')).executeTakeFirstOrThrow()
  expect(Number(worked.steps)).toBeGreaterThan(20)
})
