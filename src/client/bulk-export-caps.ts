import type { RequestFailure } from './failure.ts'

/**
 * Caps on exports that are answered with the 429 of a rate limit (hosted service): `hourly`: exports that a workspace may create
 * in an hour; `schedules`: its active schedules. Waiting as for a rate limit helps with neither.
 */
export type ExportCap = 'hourly' | 'schedules'

/** The cap that a failed creation ran into; undefined for anything else, such as a rate limit. Told by the words alone. */
export function capOf({ status, detail }: Pick<RequestFailure, 'status' | 'detail'>): ExportCap | undefined {
  if (status !== 429 || detail === null) return undefined
  if (/\bexports?\b/i.test(detail) && /\bhour/i.test(detail)) return 'hourly'
  return /\bschedule[ds]?\b/i.test(detail) ? 'schedules' : undefined
}
