import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { sql } from 'kysely'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { removeLeftovers } from '../../../src/platform/bulk-export/work/keeper.ts'
import { reclaimRuns } from '../../../src/platform/bulk-export/work/lease.ts'
import { CLUSTERED } from '../cluster-support/topology.ts'
import type { BucketFault, Operation } from './support/bucket-server.ts'
import { askDuckDb } from './support/readers.ts'
import { addRun, DAY, DAY_END, DAY_START, storedIds } from './support/runs.ts'
import { setExportScene } from './support/scene.ts'
import { BASE, type ExportWorld, secretBox } from './support/world.ts'

const scene = setExportScene()

async function exportedIds(world: ExportWorld, exportId: string): Promise<string[]> {
  const files = await scene.filesOf(world, exportId)
  const rows = await askDuckDb(files, 'select id from read_parquet(FILES)')
  return rows.map((row) => String(row['id'])).toSorted()
}

const error = (code: string, status: number): BucketFault => ({ kind: 'answer', status, code })
const SINGLE: Operation[] = ['put', 'head']
const MULTIPART: Operation[] = ['create-upload', 'upload-part', 'complete-upload', 'head']
/** Six processes at once are slow to answer. */
const REQUEST_LIMIT_MS = CLUSTERED ? 2000 : 300
const PASSING: [string, BucketFault][] = [
  ['500', error('InternalError', 500)],
  ['503 SlowDown', error('SlowDown', 503)],
  ['a reset before', { kind: 'reset', when: 'before' }],
  ['a reset after', { kind: 'reset', when: 'after' }],
  ['an answer that comes too late', { kind: 'delay', ms: REQUEST_LIMIT_MS + 200 }],
  ['a page of a gateway', { kind: 'answer', status: 502, body: '<html>Bad Gateway</html>' }],
]

describe('what passes by itself', () => {
  const matrixOf = (operations: readonly Operation[], faults: typeof PASSING) =>
    operations.flatMap((operation) => faults.map(([name, fault]) => ({ operation, name, fault })))

  it('leaves an export complete, whatever the operation that it strikes', async () => {
    const patient = { fileRows: 100, requestLimitMs: REQUEST_LIMIT_MS, retryDelayMs: 1 }
    const whole = { world: await scene.makeWorld({ runs: 150, settings: patient }), matrix: matrixOf(SINGLE, PASSING) }
    const inParts = {
      world: await scene.makeWorld({ runs: 150, settings: { ...patient, multipartAboveBytes: 100, uploadPartBytes: 30_000 } }),
      matrix: matrixOf(MULTIPART, PASSING.slice(0, 4)),
    }
    const failures: string[] = []
    for (const { world, matrix } of [whole, inParts]) {
      const stored = await storedIds(scene.database.db, world.projectId, DAY_START, DAY_END)
      const workers = await world.startWorkers()
      for (const { operation, name, fault } of matrix) {
        const { id } = await world.createExport({ compression: 'none', export_fields: ['id', 'inputs'] })
        // The client repeats a request by itself: three times and one more reach the attempt.
        scene.bucket.fail(operation, fault, 4)
        const ended = await world.end(id)
        if (ended.status !== 'COMPLETED' || (await exportedIds(world, id)).join() !== stored.join())
          failures.push(`${operation} ${name}: ${JSON.stringify(ended)}`)
        scene.bucket.clear()
      }
      await workers.stop()
    }
    expect(failures).toEqual([])
  }, 240_000)

  it('is retried as often as the settings say, after their delay, and then the export fails', async () => {
    const world = await scene.makeWorld({ runs: 30, settings: { retries: 3, retryDelayMs: 250 } })
    const { id } = await world.createExport()
    scene.bucket.fail('put', error('InternalError', 500), 1000)
    await world.startWorkers()
    const ended = await world.end(id)
    expect(ended).toMatchObject({
      status: 'FAILED',
      status_message: expect.stringMatching(/2026-08-19 failed: bucket_unavailable: .*InternalError/),
    })
    const [run] = await world.readRuns(id)
    expect(run).toMatchObject({ status: 'FAILED', retry_number: 3, rows_exported: 0 })
    expect(Object.keys(run?.errors ?? {})).toEqual(['retry_0', 'retry_1', 'retry_2', 'retry_3'])
    expect(Date.parse(run?.finished_at ?? '') - Date.parse(run?.start_time ?? '')).toBeGreaterThan(3 * 250)
    // Its worker tidies up after it.
    await expect.poll(async () => (await world.readRuns(id))[0]?.metadata.result?.pending_upload).toBeNull()
  })

  it('includes a store that kept half of a file and said that all was well: the size tells', async () => {
    const world = await scene.makeWorld({ runs: 100 })
    const { id } = await world.createExport()
    scene.bucket.fail('put', { kind: 'cut', bytes: 1000 }, 1)
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED' })
    expect((await world.readRuns(id))[0]?.errors).toEqual({
      retry_0: expect.stringMatching(/the bucket has 1000 bytes of a file of \d+/),
    })
    expect(await exportedIds(world, id)).toEqual(await storedIds(scene.database.db, world.projectId, DAY_START, DAY_END))
  })

  it('includes a bucket that cannot be reached for a while', async () => {
    const world = await scene.makeWorld({ runs: 100, settings: { retries: 20, retryDelayMs: 300 } })
    const { id } = await world.createExport()
    await scene.bucket.down()
    await world.startWorkers()
    await expect.poll(async () => (await world.readRuns(id))[0]?.retry_number, { timeout: 20_000 }).toBeGreaterThan(0)
    await scene.bucket.up()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 100 } })
  })
})

