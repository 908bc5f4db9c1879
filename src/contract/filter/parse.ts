import { toInstant } from '../instant.ts'
import {
  FIELD_ALIASES,
  FILTER_FIELDS,
  JSON_FIELDS,
  type JsonField,
  PART_FIELDS,
  type PartField,
  SCALAR_FIELDS,
  type ScalarField,
  type ScalarType,
} from './fields.ts'
import type { Comparison, Condition, Filter, FilterValue, PartCondition } from './filter.ts'
import { FilterError } from './filter-error.ts'
import { type Argument, type Call, type List, type Literal, type Name, parseSyntax } from './syntax.ts'

const COMPARISONS = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte'] satisfies Comparison[]
const OPERATORS: readonly string[] = ['and', 'or', 'not', ...COMPARISONS, 'has', 'in', 'like', 'search']
const ORDERED: readonly ScalarType[] = ['time', 'duration', 'number']
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 }

/**
 * Reads a filter expression (hosted service) and checks it: operators, how many arguments they take, fields, and the kinds of
 * values.
 * @throws {FilterError} with the place of the first fault.
 */
export function parseFilter(source: string): Filter {
  return toFilter(parseSyntax(source))
}

function toFilter(call: Call): Filter {
  if (call.name === 'and' || call.name === 'or') return toJunction(call, call.name)
  if (call.name === 'not') {
    const [operand] = takeOne(call, 'one condition')
    return { kind: 'not', operand: toFilter(asCall(operand)) }
  }
  if (call.name === 'has') return toHas(call)
  if (call.name === 'search') return toSearch(call)
  return toComparison(call)
}

/**
 * Parts of one collection that stand side by side in an `and` speak of one element: `and(eq(feedback_key, "a"),
 * gt(feedback_score, 0.5))` wants one piece of feedback that is both. A part that was named already, joined by `eq`, begins the
 * next element.
 */
function toJunction(call: Call, kind: 'and' | 'or'): Filter {
  if (call.arguments.length === 0) throw new FilterError(`${kind}(…) needs at least one condition`, call.position)
  const operands: Filter[] = []
  const elements: PartCall[][] = []
  for (const argument of call.arguments) {
    const inner = asCall(argument)
    const part = kind === 'and' ? toPartCondition(inner) : null
    if (part === null) operands.push(toFilter(inner))
    else addToElement(elements, part)
  }
  return { kind, operands: [...operands, ...elements.flatMap(toElements)] }
}

interface PartCall extends PartCondition {
  readonly collection: (typeof PART_FIELDS)[PartField]['collection']
}

function addToElement(elements: PartCall[][], part: PartCall): void {
  const open = elements.findLast(([first]) => first?.collection === part.collection)
  const repeated = part.part === 'key' && open?.some((other) => other.part === 'key')
  if (open === undefined || repeated) elements.push([part])
  else open.push(part)
}

/** `neq` without another part means that no element is so: `neq(metadata_key, "phone")` are the runs without that key. */
function toElements(parts: readonly PartCall[]): Filter[] {
  const denied = parts.flatMap(({ collection, part, condition }): Filter[] => {
    if (condition.operator !== 'neq') return []
    return [
      {
        kind: 'element',
        collection,
        conditions: [{ part, condition: { operator: 'eq', value: condition.value } }],
        absent: true,
      },
    ]
  })
  if (denied.length === parts.length) return denied
  const [first] = parts as readonly [PartCall, ...PartCall[]]
  const conditions = parts.map(({ part, condition }) => ({ part, condition }))
  return [{ kind: 'element', collection: first.collection, conditions, absent: false }]
}

/** A condition on a part of a collection, or on a field that a run has once. */
function toComparison(call: Call): Filter {
  const part = toPartCondition(call)
  if (part !== null) return toElements([part])[0] as Filter
  const [first] = call.arguments
  if (first?.kind !== 'name')
    throw new FilterError(`${call.name}(…) begins with the name of a field`, first?.position ?? call.position)
  const field = toScalarField(first, call.name)
  const { type, nullable } = SCALAR_FIELDS[field]
  return { kind: 'scalar', field, condition: toCondition(call, { field: first, type, nullable, loose: false }) }
}

