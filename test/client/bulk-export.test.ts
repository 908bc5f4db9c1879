import { describe, expect, it } from 'vitest'
import { type BulkExports, createBulkExports, type ExportBody } from '../../src/client/bulk-export.ts'
import { destinationAnswerSchema, exportAnswerSchema, exportRunAnswerSchema } from '../../src/client/bulk-export-answers.ts'
import { capOf } from '../../src/client/bulk-export-caps.ts'
import type { RetryEvent } from '../../src/client/retry.ts'
import type { RequestOptions } from '../../src/client/transport.ts'
import { readBody } from '../support/http-server.ts'
import type { DestinationCreate } from '../../src/contract/destination.ts'
import { failureOf, testTransport, unaborted } from './support/fixtures.ts'
import { serve } from './support/serve.ts'
import { virtualEffects } from './support/virtual-effects.ts'

type Seen = { method: string; path: string; body: unknown }
type Reply = { status?: number; body?: unknown; reset?: true }

/** The client of a service whose answers `reply` makes. */
async function service(
  reply: (request: Seen, number: number) => Reply,
): Promise<{ api: BulkExports; seen: Seen[]; events: RetryEvent[] }> {
  const seen: Seen[] = []
  const events: RetryEvent[] = []
  const server = await serve((request, response) => {
    void readBody(request).then((bytes) => {
      const text = bytes.toString()
      const one = {
        method: request.method ?? '',
        path: request.url ?? '',
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      }
      seen.push(one)
      const { status = 200, body, reset } = reply(one, seen.length)
      if (reset) return void request.socket.resetAndDestroy()
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    })
  })
  const transport = testTransport({ baseUrl: server.url })
  const onRetry = (event: RetryEvent) => void events.push(event)
  return { api: createBulkExports({ transport, effects: virtualEffects(), onRetry }), seen, events }
}

const ID = '11111111-1111-4111-8111-111111111111'
const BODY: ExportBody = {
  bulk_export_destination_id: '22222222-2222-4222-8222-222222222222',
  session_id: '33333333-3333-4333-8333-333333333333',
  start_time: '2026-08-19T00:00:00.000Z',
  end_time: '2026-08-20T00:00:00.000Z',
}
const RECORD = {
  id: ID,
  status: 'Created',
  ...BODY,
  interval_hours: null,
  filter: null,
  export_fields: null,
  source_bulk_export_id: null,
}
const DESTINATION = { id: '55555555-5555-4555-8555-555555555555', display_name: 'my bucket', config: { bucket_name: 'traces' } }

/** A client over a transport that gives these bodies, and what it asked of it. */
function stub(bodyOf: (options: RequestOptions<unknown>) => unknown) {
  const asked: RequestOptions<unknown>[] = []
  const transport = testTransport({ baseUrl: 'http://service.test' })
  transport.request = (async (options: RequestOptions<unknown>) => {
    asked.push(options)
    return { body: bodyOf(options) }
  }) as never
  return { api: createBulkExports({ transport, effects: virtualEffects() }), asked }
}

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
    expect(exportRunAnswerSchema.parse({ id: 'r', status: 'Created', errors: null, metadata: null })).toMatchObject({
      rows: 0,
      day: null,
    })
  })

  it('read a run that has no result yet', () => {
    const metadata = { start_time: '2026-08-19T00:00:00Z', result: null }
    expect(exportRunAnswerSchema.parse({ id: 'r', status: 'Running', metadata })).toMatchObject({
      rows: 0,
      files: [],
      day: '2026-08-19',
    })
  })

  it.each(['2026-13-45T00:00:00Z', 'on 2026-08-19', 'yesterday'])('read no day from %s', (start_time) => {
    expect(exportRunAnswerSchema.parse({ id: 'r', status: 'Running', start_time }).day).toBeNull()
  })

  it('put attempts into order by the number at the end of their names, those without one first', () => {
    const errors = { v1_retry_2: 'third', v2_retry_1: 'second', failed: 'first' }
    expect(exportRunAnswerSchema.parse({ id: 'r', status: 'Failed', errors }).errors).toEqual(['first', 'second', 'third'])
  })

  it('read how far an export is', () => {
    const answer = { id: ID, status: 'Running', progress: { estimated_seconds_left: 7, stage: 'writing' } }
    expect(exportAnswerSchema.parse(answer).progress).toEqual({ estimated_seconds_left: 7, stage: 'writing' })
    expect(exportAnswerSchema.parse({ id: ID, status: 'Running' }).progress).toBeNull()
  })

  it('read a destination without a prefix', () => {
    const config = { bucket_name: 'traces', prefix: null }
    expect(destinationAnswerSchema.parse({ id: ID, display_name: 'd', config }).config.prefix).toBe('')
  })
})