describe('what does not pass', () => {
  it.each([
    ['AccessDenied', 403, 'Access denied'],
    ['InvalidAccessKeyId', 403, 'Key ID you provided does not exist'],
    ['NoSuchBucket', 404, 'Bucket is not valid'],
  ])('is not retried: %s', async (code, status, word) => {
    const world = await scene.makeWorld({ runs: 30, settings: { retries: 20 } })
    const { id } = await world.createExport()
    scene.bucket.fail('put', error(code, status), 1000)
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'FAILED' })
    const [run] = await world.readRuns(id)
    expect(run).toMatchObject({ status: 'FAILED', retry_number: 0 })
    expect(run?.errors).toEqual({
      retry_0: expect.stringMatching(new RegExp(`^destination: ${word}: .*fix the destination and create a new export$`)),
    })
  })

  it('is a destination that was deleted', async () => {
    const world = await scene.makeWorld({ runs: 30, settings: { retries: 20 } })
    const { id, bulk_export_destination_id } = await world.createExport()
    await scene.database.db.deleteFrom('export_destinations').where('id', '=', bulk_export_destination_id).execute()
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'FAILED' })
    const [run] = await world.readRuns(id)
    expect(run).toMatchObject({
      status: 'FAILED',
      retry_number: 0,
      errors: { retry_0: expect.stringMatching(/^destination_deleted: .*recreate the destination/) },
    })
  })

  it('ends the other runs of the export with it, and what is in the bucket already stays in the record', async (context) => {
    if (CLUSTERED) context.skip('two processes may have written the other two days before one of them fails')
    const world = await scene.makeWorld({ settings: { workers: 1, retries: 0 } })
    const place = { workspace_id: world.workspace.id, session_id: world.projectId }
    for (const day of [19, 20, 21]) await addRun(scene.database.db, { ...place, start_time: `2026-08-${day}T01:00:00Z` })
    const { id } = await world.createExport({ end_time: '2026-08-22T00:00:00Z' })
    let uploads = 0
    scene.bucket.onRequest = (operation) => {
      if (operation !== 'put') return
      uploads += 1
      if (uploads === 2) scene.bucket.fail('put', error('AccessDenied', 403), 1)
    }
    await world.startWorkers()
    const ended = await world.end(id)
    expect(ended).toMatchObject({ status: 'FAILED', progress: { runs_done: 1, rows_exported: 1 } })
    expect((await world.readRuns(id)).map(({ status }) => status).toSorted()).toEqual(['CANCELLED', 'COMPLETED', 'FAILED'])
  })

  it.each([
    ['put only', ['delete', 'head', 'get', 'abort-upload']],
    ['no delete', ['delete']],
    ['no read', ['head', 'get']],
    ['no abort', ['abort-upload']],
  ] as [string, Operation[]][])('leaves an export unharmed with the permissions: %s', async (_, denied) => {
    const world = await scene.makeWorld({ runs: 60, settings: { multipartAboveBytes: 10, uploadPartBytes: 5000 } })
    scene.bucket.deny(...denied)
    scene.bucket.fail('upload-part', error('InternalError', 500), 3)
    const ended = await world.run({ compression: 'none' })
    expect(ended).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 60 } })
    expect(await exportedIds(world, ended.id)).toEqual(await storedIds(scene.database.db, world.projectId, DAY_START, DAY_END))
  })
})

