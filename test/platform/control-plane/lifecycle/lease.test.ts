import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { pino } from 'pino'
import { describe, expect, test, vi } from 'vitest'
import {
  type Claim,
  claimRevision,
  heartbeat,
  HEARTBEAT_MS,
  LEASE_MS,
  MAX_LOSSES,
  reclaimRevisions,
} from '../../../../src/platform/control-plane/lifecycle/lease.ts'
import { settle, settlementOf, settleStubbornly } from '../../../../src/platform/control-plane/lifecycle/settle.ts'
import { hold, WorkStopped } from '../../../../src/platform/control-plane/lifecycle/work.ts'
import { interruptRevision } from '../../../../src/platform/control-plane/revisions.ts'
import { StartFailure } from '../../../../src/platform/control-plane/runtimes/runtime.ts'
import { connectDatabase } from '../../../../src/platform/database/connect.ts'
import { startForgetfulDatabase } from '../../bulk-export/support/forgetful-database.ts'
import { claimsOf } from '../../lifecycle-support/claims.ts'
import { expireLease, makeRevision, statusOf, stepsOf } from '../../lifecycle-support/rows.ts'
import { setLifecycleScene } from '../../lifecycle-support/scene.ts'
import { ago, MINUTE } from '../../lifecycle-support/time.ts'
import { SILENT } from '../../support/database.ts'

const scene = setLifecycleScene()
const { claim, building } = claimsOf(scene)

describe('leases', () => {
  test('a worker that slept past its lease cannot commit, nor renew it, once another has taken over', async () => {
    const { id, claim: first } = await building()
    await expireLease(scene.db, id)
    expect(await reclaimRevisions(scene.db)).toBe(1)
    const second = await claim('b')
    expect(second.id).toBe(id)
    expect(await settle(scene.db, first, { to: 'AWAITING_DEPLOY', reason: 'built' })).toBe('lost')
    expect(await heartbeat(scene.db, first)).toBe('lost')
    expect(await settle(scene.db, second, { to: 'AWAITING_DEPLOY', reason: 'built' })).toBe('settled')
    expect((await stepsOf(scene.db, id)).filter((step) => step.endsWith('AWAITING_DEPLOY'))).toHaveLength(1)
  })

  test('a worker past its lease cannot commit although nobody has taken over yet', async () => {
    const { id, claim } = await building()
    await expireLease(scene.db, id)
    expect(await settle(scene.db, claim, { to: 'AWAITING_DEPLOY', reason: 'built' })).toBe('lost')
    expect(await heartbeat(scene.db, claim), 'one that is still wanted may go on').toBe('go on')
    expect(await settle(scene.db, claim, { to: 'AWAITING_DEPLOY', reason: 'built' })).toBe('settled')
  })

  test('two workers never take the same revision', async () => {
    await makeRevision(scene.db, scene.deploymentId, { status: 'AWAITING_BUILD' })
    const take = (_: unknown, worker: number) =>
      claimRevision(scene.db, { from: 'AWAITING_BUILD', to: 'BUILDING', owner: `${worker}` })
    const claims = await Promise.all(Array.from({ length: 8 }, take))
    expect(claims.filter((one) => one !== null)).toHaveLength(1)
  })

  test('one that was taken is free again at once when the answer of the database was lost', async () => {
    const forgetful = await startForgetfulDatabase(scene.database.url)
    const db = await connectDatabase({ url: forgetful.url, log: SILENT })
    try {
      const take = () => claimRevision(db, { from: 'AWAITING_BUILD', to: 'BUILDING', owner: 'unlucky' })
      const id = await makeRevision(scene.db, scene.deploymentId, { status: 'AWAITING_BUILD' })
      forgetful.forgetNextCommit()
      await expect(take()).rejects.toThrow(/connection/i)
      expect(forgetful.forgotten()).toBe(1)
      expect(await statusOf(scene.db, id)).toMatchObject({ status: 'AWAITING_BUILD', losses: 0 })
      expect((await take())?.id).toBe(id)
    } finally {
      await db.destroy()
      await forgetful.stop()
    }
  })

  test('one that loses every worker fails, and the next has its turn', async () => {
    const { id, waits } = await building({ losses: MAX_LOSSES })
    await expireLease(scene.db, id)
    await reclaimRevisions(scene.db)
    expect(await statusOf(scene.db, id)).toEqual({
      status: 'BUILD_FAILED',
      message: 'its worker was lost 4 times while it was BUILDING',
      losses: 4,
    })
    expect((await statusOf(scene.db, waits)).status).toBe('AWAITING_BUILD')
  })

  test('at the start everything of this node is taken back at once, and nothing of another', async () => {
    const { id } = await building()
    expect(await reclaimRevisions(scene.db, { deadOwner: 'b' })).toBe(0)
    expect(await reclaimRevisions(scene.db, { deadOwner: 'a' })).toBe(1)
    expect(await statusOf(scene.db, id)).toMatchObject({ status: 'AWAITING_BUILD', losses: 1 })
  })

  test('an interrupted one whose worker is lost ends, and is not taken up again', async () => {
    const { id, waits } = await building()
    await interruptRevision(scene.db, { deploymentId: scene.deploymentId, revisionId: id })
    await expireLease(scene.db, id)
    await reclaimRevisions(scene.db)
    expect((await statusOf(scene.db, id)).status).toBe('INTERRUPTED')
    expect((await statusOf(scene.db, waits)).status).toBe('AWAITING_BUILD')
  })
})

