import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createWorkspace } from '../support/database.ts'
import { ACCESS_KEY } from './support/bucket-server.ts'
import { DAY, DAY_END, DAY_START } from './support/runs.ts'
import { setExportScene } from './support/scene.ts'
import { BASE, type ExportWorld } from './support/world.ts'

const scene = setExportScene()

async function tryCreate(world: ExportWorld, changes: Record<string, unknown>) {
  const { id } = await world.createDestination()
  const base = {
    bulk_export_destination_id: id,
    session_id: world.projectId,
    start_time: DAY_START,
    end_time: DAY_END,
  }
  return world.ask('POST', BASE, { ...base, ...changes })
}

describe('the record of an export', () => {
  it('has every field, with its defaults', async () => {
    const world = await scene.makeWorld()
    const made = await world.createExport({ start_time: '2026-08-19T02:00:00+02:00', end_time: '2026-08-21T10:00:00.123456' })
    expect(made).toMatchObject({
      tenant_id: world.workspace.id,
      session_id: world.projectId,
      status: 'CREATED',
      start_time: '2026-08-19T00:00:00.000000Z',
      end_time: '2026-08-21T10:00:00.123456Z',
      filter: null,
      format: 'Parquet',
      format_version: 'v1',
      compression: 'zstandard',
      interval_hours: null,
      export_fields: null,
      source_bulk_export_id: null,
      finished_at: null,
      all_experiments: false,
      progress: { runs_total: 3, runs_done: 0, rows_exported: 0, estimated_seconds_left: null },
    })
    expect(await world.readExport(made.id)).toEqual(made)
    const runs = await world.readRuns(made.id)
    expect(runs).toHaveLength(3)
    expect(runs[0]).toMatchObject({
      bulk_export_id: made.id,
      status: 'CREATED',
      retry_number: 0,
      errors: null,
      rows_exported: 0,
      metadata: { result: null },
    })
    expect((await world.ask('GET', `${BASE}/${made.id}/runs/${runs[1]?.id}`)).body).toEqual(runs[1])
    const later = await world.createExport()
    expect((await world.ask('GET', BASE)).body.map(({ id }: { id: string }) => id)).toEqual([later.id, made.id])
    expect((await world.ask('GET', `${BASE}?limit=1&offset=1`)).body).toEqual([made])
  })

  it('has Title Case statuses in the tongue of the vendor', async () => {
    const world = await scene.makeWorld({ dialect: 'vendor' })
    const made = await world.createExport()
    expect(made.status).toBe('Created')
    expect((await world.readRuns(made.id))[0]?.status).toBe('Created')
    const schedule = await world.createExport({ end_time: undefined, interval_hours: 1, start_time: '2100-01-01T00:00:00Z' })
    expect(schedule.status).toBe('IntervalScheduled')
    expect((await world.ask('GET', BASE)).body.map(({ status }: { status: string }) => status)).toEqual([
      'IntervalScheduled',
      'Created',
    ])
    expect((await world.ask('PATCH', `${BASE}/${made.id}`, { status: 'Cancelled' })).body.status).toBe('Cancelled')
    expect((await world.readRuns(made.id))[0]?.status).toBe('Cancelled')
  })
})

