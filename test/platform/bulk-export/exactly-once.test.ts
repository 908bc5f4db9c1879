import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startHesitantDatabase } from './support/hesitant-database.ts'
import { type KillableWorker, startKillableWorker } from './support/killable-worker.ts'
import { askDuckDb } from './support/readers.ts'
import { addRun, DAY, DAY_END, DAY_START, storedIds } from './support/runs.ts'
import { setExportScene } from './support/scene.ts'
import type { ExportWorld } from './support/world.ts'

/** How often a worker is killed; the suite's default keeps it short. */
const KILLS = Number(process.env['EXPORT_KILLS'] || 20)

const scene = setExportScene()
const workers: KillableWorker[] = []
let spool: string

beforeAll(async () => {
  spool = await mkdtemp(path.join(tmpdir(), 'kill-'))
})
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()))
})
afterAll(() => rm(spool, { recursive: true, force: true }))

function startWorker(world: ExportWorld, { owner, logLevel }: { owner: string; logLevel?: string }): KillableWorker {
  const orders = { databaseUrl: scene.database.url, spool: path.join(spool, owner), owner, settings: world.settings }
  const worker = startKillableWorker({ ...orders, ...(logLevel === undefined ? {} : { logLevel }) })
  workers.push(worker)
  return worker
}

/** The export's files are exactly the bucket's, and they hold exactly these runs, each once. */
async function expectExactly(world: ExportWorld, exportId: string, ids: readonly string[]): Promise<void> {
  const rows = await askDuckDb(await scene.filesOf(world, exportId), 'select id from read_parquet(FILES)')
  expect(rows.map((row) => String(row['id'])).toSorted()).toEqual(ids)
  const runs = await world.readRuns(exportId)
  expect(runs.reduce((sum, run) => sum + run.rows_exported, 0)).toBe(ids.length)
  expect(runs.map((run) => run.metadata.result?.pending_upload ?? null)).toEqual(runs.map(() => null))
}