describe('work under a claim', () => {
  const endless = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }))
  const hands = (stopping = new AbortController().signal) => ({
    inHand: new Set<{ revisionId: string; look(): void }>(),
    stopping,
  })

  test('is stopped by an interruption as soon as it looks', async () => {
    const { id, claim } = await building()
    const mine = hands()
    const held = hold(scene.db, { claim, limitMs: MINUTE, hands: mine, work: endless })
    await interruptRevision(scene.db, { deploymentId: scene.deploymentId, revisionId: id })
    for (const hand of mine.inHand) hand.look()
    await expect(held).rejects.toMatchObject({ reason: 'interrupted', abandoned: false })
    expect(mine.inHand.size).toBe(0)
  })

  test('is stopped by its time limit, by the end of the lease, and by a stop that was asked for before it began', async () => {
    const { id, claim: mine } = await building()
    await expect(hold(scene.db, { claim: mine, limitMs: 20, hands: hands(), work: endless })).rejects.toMatchObject({
      reason: 'time limit',
    })
    const stopped = { claim: mine, limitMs: MINUTE, hands: hands(AbortSignal.abort()), work: endless }
    await expect(hold(scene.db, stopped)).rejects.toMatchObject({ reason: 'stopping' })
    await expireLease(scene.db, id)
    await reclaimRevisions(scene.db)
    const late = hands()
    const held = hold(scene.db, { claim: mine, limitMs: MINUTE, hands: late, work: endless })
    for (const hand of late.inHand) hand.look()
    await expect(held).rejects.toMatchObject({ reason: 'lost' })
  })

  test('is stopped before its lease is another’s when the database is asked for more time and does not answer', async () => {
    const { id, claim: mine } = await building()
    const late = hands()
    const held = hold(scene.db, { claim: mine, limitMs: MINUTE, hands: late, work: endless })
    held.catch(() => undefined)
    const now = vi.spyOn(Date, 'now')
    const began = Date.now()
    const looksAfter = (ms: number) => {
      now.mockReturnValue(began + ms)
      for (const hand of late.inHand) hand.look()
    }
    try {
      await scene.db.transaction().execute(async (trx) => {
        // Whoever asks about the revision waits.
        await sql`select 1 from revisions where id = ${id} for update`.execute(trx)
        for (let at = 0; at < LEASE_MS - HEARTBEAT_MS; at += HEARTBEAT_MS) looksAfter(at)
        await sleep(50)
        expect(late.inHand.size, 'it may be answered yet').toBe(1)
        looksAfter(LEASE_MS - HEARTBEAT_MS + 1000)
        await expect.poll(() => late.inHand.size).toBe(0)
      })
    } finally {
      now.mockRestore()
    }
    await expect(held).rejects.toMatchObject({ reason: 'lost', abandoned: false })
  })

  test('goes on after the process slept until its lease was over, also when news comes before the first answer', async () => {
    const { id, claim: mine } = await building()
    await expireLease(scene.db, id)
    const late = hands()
    const done = Promise.withResolvers<string>()
    const work = (signal: AbortSignal) => {
      signal.addEventListener('abort', () => done.reject(signal.reason as Error))
      return done.promise
    }
    const held = hold(scene.db, { claim: mine, limitMs: MINUTE, hands: late, work })
    held.catch(() => undefined)
    const now = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + LEASE_MS)
    try {
      await scene.db.transaction().execute(async (trx) => {
        await sql`select 1 from revisions where id = ${id} for update`.execute(trx)
        // The question of the interval, and the news.
        for (let looks = 0; looks < 2; looks += 1) for (const hand of late.inHand) hand.look()
        await sleep(50)
        expect(late.inHand.size).toBe(1)
      })
      const isRenewed = () =>
        scene.db
          .selectFrom('revisions')
          .select('id')
          .where('id', '=', id)
          .where('lease_expires_at', '>', sql<Date>`now()`)
          .execute()
      await expect.poll(isRenewed).toHaveLength(1)
    } finally {
      now.mockRestore()
    }
    done.resolve('built')
    expect(await held).toBe('built')
  })

  test('that does not end is given up, so that the queue moves on', async () => {
    const { claim } = await building()
    const deaf = () => new Promise<never>(() => undefined)
    const held = hold(scene.db, { claim, limitMs: 10, hands: hands(), work: deaf, endLimitMs: 30 })
    await expect(held).rejects.toMatchObject({ reason: 'time limit', abandoned: true })
  })

  test('that fails by itself tells its own error', async () => {
    const { claim } = await building()
    await expect(
      hold(scene.db, { claim, limitMs: MINUTE, hands: hands(), work: () => Promise.reject(new Error('npm')) }),
    ).rejects.toThrow('npm')
  })
})