describe('creating an export', () => {
  it.each([
    [{ end_time: undefined }, 'end_time', 'required for a one-off'],
    [{ interval_hours: 1 }, 'end_time', 'must be omitted for a scheduled'],
    [{ end_time: undefined, interval_hours: 0 }, 'interval_hours', 'greater than or equal to 1'],
    [{ end_time: undefined, interval_hours: 169 }, 'interval_hours', 'less than or equal to 168'],
    [{ end_time: undefined, interval_hours: 1.5 }, 'interval_hours', 'integer'],
    [{ end_time: `${DAY}T00:00:00Z` }, 'end_time', 'later than start_time'],
    [{ start_time: 'yesterday' }, 'start_time', 'valid datetime'],
    [{ start_time: '1990-01-01T00:00:00Z' }, 'end_time', 'must not be longer than 3660 days'],
    [{ format_version: 'v3' }, 'format_version', "'v1' or 'v2_beta'"],
    [{ compression: 'zip' }, 'compression', "'none'"],
    [{ format: 'CSV' }, 'format', 'Parquet'],
    [{ export_fields: ['id', 'secrets'] }, 'export_fields.1', 'Input should be'],
    [{ export_fields: [] }, 'export_fields', 'at least 1'],
    [{ export_fields: ['id', 'id'] }, 'export_fields', 'twice'],
    [{ filter: 'eq(name, ' }, 'filter', 'at character'],
    [{ filter: 'eq(nobody, "x")' }, 'filter', 'at character 4'],
    [{ session_id: undefined, all_experiments: true }, 'session_id', 'Field required'],
    [{ bulk_export_destination_id: 'x' }, 'bulk_export_destination_id', 'UUID'],
  ])('refuses %j at %s: %s', async (changes, place, message) => {
    const world = await scene.makeWorld()
    const seen = await tryCreate(world, changes)
    expect(seen.status).toBe(422)
    expect(seen.body.detail).toHaveLength(1)
    expect(seen.body.detail[0].loc).toEqual([
      'body',
      ...place.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part)),
    ])
    expect(seen.body.detail[0].msg).toContain(message)
  })

  it.each([1, 168])('takes %i as interval_hours', async (interval_hours) => {
    const world = await scene.makeWorld()
    const seen = await tryCreate(world, { end_time: undefined, interval_hours, export_fields: ['id'] })
    expect(seen).toMatchObject({
      status: 200,
      body: { status: 'INTERVAL_SCHEDULED', end_time: null, interval_hours, export_fields: ['id'] },
    })
    expect(await world.readRuns(seen.body.id)).toEqual([])
  })

  it('knows the destinations and tracing projects of the workspace only', async () => {
    const world = await scene.makeWorld()
    const other = await scene.makeWorld()
    const { id } = await other.createDestination()
    for (const changes of [
      { bulk_export_destination_id: id },
      { bulk_export_destination_id: randomUUID() },
      { session_id: other.projectId },
    ]) {
      expect((await tryCreate(world, changes)).status).toBe(404)
    }
  })

  it('is refused to the developer plan, with the reason', async () => {
    const world = await scene.makeWorld({ plan: 'developer' })
    const reason = "Bulk export is available on the Plus and Enterprise plans only; this workspace has the plan 'developer'."
    const body = {
      bulk_export_destination_id: randomUUID(),
      session_id: world.projectId,
      start_time: `${DAY}T00:00:00Z`,
      end_time: '2026-08-20T00:00:00Z',
    }
    expect(await world.ask('POST', BASE, body)).toEqual({ status: 403, body: { detail: reason } })
    const destination = {
      display_name: 'x',
      config: { bucket_name: 'traces', endpoint_url: scene.bucket.url },
      credentials: ACCESS_KEY,
    }
    expect(await world.ask('POST', `${BASE}/destinations`, destination)).toEqual({ status: 403, body: { detail: reason } })
    expect(scene.bucket.requests).toEqual([])
    const plus = await scene.makeWorld({ plan: 'plus' })
    expect((await plus.createExport()).status).toBe('CREATED')
  })

  it('is limited by the hour and in schedules where the settings say so', async () => {
    const world = await scene.makeWorld({ settings: { creationsAnHour: 4, schedulesMax: 2 } })
    const scheduled = { end_time: undefined, interval_hours: 1, start_time: '2100-01-01T00:00:00Z' }
    for (let turn = 0; turn < 2; turn += 1) expect((await tryCreate(world, scheduled)).status).toBe(200)
    expect(await tryCreate(world, scheduled)).toMatchObject({
      status: 429,
      body: { detail: expect.stringMatching(/Too many schedules.*2 active/) },
    })
    const rest = await Promise.all(Array.from({ length: 6 }, () => tryCreate(world, {})))
    expect(rest.map(({ status }) => status).toSorted()).toEqual([200, 200, 429, 429, 429, 429])
    world.clock.move(3_601_000)
    expect((await tryCreate(world, {})).status).toBe(200)
  })

  it("is confined to the workspace: another one's export is a 404", async () => {
    const world = await scene.makeWorld()
    const { id } = await world.createExport()
    const [run] = await world.readRuns(id)
    const { key } = await createWorkspace(scene.database.db)
    for (const path of [`/${id}`, `/${id}/runs`, `/${id}/runs/${run?.id}`, `/runs?source_bulk_export_id=${id}`]) {
      expect((await world.ask('GET', `${BASE}${path}`, undefined, { key })).status).toBe(404)
    }
    expect((await world.ask('PATCH', `${BASE}/${id}`, { status: 'Cancelled' }, { key })).status).toBe(404)
    const second = await world.createExport()
    expect((await world.ask('GET', `${BASE}/${second.id}/runs/${run?.id}`)).status).toBe(404)
    expect((await world.ask('GET', `${BASE}/runs`)).status).toBe(422)
  })
})

