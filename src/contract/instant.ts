const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?$/i
const NUMERIC = /^\d{9,19}(?:\.\d{1,9})?$/
const YEAR_MAX_MS = Date.UTC(9999, 11, 31, 23, 59, 59)
const YEAR_MIN_MS = Date.parse('0001-01-01T00:00:00Z')

/**
 * A time as clients write it, brought to UTC in microseconds: `2024-04-29T00:49:12.090000Z`. Accepted: ISO 8601 with up to nine
 * decimals (cut to six), with a zone or without (then it is UTC), and numbers since 1970 in seconds, milliseconds, microseconds
 * or nanoseconds, told apart by their size. Null for anything else.
 */
export function toInstant(value: unknown): string | null {
  if (typeof value === 'number') return fromNumber(value)
  if (typeof value !== 'string') return null
  const text = value.trim()
  if (NUMERIC.test(text)) return fromNumber(Number(text))
  const found = ISO.exec(text)
  if (found === null) return null
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', zone = ''] = found
  const written = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  // `Date` turns 31 February into March: a day that comes back changed is none.
  if (Number.isNaN(written) || new Date(written).getUTCDate() !== Number(day)) return null
  return toIso(written - offsetMs(zone), Number(fraction.padEnd(6, '0').slice(0, 6)))
}

/** Sizes of today's number in each unit are a factor of 1000 apart; the bounds lie between them. */
function fromNumber(value: number): string | null {
  if (!Number.isFinite(value) || value < 0) return null
  let microseconds = value / 1000
  if (value < 1e11) microseconds = value * 1e6
  else if (value < 1e14) microseconds = value * 1000
  else if (value < 1e17) microseconds = value
  const whole = Math.round(microseconds)
  return toIso(Math.floor(whole / 1e6) * 1000, whole % 1e6)
}

/** `Z`, and no zone, are UTC; the minutes may be missing. */
function offsetMs(zone: string): number {
  const sign = zone.startsWith('-') ? -1 : 1
  const digits = zone.slice(1).replace(':', '')
  return sign * (Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2))) * 60_000
}

/** `ms` is at a whole second. */
function toIso(ms: number, microseconds: number): string | null {
  if (ms < YEAR_MIN_MS || ms > YEAR_MAX_MS) return null
  return `${new Date(ms).toISOString().slice(0, 19)}.${String(microseconds).padStart(6, '0')}Z`
}
