import type { Filter, Condition, FilterValue } from '../../../../src/contract/filter/filter.ts'

/**
 * What the oracle needs to know of a run: plain values, times in the store's form, JSON as values and as the text that was sent.
 */
export interface OracleRun {
  readonly scalars: Readonly<Record<string, string | number | boolean | null>>
  readonly tags: readonly string[]
  readonly json: Readonly<Record<'inputs' | 'outputs' | 'metadata', unknown>>
  readonly texts: Readonly<Record<'inputs' | 'outputs', string | null>>
  readonly feedback: readonly Readonly<Record<'key' | 'value' | 'score' | 'comment' | 'source', string | number | null>>[]
}

/** Whether a run meets a filter, said as plainly as possible: what the SQL has to agree with. */
export function meets(run: OracleRun, filter: Filter): boolean {
  switch (filter.kind) {
    case 'and':
      return filter.operands.every((operand) => meets(run, operand))
    case 'or':
      return filter.operands.some((operand) => meets(run, operand))
    case 'not':
      return !meets(run, filter.operand)
    case 'scalar':
      return holds(run.scalars[filter.field] ?? null, filter.condition)
    case 'tag':
      return run.tags.includes(filter.tag)
    case 'members': {
      const value = run.json[filter.field]
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
      return filter.members.every(
        ([key, member]) => Object.hasOwn(value, key) && same((value as Record<string, unknown>)[key], member),
      )
    }
    case 'search': {
      const written = JSON.stringify(filter.text).slice(1, -1)
      if (filter.field === 'metadata') {
        return pairs(run.json.metadata).some(({ key, value }) => contains(key, filter.text) || contains(value, filter.text))
      }
      if (filter.field !== null) return contains(run.texts[filter.field], written)
      const { name, error } = run.scalars
      return (
        contains(name, filter.text) ||
        contains(error, filter.text) ||
        contains(run.texts.inputs, written) ||
        contains(run.texts.outputs, written)
      )
    }
    case 'element': {
      const elements: readonly Readonly<Record<string, unknown>>[] =
        filter.collection === 'feedback' ? run.feedback : pairs(run.json[filter.collection])
      const found = elements.some((element) =>
        filter.conditions.every(({ part, condition }) => holds((element[part] ?? null) as FilterValue, condition)),
      )
      return found !== filter.absent
    }
  }
}

function holds(subject: FilterValue, condition: Condition): boolean {
  switch (condition.operator) {
    case 'eq':
      return subject === condition.value
    case 'neq':
      return subject !== condition.value
    case 'in':
      return condition.values.some((value) => value === subject)
    case 'like':
      return typeof subject === 'string' && toExpression(condition.pattern).test(subject)
    case 'search':
      return contains(subject, condition.text)
    default: {
      const { operator, value } = condition
      if (subject === null || value === null) return false
      if (operator === 'gt') return subject > value
      if (operator === 'gte') return subject >= value
      return operator === 'lt' ? subject < value : subject <= value
    }
  }
}

function toExpression(pattern: string): RegExp {
  let source = ''
  for (let index = 0; index < pattern.length; index += 1) {
    const character = pattern[index] as string
    if (character === '%') source += '.*'
    else if (character === '_') source += '.'
    else {
      const literal = character === '\\' ? (pattern[(index += 1)] as string) : character
      source += literal.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
    }
  }
  return new RegExp(`^${source}$`, 'su')
}

function contains(subject: unknown, text: string): boolean {
  return typeof subject === 'string' && asciiLower(subject).includes(asciiLower(text))
}

function asciiLower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

function pairs(value: unknown, path: string | null = null): { key: string; value: string | null }[] {
  if (Array.isArray(value)) return value.flatMap((item) => [...leaf(item, path), ...pairs(item, path)])
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, item]) => {
    const key = path === null ? name : `${path}.${name}`
    return [...leaf(item, key), ...pairs(item, key)]
  })
}

function leaf(value: unknown, key: string | null): { key: string; value: string | null }[] {
  if (key === null) return []
  return [{ key, value: typeof value === 'object' ? null : String(value) }]
}

function same(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [keys, others] = [Object.keys(a), Object.keys(b)]
  return (
    keys.length === others.length &&
    keys.every((key) => Object.hasOwn(b, key) && same((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]))
  )
}