describe('capOf', () => {
  it.each([
    [429, 'One export an hour is enough.', 'hourly'],
    [429, 'Too many EXPORTS in the last HOURS', 'hourly'],
    [429, 'The schedule limit is reached.', 'schedules'],
    [429, 'Too many scheduled exports', 'schedules'],
    [429, 'Too many exports at once', undefined],
    [429, 'Too many requests in this hour', undefined],
    [429, null, undefined],
    [400, 'Too many exports in this hour', undefined],
    [null, null, undefined],
  ])('of a %s with the words %j is %s', (status, detail, cap) => {
    expect(capOf({ status, detail })).toBe(cap)
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

  it('are asked for once when they are short', async () => {
    const { api, seen } = await service(() => ({ body: [DESTINATION] }))
    expect(await api.listDestinations(unaborted())).toMatchObject([{ id: DESTINATION.id, display_name: 'my bucket' }])
    expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /api/v1/bulk-exports/destinations?limit=1000&offset=0',
    ])
  })

  it('are given up after 50 full pages', async () => {
    const pages: unknown[] = []
    const { api } = stub(({ query }) => {
      pages.push(query)
      return Array.from({ length: 1000 }, (_, index) => ({ id: `e${pages.length}-${index}` }))
    })
    const failure = await failureOf(api.listExports(unaborted()))
    expect(failure).toMatchObject({ kind: 'protocol', code: 'endless-list', ambiguous: false })
    expect(failure.message).toBe('GET /api/v1/bulk-exports gave page after page without an end')
    expect(pages).toHaveLength(50)
    expect(pages.at(-1)).toEqual({ limit: 1000, offset: 49_000 })
  })
})

describe('a read', () => {
  const run = { id: 'r', status: 'Created' }
  it.each<[string, string, unknown, (api: BulkExports) => Promise<unknown>]>([
    ['destinations', '/destinations?limit=1000&offset=0', [], (api) => api.listDestinations(unaborted())],
    ['a destination', `/destinations/${ID}`, DESTINATION, (api) => api.getDestination(ID, unaborted())],
    ['exports', '?limit=1000&offset=0', [], (api) => api.listExports(unaborted())],
    ['an export', `/${ID}`, RECORD, (api) => api.getExport(ID, unaborted())],
    ['runs', `/${ID}/runs`, [run], (api) => api.listRuns(ID, unaborted())],
  ])('of %s is repeated after a server error', async (_what, path, body, read) => {
    const { api, seen } = await service((_request, number) => (number === 1 ? { status: 503 } : { body }))
    const answer = await read(api)
    if (Array.isArray(body)) expect(answer).toHaveLength(body.length)
    else expect(answer).toMatchObject({ id: (body as { id: string }).id })
    const asked = { method: 'GET', path: `/api/v1/bulk-exports${path}`, body: undefined }
    expect(seen).toEqual([asked, asked])
  })

  it('of runs is one of a large answer', async () => {
    const { api, asked } = stub(() => [])
    await api.listRuns(ID, unaborted())
    expect(asked).toMatchObject([{ maxBytes: 67_108_864 }])
  })
})

