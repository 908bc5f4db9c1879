import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { EXPORT_RUN_STATUSES, EXPORT_STATUSES, isFinalExportStatus } from '../../../src/contract/export-status.ts'
import {
  checkpoint,
  completeRun,
  confirmHeld,
  failAttempt,
  handBack,
  LeaseLost,
} from '../../../src/platform/bulk-export/work/checkpoint.ts'
import { ExportFailure } from '../../../src/platform/bulk-export/work/failure.ts'
import { type Claim, claimRun, reclaimRuns, renewLease } from '../../../src/platform/bulk-export/work/lease.ts'
import { EXPORT_TRANSITIONS, RUN_TRANSITIONS } from '../../../src/platform/bulk-export/work/states.ts'
import { startKillableWorker } from './support/killable-worker.ts'
import { setExportScene } from './support/scene.ts'
import type { ExportWorld } from './support/world.ts'

const scene = setExportScene()

const claim = (world: ExportWorld) =>
  claimRun({ db: scene.database.db, clock: world.clock, settings: world.settings, owner: 'test' })
const days = (count: number) => ({
  start_time: '2026-01-01T00:00:00Z',
  end_time: new Date(Date.UTC(2026, 0, 1 + count)).toISOString(),
})

describe('the queue of export runs', () => {
  it('lets 45 runs of an export begin and no more, by the calendar, also when workers claim together', async () => {
    const world = await scene.makeWorld()
    const { id } = await world.createExport(days(60))
    const claims = await Promise.all(Array.from({ length: 60 }, () => claim(world)))
    const begun = claims.flatMap((one) => one ?? [])
    expect(begun.length).toBe(45)
    expect(begun.map(({ run }) => run.number).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 45 }, (_, index) => index))
    expect(new Set(begun.map(({ token }) => token)).size).toBe(45)
    expect(await world.readExport(id)).toMatchObject({ status: 'RUNNING', progress: { runs_total: 60 } })
  })

  it('lets 15 exports of a workspace run at once; the rest wait as CREATED', async () => {
    const world = await scene.makeWorld()
    const other = await scene.makeWorld()
    for (let turn = 0; turn < 18; turn += 1) await world.createExport()
    const claims = await Promise.all(Array.from({ length: 20 }, () => claim(world)))
    expect(claims.filter((one) => one !== null)).toHaveLength(15)
    const list = (await world.ask('GET', '/api/v1/bulk-exports')).body as { status: string }[]
    expect(list.filter(({ status }) => status === 'RUNNING')).toHaveLength(15)
    expect(list.filter(({ status }) => status === 'CREATED')).toHaveLength(3)
    await other.createExport()
    expect((await claim(world))?.export.workspace_id).toBe(other.workspace.id)
    const done = claims.find((one) => one !== null)
    await scene.database.db
      .updateTable('bulk_exports')
      .set({ status: 'COMPLETED' })
      .where('id', '=', done?.export.id ?? '')
      .execute()
    expect(await claim(world)).not.toBeNull()
    expect(await claim(world)).toBeNull()
  })

  it('is fair: a workspace with a little is served beside one with very much', async () => {
    const [big, small] = [await scene.makeWorld(), await scene.makeWorld()]
    for (let turn = 0; turn < 3; turn += 1) await big.createExport(days(40))
    await claim(big)
    await small.createExport(days(3))
    const served: string[] = []
    for (let turn = 0; turn < 8; turn += 1) {
      big.clock.move(1000)
      const next = await claim(big)
      served.push(next?.export.workspace_id === small.workspace.id ? 'small' : 'big')
    }
    expect(served.slice(0, 6).filter((one) => one === 'small')).toHaveLength(3)
    expect(served.slice(6)).toEqual(['big', 'big'])
  })

  it('serves all even with a single worker: the one that was served longest ago comes next', async () => {
    const [big, small] = [await scene.makeWorld(), await scene.makeWorld()]
    await big.createExport(days(40))
    await small.createExport(days(3))
    const served: string[] = []
    for (let turn = 0; turn < 6; turn += 1) {
      big.clock.move(1000)
      const next = await claim(big)
      served.push(next?.export.workspace_id === small.workspace.id ? 'small' : 'big')
      await scene.database.db
        .updateTable('bulk_export_runs')
        .set({ status: 'COMPLETED', lease_token: null })
        .where('id', '=', next?.run.id ?? '')
        .execute()
    }
    expect(served).toEqual(['big', 'small', 'big', 'small', 'big', 'small'])
  })

  it('goes on when a worker is stopped in the middle of taking a run, and holds what all others need', async () => {
    const world = await scene.makeWorld({ settings: { workers: 4, lookMs: 1 } })
    const holders = async () => {
      const { rows } = await sql<{ n: number }>`
        select count(*)::int as n from pg_locks l join pg_stat_activity a using (pid)
        where l.locktype = 'advisory' and l.granted and a.state = 'idle in transaction'`.execute(scene.database.db)
      return rows[0]?.n ?? 0
    }
    const spool = await mkdtemp(path.join(tmpdir(), 'stopped-'))
    const worker = startKillableWorker({ databaseUrl: scene.database.url, spool, owner: 'stopped', settings: world.settings })
    try {
      await worker.ready
      await expect
        .poll(
          async () => {
            worker.child.kill('SIGCONT')
            await sleep(Math.random() * 20)
            worker.child.kill('SIGSTOP')
            // What was on its way to the database when it was stopped has arrived after a moment.
            await sleep(20)
            return holders()
          },
          { timeout: 30_000, interval: 1 },
        )
        .toBe(1)
      await world.createExport()
      const began = performance.now()
      expect(await claim(world)).not.toBeNull()
      expect(performance.now() - began).toBeLessThan(30_000)
    } finally {
      worker.child.kill('SIGCONT')
      await worker.kill()
      await rm(spool, { recursive: true, force: true })
    }
  })

  it('lets a run wait until its retry is due', async () => {
    const world = await scene.makeWorld()
    const { id } = await world.createExport()
    await scene.database.db
      .updateTable('bulk_export_runs')
      .set({ not_before: new Date(world.clock.now().getTime() + 30_000) })
      .where('export_id', '=', id)
      .execute()
    expect(await claim(world)).toBeNull()
    world.clock.move(30_001)
    expect((await claim(world))?.export.id).toBe(id)
  })
})

