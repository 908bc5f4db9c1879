import { z } from 'zod'

/** The statuses of an export run (specification 3.2). */
export const EXPORT_RUN_STATUSES = ['CREATED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMEDOUT'] as const
export type ExportRunStatus = (typeof EXPORT_RUN_STATUSES)[number]

/** Those of an export. `INTERVAL_SCHEDULED`: a schedule, which spawns exports and never runs itself (hosted service). */
export const EXPORT_STATUSES = [...EXPORT_RUN_STATUSES, 'INTERVAL_SCHEDULED'] as const
export type ExportStatus = (typeof EXPORT_STATUSES)[number]

export const FINAL_EXPORT_STATUSES = ['COMPLETED', 'FAILED', 'CANCELLED', 'TIMEDOUT'] as const satisfies readonly ExportRunStatus[]

export const exportStatusSchema = z.enum(EXPORT_STATUSES)
export const exportRunStatusSchema = z.enum(EXPORT_RUN_STATUSES)

/** The words of the hosted service for the same statuses. */
export const VENDOR_EXPORT_STATUS: Readonly<Record<string, string>> = {
  CREATED: 'Created',
  RUNNING: 'Running',
  COMPLETED: 'Completed',
  FAILED: 'Failed',
  CANCELLED: 'Cancelled',
  TIMEDOUT: 'TimedOut',
  INTERVAL_SCHEDULED: 'IntervalScheduled',
}

const SPEC_EXPORT_STATUS = new Map(Object.entries(VENDOR_EXPORT_STATUS).map(([spec, vendor]) => [vendor.toUpperCase(), spec]))

/** A status of an export or an export run in any letter case of either dialect, in the contract's words; an unknown one in upper case. */
export function readExportStatus(text: string): string {
  const upper = text.trim().toUpperCase()
  return SPEC_EXPORT_STATUS.get(upper) ?? upper
}

export function isFinalExportStatus(status: string): boolean {
  return (FINAL_EXPORT_STATUSES as readonly string[]).includes(status)
}
