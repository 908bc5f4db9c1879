import { pino } from 'pino'
import { expect, it } from 'vitest'
import { reclaimRuns } from '../../../src/platform/bulk-export/work/lease.ts'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { setExportScene } from './support/scene.ts'

const scene = setExportScene()

function memory() {
  const written: string[] = []
  const log = pino({ level: 'info', base: null }, { write: (line: string) => void written.push(line) })
  const said = (text: string) =>
    written.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ msg }) => String(msg).startsWith(text))
  return { log, ends: () => said('export run ended'), leaves: () => said('export run left') }
}

it('the log tells of each export run once, when it has ended, and how', async (context) => {
  if (CLUSTERED) context.skip('it reads the log of the workers in this process')
  const { log, ends } = memory()
  const world = await scene.makeWorld({ runs: 20, log, settings: { retries: 0 } })
  const good = await world.createExport()
  await world.startWorkers()
  expect(await world.end(good.id)).toMatchObject({ status: 'COMPLETED' })
  await expect.poll(ends).toHaveLength(1)
  scene.bucket.fail('put', { kind: 'answer', status: 403, code: 'AccessDenied' }, 10)
  const bad = await world.createExport()
  expect(await world.end(bad.id)).toMatchObject({ status: 'FAILED' })
  await expect.poll(ends).toHaveLength(2)
  const runOf = async (id: string) => (await world.readRuns(id))[0]?.id
  const seconds = expect.any(Number)
  const told = { msg: 'export run ended', seconds, lateRows: 0 }
  expect(ends()).toMatchObject([
    { ...told, exportId: good.id, exportRunId: await runOf(good.id), status: 'COMPLETED', exportStatus: 'COMPLETED', rows: 20 },
    { ...told, exportId: bad.id, exportRunId: await runOf(bad.id), status: 'FAILED', exportStatus: 'FAILED', rows: 0 },
  ])
})

it('the log tells of no run that waits when its export ends', async (context) => {
  if (CLUSTERED) context.skip('it reads the log of the workers in this process')
  const { log, ends } = memory()
  const world = await scene.makeWorld({ runs: 20, log, settings: { retries: 0, workers: 1 } })
  // Of five days only the third has runs, and its file is refused.
  const { id } = await world.createExport({ start_time: '2026-08-17T00:00:00Z', end_time: '2026-08-22T00:00:00Z' })
  scene.bucket.fail('put', { kind: 'answer', status: 403, code: 'AccessDenied' }, 10)
  await world.startWorkers()
  expect(await world.end(id)).toMatchObject({ status: 'FAILED' })
  expect((await world.readRuns(id)).map(({ status }) => status)).toEqual([
    'COMPLETED',
    'COMPLETED',
    'FAILED',
    'CANCELLED',
    'CANCELLED',
  ])
  await expect.poll(() => ends().map(({ status }) => status)).toEqual(['COMPLETED', 'COMPLETED', 'FAILED'])
})

it('the log tells of a run once, also when one of its workers slept until another had ended it', async (context) => {
  if (CLUSTERED) context.skip('it reads the log of the workers in this process')
  const { log, ends, leaves } = memory()
  // Heartbeats so rare that the first worker learns of nothing.
  const world = await scene.makeWorld({ runs: 20, log, settings: { leaseMs: 180_000, heartbeatMs: 60_000, workers: 1 } })
  const { db } = scene.database
  const { id } = await world.createExport()
  const slept = Promise.withResolvers<void>()
  let asleep = false
  scene.bucket.onRequest = (operation) => {
    if (operation !== 'put' || asleep) return
    asleep = true
    return slept.promise
  }
  const sleepy = await world.startWorkers({ owner: 'sleepy' })
  await expect.poll(() => asleep).toBe(true)
  expect(await reclaimRuns({ db, clock: world.clock, settings: world.settings, deadOwner: 'sleepy' })).toBe(1)
  await world.startWorkers({ owner: 'next' })
  expect(await world.end(id)).toMatchObject({ status: 'COMPLETED' })
  slept.resolve()
  await expect.poll(leaves, { timeout: 10_000 }).toHaveLength(1)
  await sleepy.stop()
  expect(ends()).toMatchObject([{ exportId: id, status: 'COMPLETED', rows: 20 }])
})
