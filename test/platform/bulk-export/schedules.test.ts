import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dueOfSlot, spawnDue } from '../../../src/platform/bulk-export/schedules.ts'
import { cutIntoDays, windowOfSlot } from '../../../src/platform/bulk-export/windows.ts'
import { SILENT } from '../support/database.ts'
import { addRun } from './support/runs.ts'
import { setExportScene } from './support/scene.ts'
import { BASE, createTestClock, type ExportWorld } from './support/world.ts'

const HOUR = 3_600_000
const MINUTE = 60_000

const scene = setExportScene()

/** At the last full hour. */
const hourOf = (world: ExportWorld) => new Date(Math.floor(world.clock.now().getTime() / HOUR) * HOUR)
const spawn = (world: ExportWorld) =>
  spawnDue({ db: scene.database.db, clock: world.clock, settings: world.settings, metrics: world.metrics, log: SILENT })

async function spawned(world: ExportWorld, scheduleId: string) {
  const all = (await world.ask('GET', BASE)).body as {
    source_bulk_export_id: string | null
    start_time: string
    end_time: string
    id: string
    status: string
  }[]
  return all.filter((one) => one.source_bulk_export_id === scheduleId).toReversed()
}

describe('a schedule', () => {
  it('spawns an export for each window, ten minutes after its end, with everything that it was given', async () => {
    const world = await scene.makeWorld()
    const start = hourOf(world)
    const settings = {
      filter: 'eq(is_root, true)',
      export_fields: ['id', 'name'],
      format_version: 'v2_beta',
      compression: 'gzip',
    }
    const schedule = await world.createExport({
      start_time: start.toISOString(),
      end_time: undefined,
      interval_hours: 2,
      ...settings,
    })
    expect(schedule.status).toBe('INTERVAL_SCHEDULED')
    const due = start.getTime() + 2 * HOUR + 10 * MINUTE
    world.clock.move(due - world.clock.now().getTime() - 1000)
    await spawn(world)
    expect(await spawned(world, schedule.id)).toEqual([])
    world.clock.move(2000)
    await spawn(world)
    await spawn(world)
    const [first, ...rest] = await spawned(world, schedule.id)
    expect(rest).toEqual([])
    const iso = (time: number) => new Date(time).toISOString().replace('Z', '000Z')
    expect(first).toMatchObject({
      ...settings,
      start_time: iso(start.getTime()),
      end_time: iso(start.getTime() + 2 * HOUR),
      interval_hours: null,
      session_id: world.projectId,
      status: 'CREATED',
    })
    expect((await world.readExport(schedule.id)).status).toBe('INTERVAL_SCHEDULED')
  })

  it('catches up after a downtime without gaps and without doubles, whoever spawns', async () => {
    const world = await scene.makeWorld({ settings: { spawnedUnfinishedMax: 1000 } })
    const start = new Date(hourOf(world).getTime() - 50 * HOUR)
    const schedule = await world.createExport({ start_time: start.toISOString(), end_time: undefined, interval_hours: 1 })
    await Promise.all(Array.from({ length: 8 }, () => spawn(world)))
    while (await spawn(world));
    world.clock.move(30 * HOUR)
    await Promise.all(Array.from({ length: 8 }, () => spawn(world)))
    while (await spawn(world));
    const exports = await spawned(world, schedule.id)
    const windows = exports.map(({ start_time, end_time }) => [Date.parse(start_time), Date.parse(end_time)])
    expect(windows.length).toBeGreaterThanOrEqual(79)
    windows.forEach(([from, to], index) =>
      expect([from, to]).toEqual([start.getTime() + index * HOUR, start.getTime() + (index + 1) * HOUR]),
    )
    const last = windows.at(-1)?.[1] ?? 0
    expect(world.clock.now().getTime()).toBeGreaterThanOrEqual(last + 10 * MINUTE)
    expect(world.clock.now().getTime()).toBeLessThan(last + HOUR + 10 * MINUTE)
  })

  it('waits with catching up while too many of its exports are unfinished', async () => {
    const world = await scene.makeWorld({ settings: { spawnedUnfinishedMax: 3 } })
    const schedule = await world.createExport({
      start_time: new Date(hourOf(world).getTime() - 10 * HOUR).toISOString(),
      end_time: undefined,
      interval_hours: 1,
    })
    while (await spawn(world));
    expect(await spawned(world, schedule.id)).toHaveLength(3)
    await world.startWorkers()
    await expect
      .poll(async () => (await spawned(world, schedule.id)).filter(({ status }) => status === 'COMPLETED').length, {
        timeout: 50_000,
      })
      .toBeGreaterThanOrEqual(9)
  })

  it('exports what its windows hold, and lists the runs of all that it spawned', async () => {
    const world = await scene.makeWorld()
    const start = new Date(hourOf(world).getTime() - 3 * HOUR)
    const place = { workspace_id: world.workspace.id, session_id: world.projectId }
    for (const minutes of [0, 59, 60, 119])
      await addRun(scene.database.db, { ...place, start_time: new Date(start.getTime() + minutes * MINUTE) })
    const schedule = await world.createExport({ start_time: start.toISOString(), end_time: undefined, interval_hours: 1 })
    await world.startWorkers()
    await expect
      .poll(
        async () => {
          const all = await spawned(world, schedule.id)
          return all.length >= 2 && all.every(({ status }) => status === 'COMPLETED')
        },
        { timeout: 30_000 },
      )
      .toBe(true)
    const runs = (await world.ask('GET', `${BASE}/runs?source_bulk_export_id=${schedule.id}`)).body as { rows_exported: number }[]
    expect(runs.slice(0, 2).map((run) => run.rows_exported)).toEqual([2, 2])
  })

  it('spawns no more once it is cancelled; what it has spawned goes on', async () => {
    const world = await scene.makeWorld()
    const schedule = await world.createExport({
      start_time: new Date(hourOf(world).getTime() - 3 * HOUR).toISOString(),
      end_time: undefined,
      interval_hours: 1,
    })
    while (await spawn(world));
    const before = await spawned(world, schedule.id)
    expect(before.length).toBeGreaterThanOrEqual(2)
    expect((await world.ask('PATCH', `${BASE}/${schedule.id}`, { status: 'Cancelled' })).body).toMatchObject({
      status: 'CANCELLED',
    })
    world.clock.move(10 * HOUR)
    expect(await spawn(world)).toBe(false)
    expect(await spawned(world, schedule.id)).toEqual(before)
    await world.startWorkers()
    for (const { id } of before) expect(await world.end(id)).toMatchObject({ status: 'COMPLETED' })
  })

  it('has its waits divided by the time scale', async () => {
    const clock = createTestClock(2400)
    const world = await scene.makeWorld({ clock })
    const start = hourOf(world)
    const createdAt = new Date(start.getTime() + 30 * MINUTE)
    const due = dueOfSlot(
      { clock, settings: world.settings },
      { start: start.toISOString(), intervalHours: 1, slot: 0, createdAt },
    )
    expect(due.getTime() - createdAt.getTime()).toBe(1000)
    const past = dueOfSlot(
      { clock, settings: world.settings },
      { start: '2020-01-01T00:00:00.000000Z', intervalHours: 1, slot: 0, createdAt },
    )
    expect(past.toISOString()).toBe('2020-01-01T01:10:00.000Z')
  })
})

