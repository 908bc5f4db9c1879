import type { Parsed } from './parsed.ts'

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 } as const
const PATTERN = /^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?$/

/** Longest duration: the longest that a workflow on any runner can last, and short of what a timer can hold. */
const DURATION_MAX_MS = 7 * UNITS.d

/** Longest age of a preview. */
const AGE_MAX_MS = 365 * UNITS.d

export const AGE_RULE = 'whole numbers with the units d, h, m and s, the largest first, such as 12h or 7d; from 1s to 365d'

export const DURATION_RULE =
  'whole numbers with the units d, h, m and s, the largest first, such as 90s, 10m or 1h30m; from 1s to 7d'

/** `1h30m` as milliseconds. */
export function parseDuration(text: string): Parsed<number> {
  return parseUpTo(DURATION_MAX_MS, text)
}

/** `7d` as milliseconds, up to a year. */
export function parseAge(text: string): Parsed<number> {
  return parseUpTo(AGE_MAX_MS, text)
}

function parseUpTo(maxMs: number, text: string): Parsed<number> {
  if (/^\d+$/.test(text)) return { problem: 'has no unit', fix: `write ${text}s for seconds or ${text}m for minutes` }
  const match = PATTERN.exec(text)
  if (text === '' || match === null) return { problem: 'is not a duration' }
  const [, d, h, m, s] = match
  const milliseconds = Number(d ?? 0) * UNITS.d + Number(h ?? 0) * UNITS.h + Number(m ?? 0) * UNITS.m + Number(s ?? 0) * UNITS.s
  if (milliseconds < 1000) return { problem: 'is shorter than a second' }
  if (milliseconds > maxMs) return { problem: `is longer than ${maxMs / UNITS.d} days` }
  return { value: milliseconds }
}

/** Milliseconds for people: `1 h 30 min`, `4 min 5 s`, `12 s`, `0.4 s`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 50) return '0 s'
  if (milliseconds < 950) return `${(milliseconds / 1000).toFixed(1)} s`
  const seconds = Math.round(milliseconds / 1000)
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  if (hours > 0) return minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`
  if (minutes > 0) return rest === 0 ? `${minutes} min` : `${minutes} min ${rest} s`
  return `${rest} s`
}