/** Null when the call is not about a part of a collection. */
function toPartCondition(call: Call): PartCall | null {
  if (!OPERATORS.includes(call.name)) {
    throw new FilterError(`unknown operator "${call.name}": the operators are ${OPERATORS.join(', ')}`, call.position)
  }
  const [first] = call.arguments
  if (['and', 'or', 'not', 'has'].includes(call.name) || first?.kind !== 'name' || !Object.hasOwn(PART_FIELDS, first.name))
    return null
  const { collection, part, type } = PART_FIELDS[first.name as PartField]
  return { collection, part, condition: toCondition(call, { field: first, type, nullable: false, loose: true }) }
}

function toScalarField(name: Name, operator: string): ScalarField {
  if (Object.hasOwn(SCALAR_FIELDS, name.name)) return name.name as ScalarField
  const alias = Object.hasOwn(FIELD_ALIASES, name.name) ? FIELD_ALIASES[name.name] : undefined
  if (alias !== undefined) return alias
  if (FILTER_FIELDS.includes(name.name)) {
    throw new FilterError(`${name.name} cannot be used with ${operator}(…): use has(${name.name}, …)`, name.position)
  }
  throw unknownField(name)
}

function unknownField(name: Name): FilterError {
  return new FilterError(`unknown field "${name.name}": the fields are ${FILTER_FIELDS.join(', ')}`, name.position)
}

interface Expected {
  readonly field: Name
  readonly type: ScalarType
  readonly nullable: boolean
  /** Numbers and booleans count as their text: values in JSON are compared as texts. */
  readonly loose: boolean
}

function toCondition(call: Call, expected: Expected): Condition {
  const [, value] = takeTwo(call, 'a field and a value')
  const { type, field } = expected
  switch (call.name) {
    case 'in': {
      if (type === 'boolean') throw new FilterError(`${field.name} is true or false: use eq`, call.position)
      const list = asList(value)
      return {
        operator: 'in',
        values: list.items.map((item) => toValue(item, { ...expected, nullable: false }) as string | number),
      }
    }
    case 'like':
    case 'search': {
      if (type !== 'text')
        throw new FilterError(`${call.name}(…) takes a field with text, and ${field.name} has none`, field.position)
      const text = asText(value)
      if (call.name === 'search') return { operator: 'search', text }
      if (/(?:^|[^\\])(?:\\\\)*\\$/.test(text)) throw new FilterError('a pattern must not end with a backslash', value.position)
      return { operator: 'like', pattern: text }
    }
    default: {
      const operator = call.name as Comparison
      const ordering = operator !== 'eq' && operator !== 'neq'
      if (ordering && !ORDERED.includes(type)) {
        throw new FilterError(`${operator}(…) takes numbers and times, and ${field.name} is neither`, field.position)
      }
      return { operator, value: toValue(asLiteral(value), { ...expected, nullable: expected.nullable && !ordering }) }
    }
  }
}

function toValue(literal: Literal, { field, type, nullable, loose }: Expected): FilterValue {
  const { value, position } = literal
  const wrong = (wanted: string) =>
    new FilterError(`${field.name} is compared with ${wanted}, not with ${JSON.stringify(value)}`, position)
  if (value === null) {
    if (nullable) return null
    throw new FilterError(`${field.name} cannot be compared with null here`, position)
  }
  switch (type) {
    case 'boolean':
      if (typeof value !== 'boolean') throw wrong('true or false')
      return value
    case 'number':
      if (typeof value !== 'number') throw wrong('a number')
      return value
    case 'duration': {
      const seconds = toSeconds(value)
      if (seconds === null) throw wrong('seconds, or a text such as "1.5s"')
      return seconds
    }
    case 'time': {
      const instant = toInstant(value)
      if (instant === null) throw wrong('a time such as "2026-11-20T08:00:00Z"')
      return instant
    }
    case 'uuid':
      if (typeof value !== 'string' || !UUID.test(value)) throw wrong('a UUID')
      return value.toLowerCase()
    case 'text':
      if (typeof value === 'string') return value
      if (loose) return String(value)
      throw wrong('a text')
  }
}

