import { pino } from 'pino'
import { expect, it } from 'vitest'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { setExportScene } from './support/scene.ts'

const scene = setExportScene()

it('the log tells of each export run once, when it has ended, and how', async (context) => {
  if (CLUSTERED) context.skip('it reads the log of the workers in this process')
  const written: string[] = []
  const log = pino({ level: 'info', base: null }, { write: (line: string) => void written.push(line) })
  const ends = () => written.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ level }) => level === 30)
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
