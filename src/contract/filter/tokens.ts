import { FilterError } from './filter-error.ts'

/** The smallest pieces of a filter text; `position` is the first character's place. */
export type Token =
  | { readonly kind: 'name'; readonly name: string; readonly position: number }
  | { readonly kind: 'text'; readonly value: string; readonly position: number }
  | { readonly kind: 'number'; readonly value: number; readonly position: number }
  | { readonly kind: 'mark'; readonly mark: '(' | ')' | '[' | ']' | ','; readonly position: number }
  | { readonly kind: 'end'; readonly position: number }

const SPACE = /\s+/y
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y
const NUMBER = /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y
const MARK = /[()[\],]/y
const PLAIN_TEXT = /[^"'\\]+/y
const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  f: '\f',
  '/': '/',
  '\\': '\\',
  '"': '"',
  "'": "'",
}

/** @throws {FilterError} for a character that begins nothing, and for a text that does not end. */
export function tokenise(source: string): Token[] {
  const tokens: Token[] = []
  let position = 0
  const take = (expression: RegExp): string | null => {
    expression.lastIndex = position
    return expression.exec(source)?.[0] ?? null
  }
  while (position < source.length) {
    const space = take(SPACE)
    if (space !== null) {
      position += space.length
      continue
    }
    const quote = source[position]
    if (quote === '"' || quote === "'") {
      const { value, end } = readText(source, position)
      tokens.push({ kind: 'text', value, position })
      position = end
      continue
    }
    const found = take(NAME) ?? take(NUMBER) ?? take(MARK)
    if (found === null) throw new FilterError(`unexpected character ${JSON.stringify(characterAt(source, position))}`, position)
    tokens.push(toToken(found, position))
    position += found.length
  }
  tokens.push({ kind: 'end', position })
  return tokens
}

function toToken(found: string, position: number): Token {
  if (found === '(' || found === ')' || found === '[' || found === ']' || found === ',')
    return { kind: 'mark', mark: found, position }
  if (/^[A-Za-z_]/.test(found)) return { kind: 'name', name: found, position }
  const value = Number(found)
  if (!Number.isFinite(value)) throw new FilterError(`the number ${found} is too large`, position)
  return { kind: 'number', value, position }
}

/** A text in double or single quotes, with the escapes of JSON, and `\'`. */
function readText(source: string, start: number): { value: string; end: number } {
  const quote = source[start]
  let value = ''
  let position = start + 1
  while (position < source.length) {
    const character = source[position]
    if (character === quote) return { value: judgeText(value, start), end: position + 1 }
    if (character === '\\') {
      const { text, length } = readEscape(source, position)
      value += text
      position += length
      continue
    }
    PLAIN_TEXT.lastIndex = position
    const plain = PLAIN_TEXT.exec(source)?.[0] ?? (character as string)
    value += plain
    position += plain.length
  }
  throw new FilterError('this text has no closing quote', start)
}

function readEscape(source: string, position: number): { text: string; length: number } {
  const letter = source[position + 1] ?? ''
  if (letter === 'u') {
    const digits = /^[0-9a-fA-F]{4}/.exec(source.slice(position + 2, position + 6))?.[0]
    if (digits === undefined) throw new FilterError('\\u needs four hexadecimal digits', position)
    return { text: String.fromCharCode(Number.parseInt(digits, 16)), length: 6 }
  }
  const text = ESCAPES[letter]
  // `\%` and `\_` belong to the patterns of `like`, and reach it as they are.
  return text === undefined ? { text: `\\${letter}`, length: 1 + letter.length } : { text, length: 2 }
}

/** The store holds neither NUL characters nor halves of surrogate pairs: nothing could match them. */
function judgeText(value: string, position: number): string {
  if (value.includes('\0')) throw new FilterError('a text must not contain a NUL character', position)
  if (!value.isWellFormed()) throw new FilterError('a text must not contain half of a surrogate pair', position)
  return value
}

function characterAt(source: string, position: number): string {
  return String.fromCodePoint(source.codePointAt(position) as number)
}
