import { describe, expect, it, test } from 'vitest'
import { BATCH_BYTES_MAX, infoSchema, MULTIPART_BYTES_MAX, OTLP_BYTES_MAX, SERVICE_INFO } from '../../src/contract/ingest.ts'
import { filterValidationRequestSchema, runQuerySchema } from '../../src/contract/run-query.ts'
import { DEFAULT_PROJECT_NAME, runNotFound, runTypeSchema } from '../../src/contract/run.ts'
import { projectCreateSchema, projectNotFound, projectPatchSchema } from '../../src/contract/tracing-project.ts'

const ID = '1a1fb328-851a-440b-a3a5-bd284276ca0a'

describe('what the service says of itself to those who send runs', () => {
  it('is to send multipart bodies, or batches of 100 runs and 20 MiB', () => {
    expect(infoSchema.parse(SERVICE_INFO)).toMatchObject({
      batch_ingest_config: { use_multipart_endpoint: true, size_limit: 100, size_limit_bytes: 20_971_520 },
      instance_flags: { gzip_body_enabled: true, zstd_compression_enabled: true },
    })
    expect([BATCH_BYTES_MAX, OTLP_BYTES_MAX, MULTIPART_BYTES_MAX]).toEqual([20_971_520, 20_971_520, 67_108_864])
  })

  it('is read only when it says how to send', () => {
    for (const field of ['version', 'batch_ingest_config', 'instance_flags']) {
      expect(infoSchema.safeParse({ ...SERVICE_INFO, [field]: undefined }).success).toBe(false)
    }
    expect(infoSchema.safeParse({ ...SERVICE_INFO, batch_ingest_config: {} }).success).toBe(false)
  })
})

describe('a query for runs', () => {
  it.each([
    {},
    { session: [ID], trace: ID, parent_run: ID, id: [ID], is_root: true, error: false, run_type: 'llm' },
    { start_time: '2026-01-01', end_time: null, order: 'asc', select: ['id'], cursor: 'c'.repeat(500) },
    { filter: 'f'.repeat(20_000), trace_filter: '', tree_filter: null, query: 'words' },
    { limit: 1 },
    { limit: 100, order: 'desc' },
    { unknown: 1 },
  ])('may be %j', (query) => {
    expect(runQuerySchema.parse(query)).toEqual(query)
  })

  it.each<Record<string, unknown>>([
    { limit: 0 },
    { limit: 101 },
    { limit: 1.5 },
    { order: 'up' },
    { session: ID },
    { session: ['default'] },
    { id: Array.from({ length: 10_001 }, () => ID) },
    { trace: 'x' },
    { start_time: 'x'.repeat(65) },
    { cursor: 'c'.repeat(501) },
    { select: Array.from({ length: 101 }, () => 'id') },
    { filter: 'f'.repeat(20_001) },
    { trace_filter: 'f'.repeat(20_001) },
    { tree_filter: 7 },
    { is_root: 'true' },
  ])('may not be %j', (query) => {
    expect(runQuerySchema.safeParse(query).error?.issues[0]?.path[0]).toBe(Object.keys(query)[0])
  })

  it('may be judged before it is asked, with filters of the same length', () => {
    expect(filterValidationRequestSchema.safeParse({ filter: 'f'.repeat(20_000) }).success).toBe(true)
    expect(filterValidationRequestSchema.safeParse({ tree_filter: 'f'.repeat(20_001) }).success).toBe(false)
  })
})

describe('a tracing project', () => {
  it.each([{ name: 'p' }, { name: 'p'.repeat(255), description: null, extra: { any: 1 } }, { name: 'p', id: ID, more: 1 }])(
    'may be made as %j',
    (body) => {
      expect(projectCreateSchema.parse(body)).toEqual(body)
    },
  )

  it.each<Record<string, unknown>>([
    { name: '' },
    { name: 'p'.repeat(256) },
    { name: 7 },
    { id: 'x' },
    { extra: [] },
    { description: 7 },
  ])('may not be made with %j', (changes) => {
    expect(projectCreateSchema.safeParse({ name: 'p', ...changes }).error?.issues[0]?.path).toEqual(Object.keys(changes))
  })

  it('keeps what a change leaves out', () => {
    for (const body of [{}, { name: null }, { name: 'q', end_time: '2026-01-01T00:00:00Z' }]) {
      expect(projectPatchSchema.parse(body)).toEqual(body)
    }
    for (const body of [{ name: '' }, { name: 'p'.repeat(256) }, { end_time: 'x'.repeat(65) }]) {
      expect(projectPatchSchema.safeParse(body).success).toBe(false)
    }
  })
})

test('runs that name no project are in the default one', () => {
  expect(DEFAULT_PROJECT_NAME).toBe('default')
})

test('a run is of one of seven types', () => {
  expect(runTypeSchema.options).toEqual(['tool', 'chain', 'llm', 'retriever', 'embedding', 'prompt', 'parser'])
})

test('what was not found is named', () => {
  expect([runNotFound(ID), projectNotFound(ID)]).toEqual([`Run ID ${ID} not found.`, `Session ID ${ID} not found.`])
})