describe('a processing error', () => {
  it('is retried, and tells what it was', async () => {
    const world = await scene.makeWorld({ runs: 20 })
    const place = { workspace_id: world.workspace.id, session_id: world.projectId, start_time: `${DAY}T01:00:00Z` }
    await addRun(scene.database.db, { ...place, inputs: '{"secret": "value", broken' })
    const ended = await world.run({ format_version: 'v2_beta' })
    expect(ended).toMatchObject({ status: 'FAILED' })
    const [run] = await world.readRuns(ended.id)
    expect(run).toMatchObject({ status: 'FAILED', retry_number: 2 })
    expect(run?.errors?.['retry_2']).toMatch(/^processing: .*Malformed JSON/)
    // As text the same rows can be written.
    expect(await world.run({ format_version: 'v1' })).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 21 } })
  })
})

describe('limits of time', () => {
  it('end an attempt that takes too long; the next goes on from the checkpoint', async (context) => {
    if (CLUSTERED) context.skip('a kill may end the attempt before its time does')
    const runLimitMs = 2500
    const world = await scene.makeWorld({
      runs: 200,
      settings: { fileRows: 100, runLimitMs, requestLimitMs: 20_000, retries: 5 },
    })
    const { id } = await world.createExport()
    let uploads = 0
    scene.bucket.onRequest = (operation, key) => {
      if (operation !== 'put' || !key.endsWith('.parquet')) return
      uploads += 1
      if (uploads === 2) scene.bucket.fail('put', { kind: 'silence' }, 1)
    }
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 200 } })
    const [run] = await world.readRuns(id)
    expect(run?.errors?.['retry_0']).toContain(
      `run_timeout: the time limit of one run, ${runLimitMs / 1000} s, passed; if it persists, narrow the date range`,
    )
    expect(uploads).toBe(3)
  })

  it('end an export that takes too long, for good', async () => {
    const world = await scene.makeWorld({ runs: 100, settings: { exportLimitMs: 72 * 3_600_000, requestLimitMs: 30_000 } })
    const { id } = await world.createExport({ end_time: '2026-08-21T00:00:00Z' })
    scene.bucket.fail('put', { kind: 'silence' }, 10)
    await world.startWorkers()
    await expect
      .poll(() => scene.bucket.requests.filter(({ key }) => key.endsWith('.parquet')).length, { timeout: 20_000 })
      .toBeGreaterThan(0)
    world.clock.move(71.9 * 3_600_000)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect((await world.readExport(id)).status).toBe('RUNNING')
    world.clock.move(0.2 * 3_600_000)
    const ended = await world.end(id)
    expect(ended).toMatchObject({
      status: 'TIMEDOUT',
      status_message: expect.stringContaining('the time limit of an export, 72 h, passed'),
    })
    const runs = await world.readRuns(id)
    expect(runs.map(({ status }) => status)).toContain('TIMEDOUT')
    expect(runs[0]?.errors).toEqual({ retry_0: expect.stringMatching(/^export_timeout: /) })
    scene.bucket.clear()
    expect(await world.ask('PATCH', `${BASE}/${id}`, { status: 'Cancelled' })).toMatchObject({ status: 409 })
  })
})