describe('the end of a worker’s work', () => {
  test('an acknowledged interruption counts, also when the work was done a moment later', async () => {
    const { id, claim } = await building()
    await interruptRevision(scene.db, { deploymentId: scene.deploymentId, revisionId: id })
    expect(await settle(scene.db, claim, { to: 'AWAITING_DEPLOY', reason: 'built' })).toBe('interrupted')
    expect(await settle(scene.db, claim, { to: 'INTERRUPTED', reason: 'interrupted by a user' })).toBe('settled')
  })

  test('the step, what belongs to it and the next one’s turn are one transaction', async () => {
    const { id, waits, claim } = await building()
    const fails = settle(scene.db, claim, { to: 'BUILD_FAILED', reason: 'x', also: () => Promise.reject(new Error('no')) })
    await expect(fails).rejects.toThrow('no')
    expect((await statusOf(scene.db, id)).status).toBe('BUILDING')
    expect((await statusOf(scene.db, waits)).status).toBe('QUEUED')
    await settle(scene.db, claim, { to: 'BUILD_FAILED', reason: 'npm ci exited with code 1' })
    expect(await statusOf(scene.db, id)).toMatchObject({ status: 'BUILD_FAILED', message: 'npm ci exited with code 1' })
    expect((await statusOf(scene.db, waits)).status).toBe('AWAITING_BUILD')
  })

  test('a step that is refused for good is not tried again', async () => {
    const { claim } = await building()
    let tried = 0
    const also = () => {
      tried += 1
      return Promise.reject(new StartFailure('it ended'))
    }
    await expect(settleStubbornly(scene.db, claim, { to: 'AWAITING_DEPLOY', reason: 'x', also }, SILENT)).rejects.toThrow(
      'it ended',
    )
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

describe('the platform’s log', () => {
  test('has one line for each end of a revision, once it is committed, and none for its steps', async () => {
    const written: string[] = []
    const log = pino({ level: 'info', base: null }, { write: (line: string) => void written.push(line) })
    const { id, waits, claim } = await building()
    const never = { to: 'BUILD_FAILED', reason: 'x', also: () => Promise.reject(new Error('no')) } as const
    await expect(settle(scene.db, claim, never, log)).rejects.toThrow('no')
    expect(written).toEqual([])
    await scene.db
      .updateTable('revisions')
      .set({ created_at: ago(2) })
      .where('id', '=', id)
      .execute()
    expect(await settle(scene.db, claim, { to: 'BUILD_FAILED', reason: 'npm ci exited with code 1' }, log)).toBe('settled')
    await interruptRevision(scene.db, { deploymentId: scene.deploymentId, revisionId: waits, log })
    const { name } = await scene.db
      .selectFrom('deployments')
      .select('name')
      .where('id', '=', scene.deploymentId)
      .executeTakeFirstOrThrow()
    const told = written.map((line) => JSON.parse(line) as { seconds: number })
    expect(told).toMatchObject([
      { deployment: name, revisionId: id, status: 'BUILD_FAILED', msg: 'revision ended' },
      { deployment: name, revisionId: waits, status: 'INTERRUPTED', msg: 'revision ended' },
    ])
    expect(Math.round((told[0]?.seconds ?? 0) / 60)).toBe(2)
  })

  test('has the text of others escaped', async () => {
    const written: string[] = []
    const log = pino({ level: 'info', base: null }, { write: (line: string) => void written.push(line) })
    const name = 'a\n{"level":30,"msg":"revision ended"}\u001b[2J'
    await scene.db.updateTable('deployments').set({ name }).where('id', '=', scene.deploymentId).execute()
    const { claim } = await building()
    await settle(scene.db, claim, { to: 'BUILD_FAILED', reason: 'x' }, log)
    expect(written).toHaveLength(1)
    expect(written[0]).toMatch(/^[\x20-\x7e]+\n$/)
    expect(JSON.parse(written[0] ?? '')).toMatchObject({ deployment: name })
  })
})
