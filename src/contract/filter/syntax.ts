import { FilterError } from './filter-error.ts'
import { type Token, tokenise } from './tokens.ts'

/** What a filter text says, before anybody looked at what it means. */
export interface Call {
  readonly kind: 'call'
  readonly name: string
  readonly arguments: readonly Argument[]
  readonly position: number
}
export interface Name {
  readonly kind: 'name'
  readonly name: string
  readonly position: number
}
export type LiteralValue = string | number | boolean | null
export interface Literal {
  readonly kind: 'literal'
  readonly value: LiteralValue
  readonly position: number
}
export interface List {
  readonly kind: 'list'
  readonly items: readonly Literal[]
  readonly position: number
}
export type Argument = Call | Name | Literal | List

const DEPTH_MAX = 64
const CALLS_MAX = 500
const ITEMS_MAX = 1000
const CONSTANTS: Readonly<Record<string, boolean | null>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  null: null,
  None: null,
}

/**
 * Reads `name(argument, …)`, where an argument is a call again, the name of a field, a text, a number, `true`, `false`, `null`,
 * or a list in brackets.
 * @throws {FilterError}
 */
export function parseSyntax(source: string): Call {
  const reader = createReader(tokenise(source))
  const first = reader.peek()
  if (first.kind === 'end') throw new FilterError('the filter is empty', 0)
  const call = readArgument(reader, 1)
  if (call.kind !== 'call') throw new FilterError('a filter is a call such as eq(name, "…")', call.position)
  const rest = reader.peek()
  if (rest.kind !== 'end') throw new FilterError(`unexpected ${describe(rest)} after the end of the filter`, rest.position)
  return call
}

interface Reader {
  peek(): Token
  next(): Token
  /** Counts a call against the bound. */
  countCall(position: number): void
}

function createReader(tokens: readonly Token[]): Reader {
  let index = 0
  let calls = 0
  const peek = () => tokens[Math.min(index, tokens.length - 1)] as Token
  return {
    peek,
    next: () => {
      const token = peek()
      index += 1
      return token
    },
    countCall: (position) => {
      calls += 1
      if (calls > CALLS_MAX) throw new FilterError(`a filter has at most ${CALLS_MAX} calls`, position)
    },
  }
}

function readArgument(reader: Reader, depth: number): Argument {
  const token = reader.next()
  if (token.kind === 'text' || token.kind === 'number') return { kind: 'literal', value: token.value, position: token.position }
  if (isMark(token, '[')) return readList(reader, token.position)
  if (token.kind !== 'name') throw new FilterError(`expected a call, a field or a value, not ${describe(token)}`, token.position)
  if (isMark(reader.peek(), '(')) return readCall(reader, { name: token.name, position: token.position, depth })
  const constant = Object.hasOwn(CONSTANTS, token.name) ? CONSTANTS[token.name] : undefined
  if (constant !== undefined) return { kind: 'literal', value: constant, position: token.position }
  return { kind: 'name', name: token.name, position: token.position }
}

function readCall(reader: Reader, { name, position, depth }: { name: string; position: number; depth: number }): Call {
  if (depth > DEPTH_MAX) throw new FilterError(`a filter is at most ${DEPTH_MAX} calls deep`, position)
  reader.countCall(position)
  reader.next()
  const items = readItems(reader, { close: ')', read: () => readArgument(reader, depth + 1) })
  return { kind: 'call', name, arguments: items, position }
}

function readList(reader: Reader, position: number): List {
  const items = readItems(reader, {
    close: ']',
    read: () => {
      const item = readArgument(reader, DEPTH_MAX)
      if (item.kind !== 'literal') throw new FilterError('a list holds texts and numbers only', item.position)
      return item
    },
  })
  return { kind: 'list', items, position }
}

/** What stands between the brackets; a comma after the last item is no fault. */
function readItems<T>(reader: Reader, { close, read }: { close: ')' | ']'; read: () => T }): T[] {
  const items: T[] = []
  for (;;) {
    const token = reader.peek()
    if (isMark(token, close)) {
      reader.next()
      return items
    }
    items.push(read())
    if (items.length > ITEMS_MAX) throw new FilterError(`at most ${ITEMS_MAX} items can stand here`, token.position)
    const after = reader.next()
    if (isMark(after, close)) return items
    if (!isMark(after, ',')) throw new FilterError(`expected "," or "${close}", not ${describe(after)}`, after.position)
  }
}

function isMark(token: Token, mark: Extract<Token, { kind: 'mark' }>['mark']): boolean {
  return token.kind === 'mark' && token.mark === mark
}

function describe(token: Token): string {
  switch (token.kind) {
    case 'name':
      return `"${token.name}"`
    case 'text':
      return 'a text'
    case 'number':
      return `the number ${token.value}`
    case 'mark':
      return `"${token.mark}"`
    case 'end':
      return 'the end of the filter'
  }
}