describe('a worker that is lost', () => {
  it('costs no retry, but a run that loses them again and again without getting on fails', async () => {
    const world = await scene.makeWorld({ runs: 10, settings: { lossesMax: 2 } })
    const { id } = await world.createExport()
    for (const [losses, status] of [
      [1, 'CREATED'],
      [2, 'CREATED'],
      [3, 'FAILED'],
    ] as const) {
      await sql`update bulk_exports set status = 'RUNNING' where id = ${id}`.execute(scene.database.db)
      await sql`update bulk_export_runs set status = 'RUNNING', lease_owner = 'gone', lease_token = gen_random_uuid(),
        lease_expires_at = now() + interval '1 hour' where export_id = ${id}`.execute(scene.database.db)
      expect(await reclaimRuns({ db: scene.database.db, clock: world.clock, settings: world.settings, deadOwner: 'gone' })).toBe(
        1,
      )
      const [run] = await scene.database.db.selectFrom('bulk_export_runs').selectAll().where('export_id', '=', id).execute()
      expect(run).toMatchObject({ status, losses, retry_number: 0 })
    }
    expect(await world.readExport(id)).toMatchObject({
      status: 'FAILED',
      status_message: expect.stringContaining('its worker was lost 3 times'),
    })
    expect((await world.readRuns(id))[0]?.errors).toEqual({ retry_0: expect.stringContaining('was lost 3 times') })
  })
})

