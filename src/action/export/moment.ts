import { EXPORT_DAYS_MAX } from '../../contract/bulk-export.ts'
import { toInstant } from '../../contract/instant.ts'
import type { Parsed } from '../parse/parsed.ts'

/** A time that is fixed (UTC with microseconds), or so many milliseconds before the export begins. */
export type Moment = { at: string } | { beforeMs: number }

export const MOMENT_RULE =
  'ISO 8601 such as 2026-08-19T00:00:00Z (UTC, unless it has a zone), now, or a time before now such as -24h, -7d or -1h30m'

const RELATIVE = /^-(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s)?$/
const DAY_MS = 86_400_000

export function parseMoment(text: string): Parsed<Moment> {
  if (text === 'now') return { value: { beforeMs: 0 } }
  if (text.toLowerCase() === 'now') return { problem: 'is not a time', fix: 'write now' }
  const relative = RELATIVE.exec(text)
  if (relative !== null && text !== '-') {
    const [d, h, m, s] = relative.slice(1).map((part) => Number(part ?? 0)) as [number, number, number, number]
    const beforeMs = d * DAY_MS + h * 3_600_000 + m * 60_000 + s * 1000
    if (beforeMs > EXPORT_DAYS_MAX * DAY_MS) return { problem: `is more than ${EXPORT_DAYS_MAX} days ago` }
    return { value: { beforeMs } }
  }
  if (/^\d+[dhms]/.test(text)) return { problem: 'is not a time', fix: `write -${text} for a time before now` }
  const at = /^\d{4}-/.test(text) ? toInstant(text) : null
  if (at === null) return { problem: 'is not a time' }
  // The bounds of the contract: other years are slips of the pen.
  return at >= '1900' && at < '2201' ? { value: { at } } : { problem: 'is in a year that cannot be meant' }
}

/** The moment as UTC ISO 8601, which is what is sent. */
export function resolveMoment(moment: Moment, now: number): string {
  if ('at' in moment) return moment.at
  return new Date(now - moment.beforeMs).toISOString()
}