describe('createDestination', () => {
  const body: DestinationCreate = {
    destination_type: 's3',
    display_name: 'my bucket',
    config: { bucket_name: 'traces', prefix: '', include_bucket_in_prefix: false },
    credentials: { access_key_id: 'key-id-of-it', secret_access_key: 'secret-of-the-bucket' },
  }
  const create = (api: BulkExports, known: string[] = []) => api.createDestination({ body, known, signal: unaborted() })

  it('sends what it is given', async () => {
    const { api, seen } = await service(() => ({ body: DESTINATION }))
    expect((await create(api)).id).toBe(DESTINATION.id)
    expect(seen).toEqual([{ method: 'POST', path: '/api/v1/bulk-exports/destinations', body }])
  })

  it('takes the new one of its name for the one whose answer was lost, and says that it looked', async () => {
    const others = [
      { ...DESTINATION, id: 'old' },
      { ...DESTINATION, id: 'new', display_name: 'another bucket' },
    ]
    const { api, seen, events } = await service(({ method }) =>
      method === 'POST' ? { reset: true } : { body: [...others, DESTINATION] },
    )
    expect((await create(api, ['old'])).id).toBe(DESTINATION.id)
    expect(seen.map(({ method }) => method)).toEqual(['POST', 'GET'])
    expect(events).toMatchObject([{ attempt: 1, method: 'POST', path: '/api/v1/bulk-exports/destinations' }])
    expect(events[0]?.reason).toMatch(/; looking whether it was carried out$/)
  })

  it('sends again when there is no new one of its name', async () => {
    const others = [
      { ...DESTINATION, id: 'old' },
      { ...DESTINATION, id: 'new', display_name: 'another bucket' },
    ]
    const { api, seen } = await service(({ method }, number) =>
      method === 'GET' ? { body: others } : number === 1 ? { reset: true } : { body: DESTINATION },
    )
    expect((await create(api, ['old'])).id).toBe(DESTINATION.id)
    expect(seen.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST'])
  })
})

describe('createExport', () => {
  it('finds the export whose answer was lost, by what was sent', async () => {
    const others = [
      { ...RECORD, id: 'known' },
      { ...RECORD, id: 'other', filter: 'eq(is_root, true)' },
    ]
    const { api, seen } = await service(({ method }) =>
      method === 'POST' ? { reset: true } : { body: [{ ...RECORD, start_time: '2026-08-19T00:00:00+00:00' }, ...others] },
    )
    expect(await api.createExport({ body: BODY, known: ['known'], signal: unaborted() })).toMatchObject({
      id: ID,
      status: 'CREATED',
    })
    expect(seen.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })

  it('sends again when there is none', async () => {
    const { api, seen } = await service(({ method }, number) =>
      method === 'GET' ? { body: [] } : number === 1 ? { reset: true } : { body: RECORD },
    )
    expect((await api.createExport({ body: BODY, known: [], signal: unaborted() })).id).toBe(ID)
    expect(seen.filter(({ method }) => method === 'POST')).toHaveLength(2)
  })

  const lost = (found: Record<string, unknown>) =>
    service(({ method }, number) =>
      method === 'GET' ? { body: [{ ...RECORD, id: 'found', ...found }] } : number === 1 ? { reset: true } : { body: RECORD },
    )

  it.each<[Record<string, unknown>]>([
    [{ source_bulk_export_id: '44444444-4444-4444-8444-444444444444' }],
    [{ bulk_export_destination_id: '44444444-4444-4444-8444-444444444444' }],
    [{ bulk_export_destination_id: null }],
    [{ session_id: '44444444-4444-4444-8444-444444444444' }],
    [{ session_id: null }],
    [{ start_time: '2026-08-19T00:00:01Z' }],
    [{ end_time: '2026-08-21T00:00:00Z' }],
    [{ interval_hours: 24 }],
    [{ filter: 'eq(is_root, true)' }],
    [{ export_fields: ['id'] }],
  ])('does not take another export for its own: %j', async (found) => {
    const { api, seen } = await lost(found)
    expect((await api.createExport({ body: BODY, known: [], signal: unaborted() })).id).toBe(ID)
    expect(seen.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST'])
  })

  const { end_time: _end, ...endless } = BODY
  const other = 'abcdef00-4444-4444-8444-444444444444'
  it.each<[Record<string, unknown>, ExportBody]>([
    [{ bulk_export_destination_id: other.toUpperCase() }, { ...BODY, bulk_export_destination_id: other }],
    [{ session_id: other.toUpperCase() }, { ...BODY, session_id: other }],
    [
      { interval_hours: 24, end_time: null },
      { ...endless, interval_hours: 24 },
    ],
    [{ filter: '' }, BODY],
    [{ export_fields: ['id', 'name'] }, { ...BODY, export_fields: ['id', 'name'] }],
    [{ export_fields: [] }, BODY],
  ])('knows its own as the service writes it: %j', async (found, body) => {
    const { api, seen } = await lost(found)
    expect((await api.createExport({ body, known: [], signal: unaborted() })).id).toBe('found')
    expect(seen.map(({ method }) => method)).toEqual(['POST', 'GET'])
  })

  it('does not guess between two', async () => {
    const { api } = await service(({ method }) =>
      method === 'POST' ? { reset: true } : { body: [RECORD, { ...RECORD, id: 'b' }] },
    )
    const failure = await failureOf(api.createExport({ body: BODY, known: [], signal: unaborted() }))
    expect(failure.message).toContain('2 exports with these settings')
  })

  it('waits for a rate limit', async () => {
    const { api } = await service((_, number) =>
      number < 3 ? { status: 429, body: { detail: 'Rate limit exceeded' } } : { body: RECORD },
    )
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

  const credentials = { access_key_id: 'key-id-of-it', secret_access_key: 'secret-of-the-bucket' }

  it('change credentials, whether or not the service answers with words', async () => {
    const { api, seen } = await service(() => ({}))
    expect(await api.updateCredentials({ id: ID, credentials, signal: unaborted() })).toBeUndefined()
    expect(seen).toEqual([{ method: 'PATCH', path: `/api/v1/bulk-exports/destinations/${ID}`, body: { credentials } }])
  })

  it('say which way the service does not have', async () => {
    const { api } = await service(() => ({ status: 404, body: { detail: 'Not Found' } }))
    expect((await failureOf(api.updateCredentials({ id: ID, credentials, signal: unaborted() }))).message).toBe(
      `PATCH /api/v1/bulk-exports/destinations/${ID} answered 404: this control plane has no way to change the credentials of a destination`,
    )
  })

  it('tell a missing destination from a missing way', async () => {
    const { api } = await service(() => ({ status: 404, body: { detail: `Destination ${ID} not found` } }))
    expect(await failureOf(api.updateCredentials({ id: ID, credentials, signal: unaborted() }))).toMatchObject({
      kind: 'http',
      status: 404,
    })
  })

  it('are repeated freely where they set something', async () => {
    const { api, seen } = await service((_request, number) => (number % 2 === 1 ? { status: 503 } : { body: RECORD }))
    await api.updateCredentials({ id: ID, credentials, signal: unaborted() })
    expect((await api.cancelExport({ id: ID, signal: unaborted() })).id).toBe(ID)
    expect(seen.map(({ method }) => method)).toEqual(['PATCH', 'PATCH', 'PATCH', 'PATCH'])
  })

  it('give a cancellation the time that it is told', async () => {
    const { api, asked } = stub(() => RECORD)
    await api.cancelExport({ id: ID, timeoutMs: 1234, signal: unaborted() })
    await api.cancelExport({ id: ID, signal: unaborted() })
    expect(asked.map(({ timeoutMs }) => timeoutMs)).toEqual([1234, undefined])
  })
})
