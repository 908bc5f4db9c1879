import type { ValidationError } from '../../contract/errors.ts'

/** Deepest nesting of a body, and how many values it may hold: far above any request, far below what could hurt. */
export const DEPTH_MAX = 64
export const VALUES_MAX = 20_000

export type ParsedJson = { ok: true; value: unknown } | { ok: false; errors: ValidationError[] }

/**
 * A body as JSON; an empty one is `undefined`, which a schema may allow. It is UTF-8 whatever its Content-Type says (RFC 8259), with or
 * without a byte order mark; of keys given twice the last one counts. The text of the parser's error is not passed on: it quotes the body.
 */
export function parseJsonBody(bytes: Uint8Array): ParsedJson {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return refused('JSON decode error: the body is not UTF-8', 'json_invalid')
  }
  if (text.trim() === '') return { ok: true, value: undefined }
  // Before it is parsed: what recurses over the result later must not run out of stack.
  if (depthOf(text) > DEPTH_MAX) return refused(`JSON decode error: nested deeper than ${DEPTH_MAX} levels`, 'json_invalid')
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch (error) {
    const position = / at position (\d+)/.exec((error as Error).message)?.[1]
    return refused('JSON decode error', 'json_invalid', position === undefined ? [] : [Number(position)])
  }
}

/** The deepest level of brackets outside strings. */
function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (inString) {
      if (character === '\\') at += 1
      else if (character === '"') inString = false
    } else if (character === '"') inString = true
    else if (character === '{' || character === '[') deepest = Math.max(deepest, (depth += 1))
    else if (character === '}' || character === ']') depth -= 1
  }
  return deepest
}

/**
 * Faults of a value that no schema would find: text that the database cannot hold (a NUL, half a surrogate pair), a number beyond any
 * double, a key that means something to JavaScript, too many values.
 */
export function findUnfit(value: unknown): ValidationError[] {
  const errors: ValidationError[] = []
  const waiting: { value: unknown; path: readonly (string | number)[] }[] = [{ value, path: [] }]
  for (let seen = 1; ; seen += 1) {
    const next = waiting.pop()
    if (next === undefined) return errors
    if (seen > VALUES_MAX) return [{ loc: [], msg: `Value error, it holds more than ${VALUES_MAX} values`, type: 'value_error' }]
    const fault = faultOf(next.value)
    if (fault !== null) errors.push({ loc: [...next.path], ...fault })
    if (typeof next.value !== 'object' || next.value === null) continue
    for (const [key, item] of Object.entries(next.value)) {
      const path = [...next.path, Array.isArray(next.value) ? Number(key) : key]
      const keyFault = key === '__proto__' ? { msg: 'Extra inputs are not permitted', type: 'extra_forbidden' } : faultOf(key)
      if (keyFault !== null) errors.push({ loc: path, ...keyFault })
      else waiting.push({ value: item, path })
    }
  }
}

function faultOf(value: unknown): { msg: string; type: string } | null {
  if (typeof value === 'number' && !Number.isFinite(value)) return { msg: 'Input should be a finite number', type: 'finite_number' }
  if (typeof value !== 'string') return null
  if (value.includes('\0')) return { msg: 'Value error, text must not contain a NUL character', type: 'value_error' }
  if (value.isWellFormed()) return null
  return { msg: 'Input should be a valid string, unable to parse raw data as a unicode string', type: 'string_unicode' }
}

function refused(msg: string, type: string, place: number[] = []): ParsedJson {
  return { ok: false, errors: [{ loc: ['body', ...place], msg, type }] }
}
