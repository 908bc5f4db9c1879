import { describe, expect, it, test } from 'vitest'
import {
  bulkExportCreateSchema,
  bulkExportPatchSchema,
  COMPRESSIONS,
  EXPORT_DAYS_MAX,
  exportNotFound,
  exportRunNotFound,
  FORMAT_VERSIONS,
} from '../../src/contract/bulk-export.ts'
import { EXPORTABLE_FIELDS } from '../../src/contract/exportable-fields.ts'

const DESTINATION = '1a1fb328-851a-440b-a3a5-bd284276ca0a'
const PROJECT = '2b2fb328-851a-440b-a3a5-bd284276ca0b'
const once = {
  bulk_export_destination_id: DESTINATION,
  session_id: PROJECT,
  start_time: '2026-01-01T00:00:00Z',
  end_time: '2026-01-02T00:00:00Z',
}
const scheduled = { ...once, end_time: undefined, interval_hours: 24 }

const faultsOf = (body: unknown) =>
  (bulkExportCreateSchema.safeParse(body).error?.issues ?? []).map(({ code, path, message }) => ({ code, path, message }))
const fault = (field: string, message: string) => ({ code: 'custom', path: [field], message })

describe('a request for an export', () => {
  it('has what it leaves out by default', () => {
    expect(bulkExportCreateSchema.parse(once)).toEqual({
      bulk_export_destination_id: DESTINATION,
      session_id: PROJECT,
      start_time: '2026-01-01T00:00:00.000000Z',
      end_time: '2026-01-02T00:00:00.000000Z',
      format: 'Parquet',
      format_version: 'v1',
      compression: 'zstandard',
    })
  })

  it('has its ids in lower case, and its times in UTC', () => {
    const body = {
      ...once,
      bulk_export_destination_id: DESTINATION.toUpperCase(),
      session_id: PROJECT.toUpperCase(),
      start_time: '2026-01-01T02:00:00.5+02:00',
      end_time: 1_767_312_000_000,
    }
    expect(bulkExportCreateSchema.parse({ ...body, end_time: '1767312000000' })).toMatchObject({
      bulk_export_destination_id: DESTINATION,
      session_id: PROJECT,
      start_time: '2026-01-01T00:00:00.500000Z',
      end_time: '2026-01-02T00:00:00.000000Z',
    })
    expect(bulkExportCreateSchema.safeParse(body).success).toBe(false)
  })

  it.each(['bulk_export_destination_id', 'session_id', 'start_time'])('needs %s', (field) => {
    expect(faultsOf({ ...once, [field]: undefined }).map(({ path }) => path)).toEqual([[field]])
  })

  it.each<[string, unknown]>([
    ['bulk_export_destination_id', 'bucket'],
    ['session_id', 'default'],
    ['format', 'CSV'],
    ['format_version', 'v3'],
    ['compression', 'lz4'],
    ['interval_hours', 1.5],
    ['interval_hours', '24'],
    ['export_fields', []],
    ['export_fields', 'id'],
    ['filter', 7],
    ['filter', 'x'.repeat(100_001)],
  ])('is refused with %s %j', (field, value) => {
    const body = field === 'interval_hours' ? scheduled : once
    expect(faultsOf({ ...body, [field]: value })[0]?.path).toEqual([field])
  })

  it.each([...FORMAT_VERSIONS])('may ask for the layout %s', (format_version) => {
    expect(bulkExportCreateSchema.parse({ ...once, format_version }).format_version).toBe(format_version)
  })

  it.each([...COMPRESSIONS])('may ask for the compression %s', (compression) => {
    expect(bulkExportCreateSchema.parse({ ...once, compression }).compression).toBe(compression)
  })
})