describe('exactly once', () => {
  it(
    `holds for both formats when the worker is killed ${KILLS} times at random moments`,
    async () => {
      const world = await scene.makeWorld({
        runs: 3000,
        settings: { fileRows: 60, leaseMs: 1000, heartbeatMs: 100, lossesMax: 10_000 },
      })
      const ids = await storedIds(scene.database.db, world.projectId, DAY_START, DAY_END)
      const made: string[] = []
      const makeBoth = async () => {
        for (const format_version of ['v1', 'v2_beta'])
          made.push((await world.createExport({ format_version, compression: 'snappy' })).id)
      }
      await makeBoth()
      let killedAtWork = 0
      for (let kill = 0; kill < KILLS; kill += 1) {
        const unfinished = await Promise.all(
          made.slice(-2).map(async (id) => (await world.readExport(id)).status !== 'COMPLETED'),
        )
        if (!unfinished.some(Boolean)) await makeBoth()
        // By turns the same name, whose runs are taken back at once, and a new one, which has to wait for the lease to end.
        const worker = startWorker(world, { owner: kill % 2 === 0 ? 'same' : `other-${kill}` })
        await worker.ready
        await sleep(Math.random() * 1500)
        const { rows } = await sql<{
          n: number
        }>`select count(*)::int as n from bulk_export_runs where lease_token is not null`.execute(scene.database.db)
        if ((rows[0]?.n ?? 0) > 0) killedAtWork += 1
        await worker.kill()
      }
      expect(killedAtWork).toBeGreaterThan(KILLS / 2)
      await startWorker(world, { owner: 'last' }).ready
      for (const id of made) {
        expect(await world.end(id, 120_000)).toMatchObject({ status: 'COMPLETED' })
        await expectExactly(world, id, ids)
      }
    },
    60_000 + KILLS * 6000,
  )

  it('holds when a worker sleeps past its lease: it cannot commit any more', async () => {
    const world = await scene.makeWorld({ runs: 400, settings: { fileRows: 100, leaseMs: 1200, heartbeatMs: 200 } })
    const ids = await storedIds(scene.database.db, world.projectId, DAY_START, DAY_END)
    const { id } = await world.createExport()
    const sleeper = startWorker(world, { owner: 'sleeper', logLevel: 'info' })
    const [asleep, awake] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let uploads = 0
    scene.bucket.onRequest = async (operation, key) => {
      if (operation !== 'put' || !key.endsWith('.parquet')) return
      uploads += 1
      if (uploads === 2) {
        // In the middle of its second upload; the store gets that only when another worker is past it.
        sleeper.child.kill('SIGSTOP')
        await asleep.promise
      }
      if (uploads === 4) await awake.promise
    }
    await expect.poll(() => uploads, { timeout: 20_000 }).toBe(2)
    await world.startWorkers()
    // The other one has written the second part, and is at the third.
    await expect.poll(() => uploads, { timeout: 20_000 }).toBe(4)
    const before = await world.readRuns(id)
    expect(before[0]).toMatchObject({ status: 'RUNNING', rows_exported: 200 })
    sleeper.child.kill('SIGCONT')
    asleep.resolve()
    await expect.poll(() => sleeper.log(), { timeout: 10_000 }).toContain('in other hands')
    expect(await world.readRuns(id)).toEqual(before)
    awake.resolve()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED' })
    await expectExactly(world, id, ids)
  })

  it('fixes the set of runs when the export run starts: later ones are counted, also over a retry', async () => {
    const world = await scene.makeWorld({ runs: 300, settings: { fileRows: 100 } })
    const ids = await storedIds(scene.database.db, world.projectId, DAY_START, DAY_END)
    const place = { workspace_id: world.workspace.id, session_id: world.projectId }
    let uploads = 0
    scene.bucket.onRequest = async (operation, key) => {
      if (operation !== 'put' || !key.endsWith('.parquet')) return
      uploads += 1
      if (uploads === 2) {
        for (const at of ['00:00:00', '23:59:59', '12:00:00'])
          await addRun(scene.database.db, { ...place, start_time: `${DAY}T${at}.000001Z` })
        scene.bucket.fail('put', { kind: 'answer', status: 500, code: 'InternalError' }, 3)
      }
    }
    const ended = await world.run()
    expect(ended).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 300, late_rows: 3 } })
    expect((await world.readRuns(ended.id))[0]).toMatchObject({
      retry_number: 1,
      late_rows: 3,
      errors: { retry_0: expect.stringMatching(/^bucket_unavailable: /) },
    })
    await expectExactly(world, ended.id, ids)
  })

  it('writes a part that was under way again under its own name, with the same last row', async () => {
    const world = await scene.makeWorld({ runs: 200, settings: { fileRows: 100 } })
    const keys: string[] = []
    scene.bucket.onRequest = (operation, key) => void (operation === 'put' && key.endsWith('.parquet') && keys.push(key))
    const { id } = await world.createExport()
    // The object is there, but the worker never hears of it.
    scene.bucket.fail('put', { kind: 'reset', when: 'after' }, 3)
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 200, files_exported: 2 } })
    expect(keys.length).toBe(5)
    expect(new Set(keys).size).toBe(2)
    await expectExactly(world, id, await storedIds(scene.database.db, world.projectId, DAY_START, DAY_END))
  })

  it('ends the multipart upload of a worker that was killed', async () => {
    const world = await scene.makeWorld({
      runs: 500,
      settings: { multipartAboveBytes: 1000, uploadPartBytes: 20_000, leaseMs: 800, heartbeatMs: 100 },
    })
    const { id } = await world.createExport({ compression: 'none' })
    const victim = startWorker(world, { owner: 'victim' })
    let parts = 0
    scene.bucket.onRequest = async (operation) => {
      if (operation !== 'upload-part') return
      parts += 1
      if (parts === 3) await victim.kill()
    }
    await expect.poll(() => parts, { timeout: 20_000 }).toBe(3)
    await expect.poll(() => victim.child.signalCode).toBe('SIGKILL')
    const [run] = await scene.database.db
      .selectFrom('bulk_export_runs')
      .select(['id', 'pending'])
      .where('export_id', '=', id)
      .execute()
    expect(run?.pending).toMatchObject({ rows: 500, uploadId: expect.stringMatching(/./) })
    expect((await world.readRuns(id))[0]?.metadata.result?.pending_upload).toMatchObject({
      rows_count: 500,
      file_path: `traces/${run?.pending?.key}`,
    })
    scene.bucket.onRequest = null
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED' })
    expect(scene.bucket.requests.filter(({ operation }) => operation === 'abort-upload').map(({ key }) => key)).toEqual([
      run?.pending?.key,
    ])
    await expectExactly(world, id, await storedIds(scene.database.db, world.projectId, DAY_START, DAY_END))
  })

  it('hands its runs back when the process stops, and costs no retry', async () => {
    const world = await scene.makeWorld({ runs: 400, settings: { fileRows: 50 } })
    const { id } = await world.createExport()
    const first = await world.startWorkers()
    await expect
      .poll(async () => (await world.readExport(id)).progress.files_exported, { timeout: 20_000, interval: 10 })
      .toBeGreaterThan(0)
    await first.stop()
    const [between] = await world.readRuns(id)
    expect(between).toMatchObject({ status: 'CREATED', retry_number: 0, errors: null })
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED' })
    await expectExactly(world, id, await storedIds(scene.database.db, world.projectId, DAY_START, DAY_END))
  })

  it('believes no number of rows that the database has not said yet', async () => {
    const world = await scene.makeWorld({ runs: 300, settings: { fileRows: 100 } })
    const hesitant = await startHesitantDatabase(scene.database.url)
    const { id } = await world.createExport()
    const workers = await world.startWorkers({ databaseUrl: hesitant.url })
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED' })
    await workers.stop()
    await hesitant.stop()
    expect(hesitant.hesitated()).toBeGreaterThanOrEqual(3)
    await expectExactly(world, id, await storedIds(scene.database.db, world.projectId, DAY_START, DAY_END))
  })

  it('is not called complete when a row of the store is missing', async () => {
    const world = await scene.makeWorld({ runs: 50, settings: { retries: 0 } })
    const { id } = await world.createExport()
    // As if a part had been passed over.
    await sql`update bulk_export_runs set cursor_time = ${`${DAY}T12:00:00Z`}, cursor_id = gen_random_uuid() where export_id = ${id}`.execute(
      scene.database.db,
    )
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({
      status: 'FAILED',
      status_message: expect.stringMatching(/the store has 50 rows, and only \d+ were written/),
    })
  })

  it('keeps the order of places at one start: many runs at the same microsecond are cut by their ids', async () => {
    const world = await scene.makeWorld({ settings: { fileRows: 7 } })
    const place = { workspace_id: world.workspace.id, session_id: world.projectId, start_time: `${DAY}T08:00:00.123456Z` }
    const ids = await Promise.all(Array.from({ length: 50 }, () => addRun(scene.database.db, place)))
    const ended = await world.run()
    expect(ended.progress.files_exported).toBe(8)
    await expectExactly(world, ended.id, ids.toSorted())
  })
})