describe('what a run that ended badly has left in its bucket', () => {
  const AWAY = error('SlowDown', 503)
  const TIDYING: Operation[] = ['delete', 'abort-upload', 'get', 'other']

  it.each([
    ['a file', {}, 'put'],
    ['a file that went up in parts', { multipartAboveBytes: 100, uploadPartBytes: 30_000 }, 'complete-upload'],
  ] as const)('is removed once the bucket is back, whose answer was lost: %s', async (_, sizes, last) => {
    // A worker that is gone for good would leave it at once.
    const world = await scene.makeWorld({ runs: 20, settings: { ...sizes, retries: 0, leaseMs: 1500, heartbeatMs: 150 } })
    const { id } = await world.createExport()
    // The store does as it is told, nobody hears of it, and then it is away.
    scene.bucket.fail(last, { kind: 'reset', when: 'after' }, 1)
    scene.bucket.fail(['put', 'complete-upload', 'head', ...TIDYING], AWAY, 1000)
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'FAILED', status_message: expect.stringContaining('bucket_unavailable') })
    const asked = (operation: Operation) => scene.bucket.requests.filter((request) => request.operation === operation).length
    // By the client, three times: its worker has tried. And again, later.
    await expect.poll(() => asked('delete'), { timeout: 20_000 }).toBeGreaterThan(3)
    const files = async () => (await scene.bucket.keys()).filter((key) => key.includes(id))
    const [file] = await files()
    const pending = async () => (await world.readRuns(id))[0]?.metadata.result?.pending_upload
    expect(await pending()).toMatchObject({ file_path: `${scene.bucket.bucket}/${file}` })
    scene.bucket.clear()
    await expect.poll(pending, { timeout: 20_000 }).toBeNull()
    expect(await files()).toEqual([])
    expect(await world.readExport(id)).toMatchObject({ status: 'FAILED', progress: { rows_exported: 0 } })
  })

  /** Runs that failed some minutes ago, each with a file in the bucket, and the first of them the longest ago. */
  async function leaveFiles(world: ExportWorld, count: number) {
    const { db } = scene.database
    const left: { runId: string; key: string }[] = []
    for (let number = 0; number < count; number += 1) {
      const { id } = await world.createExport()
      const key = `left/${id}.parquet`
      const pending = JSON.stringify({ cursor: { time: DAY_START, id }, key, rows: 1, uploadId: 'u' })
      const ago = sql<Date>`clock_timestamp() - ${`${100 - number} seconds`}::interval`
      await db.updateTable('bulk_exports').set({ status: 'FAILED' }).where('id', '=', id).execute()
      const { id: runId } = await db
        .updateTable('bulk_export_runs')
        .set({ status: 'FAILED', pending, finished_at: ago, updated_at: ago })
        .where('export_id', '=', id)
        .returning('id')
        .executeTakeFirstOrThrow()
      await writeFile(await placeOf(key), '')
      left.push({ runId, key })
    }
    scene.bucket.clear()
    const told: Record<string, unknown>[] = []
    const log = pino({ level: 'info', base: null }, { write: (line: string) => void told.push(JSON.parse(line)) })
    const { clock, settings, metrics } = world
    return {
      left,
      told,
      /** One round of the keeper. @returns the keys that were asked for, in their order. */
      round: async () => {
        await removeLeftovers({ db, clock, settings, secretBox, rules: { allowLinkLocal: false }, metrics, log })
        const keys = scene.bucket.requests.splice(0).flatMap(({ operation, key }) => (operation === 'delete' ? [key] : []))
        return [...new Set(keys)].toSorted()
      },
      pending: async () => {
        const rows = await db.selectFrom('bulk_export_runs').select('id').where('pending', 'is not', null).execute()
        return rows.map(({ id }) => id).toSorted()
      },
      files: async () => (await scene.bucket.keys()).filter((key) => left.some((one) => one.key === key)),
      date: async (changes: { finished: string; tried: string }) => {
        const ago = (time: string) => sql<Date>`clock_timestamp() - ${time}::interval`
        const set = { finished_at: ago(changes.finished), updated_at: ago(changes.tried) }
        await db.updateTable('bulk_export_runs').set(set).where('pending', 'is not', null).execute()
      },
    }
  }
  const placeOf = async (key: string) => {
    const place = scene.bucket.fileOf(key)
    await mkdir(path.dirname(place), { recursive: true })
    return place
  }

  it('stays where the bucket says no, and is not asked for again', async () => {
    const { left, round, pending, files, told } = await leaveFiles(await scene.makeWorld(), 1)
    scene.bucket.deny('delete')
    expect(await round()).toEqual([left[0]!.key])
    expect(await pending()).toEqual([])
    expect(await round()).toEqual([])
    expect(await files()).toEqual([left[0]!.key])
    expect(told).toMatchObject([{ level: 40, exportRunId: left[0]!.runId, file: left[0]!.key, code: 'AccessDenied' }])
  })

  it('is tried again while an upload that was begun could not be aborted', async () => {
    const { left, round, pending, date } = await leaveFiles(await scene.makeWorld(), 1)
    scene.bucket.fail('abort-upload', AWAY, 3)
    await round()
    expect(await pending()).toEqual([left[0]!.runId])
    await date({ finished: '3 minutes', tried: '2 minutes' })
    await round()
    expect(await pending()).toEqual([])
  })

  it('of a bucket that stays away keeps nothing of another waiting', async () => {
    const { left, round, pending, files } = await leaveFiles(await scene.makeWorld(), 12)
    const keys = left.map(({ key }) => key)
    scene.bucket.fail('delete', AWAY, 30)
    expect(await round()).toEqual(keys.slice(0, 10).toSorted())
    expect(await round()).toEqual(keys.slice(10).toSorted())
    expect(await round()).toEqual([])
    expect(await pending()).toEqual(
      left
        .slice(0, 10)
        .map(({ runId }) => runId)
        .toSorted(),
    )
    expect(await files()).toEqual(keys.slice(0, 10).toSorted())
  })

  it('is asked for less and less often, and after a week no more', async () => {
    const { left, round, pending, files, date, told } = await leaveFiles(await scene.makeWorld(), 1)
    const { key, runId } = left[0]!
    scene.bucket.fail('delete', AWAY, 1000)
    expect(await round()).toEqual([key])
    for (const [finished, tried, due] of [
      ['40 minutes', '18 minutes', false],
      ['40 minutes', '22 minutes', true],
      ['3 days', '50 minutes', false],
      ['3 days', '70 minutes', true],
      ['167 hours', '70 minutes', true],
    ] as const) {
      await date({ finished, tried })
      expect([finished, tried, await round()]).toEqual([finished, tried, due ? [key] : []])
      expect(await pending()).toEqual([runId])
    }
    expect(told).toEqual([])
    await date({ finished: '169 hours', tried: '70 minutes' })
    expect(await round()).toEqual([key])
    expect(await pending()).toEqual([])
    expect(told).toMatchObject([{ level: 40, exportRunId: runId, file: key, code: expect.stringContaining('SlowDown') }])
    await date({ finished: '170 hours', tried: '70 minutes' })
    expect(await round()).toEqual([])
    expect(await files()).toEqual([key])
  })
})