const instants = fc
  .tuple(fc.integer({ min: Date.UTC(1999, 0), max: Date.UTC(2100, 0) }), fc.integer({ min: 0, max: 999_999 }))
  .map(([ms, micros]) => `${new Date(ms).toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}Z`)

describe('windows', () => {
  it('tile a range exactly, one for each UTC day', () => {
    fc.assert(
      fc.property(
        instants,
        fc.integer({ min: 1, max: 40 * 86_400 }),
        fc.integer({ min: 0, max: 999_999 }),
        (start, seconds, micros) => {
          const end = `${new Date(Date.parse(start) + seconds * 1000).toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}Z`
          fc.pre(end > start)
          const windows = cutIntoDays({ start, end })
          expect(windows[0]?.start).toBe(start)
          expect(windows.at(-1)?.end).toBe(end)
          windows.forEach((window, index) => {
            expect(window.start < window.end).toBe(true)
            if (index > 0) expect(window.start).toBe(windows[index - 1]?.end)
            if (index > 0) expect(window.start.slice(10)).toBe('T00:00:00.000000Z')
            // The last microsecond is of the same day as the first.
            const last = window.end.endsWith('T00:00:00.000000Z')
              ? new Date(Date.parse(window.end) - 1).toISOString()
              : window.end
            expect(last.slice(0, 10)).toBe(window.start.slice(0, 10))
          })
        },
      ),
    )
  })

  it('of a schedule follow each other without gap or overlap', () => {
    fc.assert(
      fc.property(instants, fc.integer({ min: 1, max: 168 }), fc.nat(5000), (start, intervalHours, slot) => {
        const window = windowOfSlot({ start, intervalHours, slot })
        expect(Date.parse(window.start) - Date.parse(start)).toBe(slot * intervalHours * HOUR)
        expect(windowOfSlot({ start, intervalHours, slot: slot + 1 }).start).toBe(window.end)
        expect(window.start.slice(19)).toBe(start.slice(19))
      }),
    )
  })
})
