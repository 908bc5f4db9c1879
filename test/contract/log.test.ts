import { expect, test } from 'vitest'
import { logEntrySchema, logsResponseSchema } from '../../src/contract/log.ts'

const entry = { id: '1', timestamp: '2026-01-01T00:00:00.000Z', level: 'WARNING', message: 'm' }

test('a line of a log has an id, a time, a level and a message', () => {
  expect(logEntrySchema.parse(entry)).toEqual(entry)
  for (const changes of [{ id: 1 }, { timestamp: 'now' }, { level: 'WARN' }, { message: undefined }]) {
    expect(logEntrySchema.safeParse({ ...entry, ...changes }).error?.issues[0]?.path).toEqual(Object.keys(changes))
  }
})

test('a page of a log has lines, and where the next one begins', () => {
  expect(logsResponseSchema.safeParse({ logs: [entry], next_offset: null }).success).toBe(true)
  expect(logsResponseSchema.safeParse({ logs: [entry], next_offset: 'opaque' }).success).toBe(true)
  expect(logsResponseSchema.safeParse({ logs: [entry] }).success).toBe(false)
  expect(logsResponseSchema.safeParse({ logs: [{}], next_offset: null }).success).toBe(false)
})