describe('a lease', () => {
  const ways = (world: ExportWorld, claim: Claim) => {
    const { clock, settings } = world
    const { db } = scene.database
    return [
      () => confirmHeld(db, claim),
      () => checkpoint(db, claim, { rows_written: 999 }),
      () => completeRun({ db, clock }, claim, { lateRows: 0 }),
      () => failAttempt({ db, clock, settings }, claim, new ExportFailure('processing', 'x')),
      () => handBack({ db, clock }, claim),
    ]
  }
  const expire = (runId: string) =>
    scene.database.db
      .updateTable('bulk_export_runs')
      .set({ lease_expires_at: new Date(Date.now() - 1000) })
      .where('id', '=', runId)
      .execute()
  const row = (runId: string) =>
    scene.database.db.selectFrom('bulk_export_runs').selectAll().where('id', '=', runId).executeTakeFirstOrThrow()

  it('that ran out stores nothing, in no way, until it is renewed', async () => {
    const world = await scene.makeWorld()
    await world.createExport()
    const held = (await claim(world)) as Claim
    await expire(held.run.id)
    const before = await row(held.run.id)
    for (const way of ways(world, held)) await expect(way()).rejects.toThrow(LeaseLost)
    expect(await row(held.run.id)).toEqual(before)
    expect(await renewLease(scene.database.db, held, world.settings)).toBe(true)
    await confirmHeld(scene.database.db, held)
  })

  it('that is in other hands stores nothing, in no way, and is not renewed', async () => {
    const world = await scene.makeWorld()
    await world.createExport()
    const old = (await claim(world)) as Claim
    await expire(old.run.id)
    expect(await reclaimRuns({ db: scene.database.db, clock: world.clock, settings: world.settings })).toBe(1)
    const fresh = (await claim(world)) as Claim
    expect(fresh.run.id).toBe(old.run.id)
    const before = await row(old.run.id)
    for (const way of ways(world, old)) await expect(way()).rejects.toThrow(LeaseLost)
    expect(await renewLease(scene.database.db, old, world.settings)).toBe(false)
    expect(await row(old.run.id)).toEqual(before)
    await completeRun({ db: scene.database.db, clock: world.clock }, fresh, { lateRows: 0 })
    expect(await row(old.run.id)).toMatchObject({ status: 'COMPLETED' })
  })
})

describe('the state machines', () => {
  it('lead out of every status that is not final, and out of no other', () => {
    for (const [statuses, steps] of [
      [EXPORT_STATUSES, EXPORT_TRANSITIONS],
      [EXPORT_RUN_STATUSES, RUN_TRANSITIONS],
    ] as const) {
      const left: readonly string[] = [...new Set(steps.map(({ from }) => from))]
      expect(statuses.filter((status) => !left.includes(status))).toEqual(statuses.filter(isFinalExportStatus))
    }
  })
})