function toSeconds(value: string | number | boolean): number | null {
  if (typeof value === 'number') return value
  const found = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/.exec(String(value))
  return found === null ? null : Number(found[1]) * (DURATION_UNITS[found[2] as string] as number)
}

function toHas(call: Call): Filter {
  const [field, value] = takeTwo(call, 'a field and a value')
  if (field.kind !== 'name') throw new FilterError('has(…) begins with the name of a field', field.position)
  if (field.name === 'tags') return { kind: 'tag', tag: asText(value) }
  if (isJsonField(field.name)) return { kind: 'members', field: field.name, members: toMembers(value) }
  if (!FILTER_FIELDS.includes(field.name) && !Object.hasOwn(FIELD_ALIASES, field.name)) throw unknownField(field)
  throw new FilterError(
    `has(…) takes tags, ${JSON_FIELDS.join(', ')}, and ${field.name} is none of them: use eq(${field.name}, …)`,
    field.position,
  )
}

/** A JSON object in a text: `'{"user": "7"}'`. */
function toMembers(argument: Argument): (readonly [string, unknown])[] {
  const value = parseObject(asText(argument))
  if (value === null) {
    throw new FilterError(`expected a JSON object in a text, such as '{"user": "7"}'`, argument.position)
  }
  // What the escapes of the JSON hide is no more allowed than in the text itself. Behind an odd backslash a `u` is an escape.
  if (/(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/.test(JSON.stringify(value))) {
    throw new FilterError('the JSON must not contain NUL characters or halves of surrogate pairs', argument.position)
  }
  return Object.entries(value)
}

/** Null for a text that is no JSON object. */
function parseObject(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

function toSearch(call: Call): Filter {
  const [first] = call.arguments
  if (call.arguments.length === 1) return { kind: 'search', field: null, text: asText(first as Argument) }
  if (first?.kind === 'name' && isJsonField(first.name)) {
    const [, text] = takeTwo(call, 'a field and a text')
    return { kind: 'search', field: first.name, text: asText(text) }
  }
  return toComparison(call)
}

function takeOne(call: Call, meaning: string): readonly [Argument] {
  return takeArguments(call, 1, meaning) as readonly [Argument]
}

function takeTwo(call: Call, meaning: string): readonly [Argument, Argument] {
  return takeArguments(call, 2, meaning) as readonly [Argument, Argument]
}

function takeArguments(call: Call, count: number, meaning: string): readonly Argument[] {
  if (call.arguments.length !== count) {
    throw new FilterError(`${call.name}(…) takes ${meaning}, and has ${call.arguments.length} arguments`, call.position)
  }
  return call.arguments
}

function asCall(argument: Argument): Call {
  if (argument.kind === 'call') return argument
  throw new FilterError('expected a condition such as eq(name, "…")', argument.position)
}

function asLiteral(argument: Argument): Literal {
  if (argument.kind === 'literal') return argument
  if (argument.kind === 'name') {
    throw new FilterError(`expected a value, not the name ${argument.name}: texts stand in quotes`, argument.position)
  }
  throw new FilterError('expected a value', argument.position)
}

function asText(argument: Argument): string {
  const { value, position } = asLiteral(argument)
  if (typeof value !== 'string') throw new FilterError('expected a text in quotes', position)
  return value
}

function asList(argument: Argument): List {
  if (argument.kind !== 'list') throw new FilterError('in(…) takes a list such as ["a", "b"]', argument.position)
  if (argument.items.length === 0) throw new FilterError('the list is empty', argument.position)
  return argument
}

function isJsonField(name: string): name is JsonField {
  return JSON_FIELDS.some((field) => field === name)
}
