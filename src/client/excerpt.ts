import { isRecord } from '../contract/record.ts'
import { hideJsonSecrets, type Redact } from './redaction.ts'

export const EXCERPT_MAX_BYTES = 2048
/** So much is redacted to show the first 2 KB of it: what a shorter text in place of secrets lets move up is redacted, too. */
const REDACTED_CHARACTERS = 262_144
const DETAIL_MAX_LINES = 20
const DETAIL_LINE_MAX = 500

/** One line without control characters: they could end the line, colour a terminal or turn the reading direction. */
export function plainText(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/\p{Cf}/gu, '')
    .trim()
}

/** Redacted twice: a control character inside a secret would hide it from the first time. */
export function safeText(text: string, redact: Redact): string {
  return redact(plainText(redact(text)))
}

/** The beginning of a body, fit to be printed; null when nothing is left of it. */
export function excerptOf(body: string, redact: Redact): string | null {
  const safe = safeText(hideJsonSecrets(body.slice(0, REDACTED_CHARACTERS)), redact)
  return safe === '' ? null : cutBytes(safe, EXCERPT_MAX_BYTES)
}

/**
 * The service's own words in the body of a refusal: `detail`, `message` or `error`, a bare JSON string, or the faults of a 422,
 * one a line with its place (`body.source_revision_config.repo_ref: message`). Null when there are none.
 */
export function detailOf(body: string, redact: Redact): string | null {
  const lines = linesOf(parseJson(body)).map((line) => safeText(line, redact)).filter((line) => line !== '')
  if (lines.length === 0) return null
  const shown = lines.slice(0, DETAIL_MAX_LINES).map((line) => cutCharacters(line, DETAIL_LINE_MAX))
  if (lines.length > DETAIL_MAX_LINES) shown.push(`… and ${lines.length - DETAIL_MAX_LINES} more`)
  return shown.join('\n')
}

/** At most `max` bytes of UTF-8, never half a character. */
export function cutBytes(text: string, max: number): string {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= max) return text
  let end = max - Buffer.byteLength('…')
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return `${bytes.toString('utf8', 0, end)}…`
}

function cutCharacters(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1).toWellFormed()}…`
}

function linesOf(body: unknown): string[] {
  if (typeof body === 'string') return [body]
  if (!isRecord(body)) return []
  for (const name of ['detail', 'message', 'error', 'errors']) {
    const lines = wordsOf(body[name])
    if (lines.length > 0) return lines
  }
  return []
}

function wordsOf(value: unknown): string[] {
  if (typeof value === 'string') return value === '' ? [] : [value]
  if (Array.isArray(value)) return value.flatMap(faultOf)
  return isRecord(value) ? linesOf({ detail: value['detail'], message: value['message'] ?? value['msg'] }) : []
}

function faultOf(fault: unknown): string[] {
  if (typeof fault === 'string') return [fault]
  if (!isRecord(fault)) return []
  const message = fault['msg'] ?? fault['message']
  const words = typeof message === 'string' ? message : 'not valid'
  const loc = fault['loc']
  return [Array.isArray(loc) && loc.length > 0 ? `${loc.map(String).join('.')}: ${words}` : words]
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
