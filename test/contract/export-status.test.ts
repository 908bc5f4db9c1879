import { expect, test } from 'vitest'
import {
  EXPORT_RUN_STATUSES,
  EXPORT_STATUSES,
  exportRunStatusSchema,
  exportStatusSchema,
  isFinalExportStatus,
  readExportStatus,
} from '../../src/contract/export-status.ts'

test.each([
  ['Completed', 'COMPLETED'],
  ['TimedOut', 'TIMEDOUT'],
  ['timedout', 'TIMEDOUT'],
  ['IntervalScheduled', 'INTERVAL_SCHEDULED'],
  ['INTERVAL_SCHEDULED', 'INTERVAL_SCHEDULED'],
  [' cancelled\n', 'CANCELLED'],
  ['Paused', 'PAUSED'],
])('%j is read as %s', (text, status) => {
  expect(readExportStatus(text)).toBe(status)
})

test('four of six are final, and a schedule is not', () => {
  expect(EXPORT_STATUSES.filter(isFinalExportStatus)).toEqual(['COMPLETED', 'FAILED', 'CANCELLED', 'TIMEDOUT'])
  expect(isFinalExportStatus('PAUSED')).toBe(false)
})

test('a schedule is a status of exports, not of their runs', () => {
  expect([...EXPORT_RUN_STATUSES, 'INTERVAL_SCHEDULED']).toEqual([...EXPORT_STATUSES])
  expect(exportStatusSchema.safeParse('INTERVAL_SCHEDULED').success).toBe(true)
  expect(exportRunStatusSchema.safeParse('INTERVAL_SCHEDULED').success).toBe(false)
})
