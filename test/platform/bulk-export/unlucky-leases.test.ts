import { setTimeout as sleep } from 'node:timers/promises'
import { type KyselyPlugin, type RootOperationNode, sql } from 'kysely'
import { describe, expect, it, vi } from 'vitest'
import { openBucket } from '../../../src/platform/bulk-export/bucket/bucket.ts'
import { LeaseLost } from '../../../src/platform/bulk-export/work/checkpoint.ts'
import { holdLease } from '../../../src/platform/bulk-export/work/hold.ts'
import { type Claim, claimRun } from '../../../src/platform/bulk-export/work/lease.ts'
import type { ExportSettings } from '../../../src/platform/bulk-export/settings.ts'
import { connectDatabase } from '../../../src/platform/database/connect.ts'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { SILENT } from '../support/database.ts'
import { keepAliveOf } from '../support/keep-alive.ts'
import { ACCESS_KEY } from './support/bucket-server.ts'
import { startForgetfulDatabase } from './support/forgetful-database.ts'
import { setExportScene } from './support/scene.ts'

const scene = setExportScene()
/** Longer than any test waits: a run that waits for the end of its lease shows. */
const LONG = { leaseMs: 180_000, heartbeatMs: 5000 } satisfies Partial<ExportSettings>
const PATIENCE_MS = 50_000

/** Stops this thread, as a machine does that has too much to do. */
function stall(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

/** Stalls, once, between the two halves of a transaction: what has locked a row stores nothing for so long. */
function stallsInTransaction(milliseconds: number): KyselyPlugin & { armed: boolean } {
  const locks = (node: RootOperationNode) => node.kind === 'SelectQueryNode' && (node.endModifiers?.length ?? 0) > 0
  let locked = false
  const plugin = {
    armed: false,
    transformQuery: ({ node }: { node: RootOperationNode }) => {
      if (plugin.armed && locked && node.kind === 'UpdateQueryNode') {
        plugin.armed = false
        stall(milliseconds)
      }
      locked = locks(node)
      return node
    },
    transformResult: async <T>({ result }: { result: T }) => result,
  }
  return plugin as unknown as KyselyPlugin & { armed: boolean }
}

describe('an export run whose worker is out of luck', () => {
  it('is put down when the database ended the transaction of a worker that stalled: nobody waits for the lease', async (context) => {
    if (CLUSTERED) context.skip('it stalls the workers of this process')
    const stalls = stallsInTransaction(6000)
    const database = { ...scene.database, db: scene.database.db.withPlugin(stalls) }
    const world = await scene.makeWorld({ database, runs: 20, settings: { ...LONG, workers: 1 } })
    const { id } = await world.createExport()
    scene.bucket.fail('put', { kind: 'answer', status: 500, code: 'InternalError' }, 3)
    scene.bucket.onRequest = (operation) => {
      if (operation !== 'put') return
      scene.bucket.onRequest = null
      stalls.armed = true
    }
    await world.startWorkers()
    expect(await world.end(id, PATIENCE_MS)).toMatchObject({ status: 'COMPLETED' })
    expect(stalls.armed).toBe(false)
    const [run] = await world.readRuns(id)
    // The failure counts as one, and the stall as none.
    expect(run).toMatchObject({ status: 'COMPLETED', retry_number: 1 })
  })

  it('is free again at once when it was taken, and the answer of the database was lost', async () => {
    const world = await scene.makeWorld({ settings: LONG })
    const forgetful = await startForgetfulDatabase(scene.database.url)
    const db = await connectDatabase({ url: forgetful.url, log: SILENT })
    try {
      const { id } = await world.createExport()
      const claim = () => claimRun({ db, clock: world.clock, settings: world.settings, owner: 'unlucky' })
      forgetful.forgetNextCommit()
      await expect(claim()).rejects.toThrow(/connection/i)
      expect(forgetful.forgotten()).toBe(1)
      expect((await claim())?.export.id).toBe(id)
    } finally {
      await db.destroy()
      await forgetful.stop()
    }
  })

  it('is left when its lease ends, also when the question for more time is not answered', async () => {
    const world = await scene.makeWorld({ settings: { leaseMs: 2000, heartbeatMs: 200 } })
    const { db } = scene.database
    const { settings, clock } = world
    await world.createExport()
    const claim = (await claimRun({ db, clock, settings, owner: 'unlucky' })) as Claim
    const began = performance.now()
    await db.transaction().execute(async (trx) => {
      // Whoever asks about the run waits.
      await sql`select 1 from bulk_export_runs where id = ${claim.run.id} for update`.execute(trx)
      const held = holdLease({
        db,
        claim,
        settings,
        stopping: new AbortController().signal,
        hand: () => () => undefined,
        work: (signal) => sleep(PATIENCE_MS, undefined, { signal }),
      })
      await expect(held).rejects.toThrow(LeaseLost)
    })
    expect(performance.now() - began).toBeLessThan(PATIENCE_MS / 2)
  })

  it('is kept after its process slept until the lease was over, also when news comes before the first answer', async () => {
    const world = await scene.makeWorld({ settings: LONG })
    const { db } = scene.database
    const { clock, settings } = world
    await world.createExport()
    const claim = (await claimRun({ db, clock, settings: { ...settings, leaseMs: 1 }, owner: 'sleepy' })) as Claim
    const stopping = new AbortController()
    const work = Promise.withResolvers<string>()
    let look = () => {}
    const held = holdLease({
      db,
      claim,
      settings,
      stopping: stopping.signal,
      hand: (mine) => {
        look = mine
        return () => undefined
      },
      work: (signal) => {
        signal.addEventListener('abort', () => work.reject(signal.reason as Error))
        return work.promise
      },
    })
    held.catch(() => undefined)
    const now = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + LONG.leaseMs)
    try {
      await db.transaction().execute(async (trx) => {
        await sql`select 1 from bulk_export_runs where id = ${claim.run.id} for update`.execute(trx)
        // The question of the interval, and the news.
        look()
        look()
        await sleep(50)
      })
      const isRenewed = () =>
        db
          .selectFrom('bulk_export_runs')
          .select('id')
          .where('id', '=', claim.run.id)
          .where('lease_expires_at', '>', sql<Date>`now()`)
          .execute()
      await expect.poll(isRenewed).toHaveLength(1)
    } finally {
      now.mockRestore()
    }
    work.resolve('written')
    expect(await held).toBe('written')
  })

  it('is taken back while another bucket is silent', async (context) => {
    if (CLUSTERED) context.skip('it looks at the keeper of this process')
    const world = await scene.makeWorld({ runs: 5, settings: { leaseMs: 10_000, heartbeatMs: 1000, requestLimitMs: 60_000 } })
    const { db } = scene.database
    const { clock, settings } = world
    const left = await world.createExport()
    const pending = JSON.stringify({ cursor: { time: '2026-08-19T00:00:00Z', id: left.id }, key: 'left', rows: 1, uploadId: 'u' })
    const long = new Date(Date.now() - 60_000)
    await db.updateTable('bulk_exports').set({ status: 'FAILED' }).where('id', '=', left.id).execute()
    await db
      .updateTable('bulk_export_runs')
      .set({ status: 'FAILED', pending, updated_at: long })
      .where('export_id', '=', left.id)
      .execute()
    scene.bucket.fail(['abort-upload', 'delete', 'get', 'other'], { kind: 'silence' }, 100)
    const workers = await world.startWorkers()
    try {
      await expect.poll(() => scene.bucket.requests.length, { timeout: PATIENCE_MS }).toBeGreaterThan(0)
      const { id } = await world.createExport()
      // Taken by nobody that works on it; its lease ends soon.
      await claimRun({ db, clock, settings: { ...settings, leaseMs: 1 }, owner: 'lost' })
      expect(await world.end(id, PATIENCE_MS)).toMatchObject({ status: 'COMPLETED' })
    } finally {
      await db.deleteFrom('bulk_exports').where('id', '=', left.id).execute()
      await scene.bucket.down()
      await workers.stop()
      await scene.bucket.up()
    }
  })
})