describe('cancelling an export', () => {
  it.each(['Cancelled', 'CANCELLED', 'cancelled', 'cAnCeLLeD'])('works with %s', async (status) => {
    const world = await scene.makeWorld()
    const { id } = await world.createExport()
    const seen = await world.ask('PATCH', `${BASE}/${id}`, { status })
    expect(seen).toMatchObject({ status: 200, body: { id, status: 'CANCELLED', status_message: 'cancelled by a user' } })
    expect(seen.body.finished_at).not.toBeNull()
    expect((await world.readRuns(id)).map((run) => run.status)).toEqual(['CANCELLED'])
    // Once more says the same, and changes nothing.
    expect(await world.ask('PATCH', `${BASE}/${id}`, { status })).toEqual(seen)
  })

  it('is the only change there is', async () => {
    const world = await scene.makeWorld()
    const { id } = await world.createExport()
    for (const status of ['Completed', 'RUNNING', '', 5])
      expect((await world.ask('PATCH', `${BASE}/${id}`, { status })).status).toBe(422)
    expect((await world.readExport(id)).status).toBe('CREATED')
  })

  it('does nothing to an export that has ended: final states are final', async () => {
    const world = await scene.makeWorld()
    const ended = await world.run()
    expect(await world.ask('PATCH', `${BASE}/${ended.id}`, { status: 'Cancelled' })).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('COMPLETED') },
    })
    expect(await world.readExport(ended.id)).toEqual(ended)
  })

  it('ends the work: nothing is stored afterwards, and no file stays that counts nowhere', async () => {
    const world = await scene.makeWorld({ runs: 1000, settings: { fileRows: 50 } })
    const { id } = await world.createExport()
    let uploads = 0
    scene.bucket.onRequest = async (operation, key) => {
      if (operation !== 'put' || !key.endsWith('.parquet')) return
      uploads += 1
      if (uploads === 3) expect((await world.ask('PATCH', `${BASE}/${id}`, { status: 'Cancelled' })).status).toBe(200)
    }
    const workers = await world.startWorkers()
    const ended = await world.end(id)
    const runs = await world.readRuns(id)
    expect(ended.status).toBe('CANCELLED')
    await workers.stop()
    expect(await world.readExport(id)).toEqual(ended)
    const [run] = await world.readRuns(id)
    expect(run).toMatchObject({ status: 'CANCELLED', rows_exported: 100, metadata: { result: { pending_upload: null } } })
    expect({ ...run, metadata: null, updated_at: null }).toEqual({ ...runs[0], metadata: null, updated_at: null })
    const files = run?.metadata.result?.exported_files ?? []
    expect((await scene.bucket.keys()).filter((key) => key.includes(id)).map((key) => `traces/${key}`)).toEqual(files)
    expect(files).toHaveLength(2)
    // A new worker does not take it up again.
    await (await world.startWorkers()).stop()
    expect(uploads).toBe(3)
  })
})