describe('the times of an export', () => {
  const words = 'Input should be a valid datetime in ISO 8601'

  it.each(['yesterday', '', '2026-02-30T00:00:00Z', '1899-12-31T23:59:59Z', '2201-01-01T00:00:00Z'])('are not %j', (time) => {
    const [issue] = bulkExportCreateSchema.safeParse({ ...scheduled, start_time: time }).error?.issues ?? []
    expect(issue).toMatchObject({ code: 'custom', path: ['start_time'], message: words, params: { type: 'datetime_parsing' } })
  })

  it.each(['1900-01-01T00:00:00Z', '2200-12-31T23:59:59Z', '2026-01-01'])('may be %j', (time) => {
    expect(faultsOf({ ...scheduled, start_time: time })).toEqual([])
  })

  it('are 64 characters long at most', () => {
    const padded = once.start_time.padEnd(64)
    expect(faultsOf({ ...once, start_time: padded })).toEqual([])
    expect(faultsOf({ ...once, start_time: `${padded} ` })).toMatchObject([{ code: 'too_big', path: ['start_time'] }])
  })

  it('are both there for a one-off export, and the end is later', () => {
    const missing = fault('end_time', 'end_time is required for a one-off export; a scheduled one has interval_hours instead')
    const early = fault('end_time', 'end_time must be later than start_time: it is exclusive')
    expect(faultsOf({ ...once, end_time: undefined })).toEqual([missing])
    expect(faultsOf({ ...once, end_time: null, interval_hours: null })).toEqual([missing])
    expect(faultsOf({ ...once, end_time: once.start_time })).toEqual([early])
    expect(faultsOf({ ...once, end_time: '2025-12-31T23:59:59Z' })).toEqual([early])
    expect(faultsOf({ ...once, end_time: '2026-01-01T00:00:00.000001Z' })).toEqual([])
  })

  it('are never an end for a scheduled one', () => {
    const message = 'end_time must be omitted for a scheduled export (one with interval_hours)'
    expect(faultsOf({ ...once, interval_hours: 24 })).toEqual([fault('end_time', message)])
    expect(faultsOf({ ...scheduled, end_time: null })).toEqual([])
  })

  it('lie no more days apart than an export may have runs', () => {
    const message = `the range must not be longer than ${EXPORT_DAYS_MAX} days: split the export`
    // 3660 days from the first day of 2020, with three leap days among them.
    const range = { ...once, start_time: '2020-01-01T00:00:00Z', end_time: '2030-01-08T00:00:00Z' }
    expect((Date.parse(range.end_time) - Date.parse(range.start_time)) / 86_400_000).toBe(3660)
    expect(faultsOf(range)).toEqual([])
    expect(faultsOf({ ...range, end_time: '2030-01-08T00:00:01Z' })).toEqual([fault('end_time', message)])
    expect(faultsOf({ ...scheduled, start_time: '1950-01-01T00:00:00Z' })).toEqual([])
  })
})

describe('the hours of a schedule', () => {
  it.each([1, 24, 168])('may be %j', (interval_hours) => {
    expect(bulkExportCreateSchema.parse({ ...scheduled, interval_hours }).interval_hours).toBe(interval_hours)
  })

  it.each([0, -1, 169])('may not be %j', (interval_hours) => {
    expect(faultsOf({ ...scheduled, interval_hours })[0]?.path).toEqual(['interval_hours'])
  })
})

describe('the filter of an export', () => {
  it.each(['eq(is_root, true)', '', null, undefined])('may be %j', (filter) => {
    expect(bulkExportCreateSchema.parse({ ...once, filter }).filter).toBe(filter)
  })

  it('that nobody can read is refused with its place', () => {
    const message = 'the filter cannot be used: expected "," or ")", not the end of the filter (at character 12)'
    expect(faultsOf({ ...once, filter: 'eq(name, "x' })).toEqual([
      fault('filter', 'the filter cannot be used: this text has no closing quote (at character 10)'),
    ])
    expect(faultsOf({ ...once, filter: 'eq(name, ""' })).toEqual([fault('filter', message)])
    expect(faultsOf({ ...once, filter: ' ' })[0]?.message).toContain('the filter is empty')
  })
})

describe('the fields of an export', () => {
  it('are any of the exportable ones, each once', () => {
    expect(faultsOf({ ...once, export_fields: ['id', 'name'] })).toEqual([])
    expect(faultsOf({ ...once, export_fields: [...EXPORTABLE_FIELDS] })).toEqual([])
    expect(faultsOf({ ...once, export_fields: null })).toEqual([])
    expect(faultsOf({ ...once, export_fields: ['id', 'nome'] })[0]?.path).toEqual(['export_fields', 1])
    expect(faultsOf({ ...once, export_fields: ['id', 'name', 'id'] })).toEqual([
      fault('export_fields', 'export_fields must not name a field twice'),
    ])
  })

  it('are the twenty-nine of the specification, in its order', () => {
    expect(EXPORTABLE_FIELDS).toHaveLength(29)
    expect(new Set(EXPORTABLE_FIELDS).size).toBe(29)
    expect(EXPORTABLE_FIELDS.slice(0, 3)).toEqual(['id', 'tenant_id', 'session_id'])
    expect(EXPORTABLE_FIELDS.at(-1)).toBe('first_token_time')
  })
})

describe('a change of an export', () => {
  it.each([{}, { status: 'Cancelled' }, { status: 'CANCELLED' }, { status: ' cancelled ' }])('may be %j', (body) => {
    expect(bulkExportPatchSchema.safeParse(body).success).toBe(true)
  })

  it('is its cancellation when nothing is said', () => {
    expect(bulkExportPatchSchema.parse({})).toEqual({ status: 'Cancelled' })
  })

  it.each(['Completed', 'RUNNING', 'Canceled', ''])('may not be the status %j', (status) => {
    const { error } = bulkExportPatchSchema.safeParse({ status })
    expect(error?.issues.map(({ message }) => message)).toEqual([
      "status should be 'Cancelled': nothing else of an export can change",
    ])
  })
})

test('what was not found is named', () => {
  expect(exportNotFound(DESTINATION)).toBe(`Bulk export ${DESTINATION} not found.`)
  expect(exportRunNotFound(PROJECT)).toBe(`Bulk export run ${PROJECT} not found.`)
})