it('a writer finds out that the machine of the database is gone, whatever it waits for', async (context) => {
  if (process.platform !== 'linux') context.skip('the table of connections is that of Linux')
  if (CLUSTERED) context.skip('its writers come and go with their processes')
  const world = await scene.makeWorld({ runs: 20 })
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  await world.createExport()
  scene.bucket.onRequest = (operation) => (operation === 'put' ? released : undefined)
  await world.startWorkers()
  try {
    const timers = async () => {
      const { rows } = await sql<{ port: number }>`
        select client_port as port from pg_stat_activity where application_name = 'deploy-agent-server export'`.execute(
        scene.database.db,
      )
      return rows.flatMap(({ port }) => keepAliveOf({ from: port }))
    }
    // Of one look: while what was sent waits for its receipt, the kernel shows that timer instead.
    const areSoon = async () => (await timers()).map((seconds) => seconds !== null && seconds <= 10)
    await expect.poll(areSoon, { timeout: PATIENCE_MS }).toEqual([true])
  } finally {
    release()
  }
})

describe('an upload that is stopped', () => {
  it('ends soon, also when the bucket is silent', async (context) => {
    if (CLUSTERED) context.skip('it needs no platform')
    const rules = { allowLinkLocal: false }
    const config = {
      bucket_name: scene.bucket.bucket,
      endpoint_url: scene.bucket.url,
      region: 'eu-central-1',
      prefix: '',
    } as never
    const bucket = openBucket({ config, credentials: ACCESS_KEY, rules, requestLimitMs: 60_000, connectLimitMs: 1000 })
    const stopping = new AbortController()
    scene.bucket.fail(['upload-part', 'abort-upload', 'get', 'other'], { kind: 'silence' }, 100)
    const upload = bucket.upload({
      file: import.meta.filename,
      bytes: 1000,
      key: 'stopped',
      multipartAboveBytes: 1,
      uploadPartBytes: 1000,
      begun: async () => undefined,
      completing: async () => undefined,
      signal: stopping.signal,
    })
    upload.catch(() => undefined)
    await expect.poll(() => scene.bucket.requests.some(({ operation }) => operation === 'upload-part')).toBe(true)
    const began = performance.now()
    stopping.abort()
    await expect(upload).rejects.toThrow(/abort/i)
    expect(performance.now() - began).toBeLessThan(PATIENCE_MS)
    bucket.close()
  })
})
