import { JSON_DEPTH_MAX } from '../../../contract/ingest.ts'

/** JSON as it is kept: its text, and its value for whoever derives something from it. */
export interface JsonText {
  readonly text: string
  readonly value: unknown
}

/**
 * Reads JSON for storing. The text stays as it was sent, except that escapes which the store or a search could not take (NUL,
 * halves of surrogate pairs, letters written as `\u…`) are written out; NUL becomes U+FFFD.
 * @throws {SyntaxError} with the reason.
 */
export function readJsonText(text: string): JsonText {
  judgeDepth(text)
  const value: unknown = JSON.parse(text)
  return text.includes('\\u') || text.includes('\\/') ? toJsonText(value) : { text, value }
}

/**
 * A value that was read as part of something larger, as JSON for storing.
 * @throws {SyntaxError} for one that is nested too deeply.
 */
export function toJsonText(value: unknown): JsonText {
  const text = stringify(value)
  judgeDepth(text)
  if (!text.includes('\\u')) return { text, value }
  const cleaned = cleanValue(value)
  return { text: JSON.stringify(cleaned), value: cleaned }
}

function stringify(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    throw new SyntaxError(`it is nested more than ${JSON_DEPTH_MAX} levels deep`)
  }
}

/** Text that the database can hold. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD')
}

function cleanValue(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (Array.isArray(value)) return value.map(cleanValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [cleanText(key), cleanValue(item)]))
}

/**
 * JSON that is nested without end would overflow the stack of whoever writes it out again.
 * @throws {SyntaxError} beyond the bound.
 */
function judgeDepth(text: string): void {
  if (text.length < JSON_DEPTH_MAX) return
  let depth = 0
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === QUOTE) {
      index = endOfString(text, index)
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1
      if (depth > JSON_DEPTH_MAX) throw new SyntaxError(`it is nested more than ${JSON_DEPTH_MAX} levels deep`)
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1
    }
  }
}

const QUOTE = 34
const OPEN_BRACKET = 91
const BACKSLASH = 92
const CLOSE_BRACKET = 93
const OPEN_BRACE = 123
const CLOSE_BRACE = 125

/** The place of the quotation mark that ends the string which begins at `start`. */
function endOfString(text: string, start: number): number {
  let index = start
  for (;;) {
    index = text.indexOf('"', index + 1)
    if (index === -1) return text.length
    let backslashes = 0
    while (text.charCodeAt(index - 1 - backslashes) === BACKSLASH) backslashes += 1
    if (backslashes % 2 === 0) return index
  }
}
