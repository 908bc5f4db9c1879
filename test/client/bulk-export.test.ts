import { afterEach, describe, expect, it } from 'vitest'
import { type BulkExports, createBulkExports, type ExportBody } from '../../src/client/bulk-export.ts'
import { exportAnswerSchema, exportRunAnswerSchema } from '../../src/client/bulk-export-answers.ts'
import { capOf } from '../../src/client/bulk-export-caps.ts'
import { readBody, startServer } from '../support/http-server.ts'
import { failureOf, testTransport, unaborted } from './support/fixtures.ts'
import { virtualEffects } from './support/virtual-effects.ts'

type Seen = { method: string; path: string; body: unknown }
type Reply = { status?: number; body?: unknown; reset?: true }

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

/** The client of a service whose answers `reply` makes. */
async function service(reply: (request: Seen, number: number) => Reply): Promise<{ api: BulkExports; seen: Seen[] }> {
  const seen: Seen[] = []
  const server = await startServer((request, response) => {
    void readBody(request).then((bytes) => {
      const text = bytes.toString()
      const one = { method: request.method ?? '', path: request.url ?? '', body: text === '' ? undefined : (JSON.parse(text) as unknown) }
      seen.push(one)
      const { status = 200, body, reset } = reply(one, seen.length)
      if (reset) return void request.socket.resetAndDestroy()
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    })
  })
  cleanups.push(server.stop)
  return { api: createBulkExports({ transport: testTransport({ baseUrl: server.url }), effects: virtualEffects() }), seen }
}

const ID = '11111111-1111-4111-8111-111111111111'
const BODY: ExportBody = {
  bulk_export_destination_id: '22222222-2222-4222-8222-222222222222',
  session_id: '33333333-3333-4333-8333-333333333333',
  start_time: '2026-08-19T00:00:00.000Z',
  end_time: '2026-08-20T00:00:00.000Z',
}
const RECORD = { id: ID, status: 'Created', ...BODY, interval_hours: null, filter: null, export_fields: null, source_bulk_export_id: null }

describe('answers', () => {
  it.each(['TIMEDOUT', 'TimedOut', 'timedout'])('read the status %s', (status) => {
    expect(exportAnswerSchema.parse({ id: ID, status }).status).toBe('TIMEDOUT')
  })

  it('read a schedule of the hosted service', () => {
    expect(exportAnswerSchema.parse({ id: ID, status: 'IntervalScheduled' }).status).toBe('INTERVAL_SCHEDULED')
  })

  it('read rows, files, the day and the attempts of a run, wherever they stand', () => {
    const result = { rows_written: 7, exported_files: ['a.parquet', 'b.parquet'] }
    const metadata = { start_time: '2026-08-19T00:00:00Z', result }
    const errors = { retry_10: 'last', retry_2: 'second', retry_0: { code: 1 } }
    expect(exportRunAnswerSchema.parse({ id: 'r', status: 'Failed', errors, metadata })).toEqual({
      id: 'r',
      status: 'FAILED',
      day: '2026-08-19',
      rows: 7,
      files: ['a.parquet', 'b.parquet'],
      errors: ['{"code":1}', 'second', 'last'],
    })
    expect(exportRunAnswerSchema.parse({ id: 'r', status: 'Created', errors: null, metadata: null })).toMatchObject({ rows: 0, day: null })
  })
})

describe('lists', () => {
  it('end at a page that is not full, and at one that brings nothing new', async () => {
    const page = (from: number) => Array.from({ length: 1000 }, (_, index) => ({ ...RECORD, id: `e${from + index}` }))
    const paged = await service(({ path }) => ({ body: path.includes('offset=1000') ? [{ ...RECORD, id: 'last' }] : page(0) }))
    expect(await paged.api.listExports(unaborted())).toHaveLength(1001)
    const unpaged = await service(() => ({ body: page(0) }))
    expect(await unpaged.api.listExports(unaborted())).toHaveLength(1000)
    expect(unpaged.seen).toHaveLength(2)
  })
})

describe('createExport', () => {
  it('finds the export whose answer was lost, by what was sent', async () => {
    const others = [{ ...RECORD, id: 'known' }, { ...RECORD, id: 'other', filter: 'eq(is_root, true)' }]
    const { api, seen } = await service(({ method }) =>
      method === 'POST' ? { reset: true } : { body: [{ ...RECORD, start_time: '2026-08-19T00:00:00+00:00' }, ...others] },
    )
    expect(await api.createExport({ body: BODY, known: ['known'], signal: unaborted() })).toMatchObject({ id: ID, status: 'CREATED' })
    expect(seen.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })

  it('sends again when there is none', async () => {
    const { api, seen } = await service(({ method }, number) =>
      method === 'GET' ? { body: [] } : number === 1 ? { reset: true } : { body: RECORD },
    )
    expect((await api.createExport({ body: BODY, known: [], signal: unaborted() })).id).toBe(ID)
    expect(seen.filter(({ method }) => method === 'POST')).toHaveLength(2)
  })

  it('does not guess between two', async () => {
    const { api } = await service(({ method }) => (method === 'POST' ? { reset: true } : { body: [RECORD, { ...RECORD, id: 'b' }] }))
    const failure = await failureOf(api.createExport({ body: BODY, known: [], signal: unaborted() }))
    expect(failure.message).toContain('2 exports with these settings')
  })

  it('waits for a rate limit', async () => {
    const { api } = await service((_, number) => (number < 3 ? { status: 429, body: { detail: 'Rate limit exceeded' } } : { body: RECORD }))
    expect((await api.createExport({ body: BODY, known: [], signal: unaborted() })).id).toBe(ID)
  })

  it.each([
    ['hourly', 'Too many exports: a workspace may create 250 exports an hour, those that schedules spawn among them.'],
    ['schedules', 'Too many schedules: a workspace may have 200 active ones.'],
  ])('does not wait for the cap %s', async (cap, detail) => {
    const { api, seen } = await service(() => ({ status: 429, body: { detail } }))
    const failure = await failureOf(api.createExport({ body: BODY, known: [], signal: unaborted() }))
    expect(capOf(failure)).toBe(cap)
    expect(seen).toHaveLength(1)
  })
})

describe('the other operations', () => {
  it('send what the service expects', async () => {
    const { api, seen } = await service(() => ({ body: RECORD }))
    await api.cancelExport({ id: ID, signal: unaborted() })
    expect(seen[0]).toEqual({ method: 'PATCH', path: `/api/v1/bulk-exports/${ID}`, body: { status: 'Cancelled' } })
  })

  it('hide the credentials that a refusal repeats', async () => {
    const secret = 'secret-of-the-bucket'
    const { api } = await service(() => ({ status: 400, body: { detail: `Access denied for ${secret}` } }))
    const credentials = { access_key_id: 'key-id-of-it', secret_access_key: secret }
    const failure = await failureOf(api.updateCredentials({ id: ID, credentials, signal: unaborted() }))
    expect(`${failure.message} ${failure.excerpt ?? ''}`).not.toContain(secret)
  })

  it('tell a service without a way to change credentials', async () => {
    const { api } = await service(() => ({ status: 405, body: { detail: 'Method Not Allowed' } }))
    const credentials = { access_key_id: 'key-id-of-it', secret_access_key: 'secret-of-the-bucket' }
    expect((await failureOf(api.updateCredentials({ id: ID, credentials, signal: unaborted() }))).kind).toBe('unsupported')
  })
})
