import type { AnyValue, KeyValue } from './messages.ts'

/** The attributes of a span by name, as plain values. */
export type Attributes = ReadonlyMap<string, unknown>

export function readAttributes(pairs: readonly KeyValue[] | undefined): Attributes {
  return new Map((pairs ?? []).map(({ key, value }) => [key, readValue(value)]))
}

function readValue(value: AnyValue | null | undefined): unknown {
  if (value === null || value === undefined) return null
  if (value.stringValue !== undefined) return value.stringValue
  if (value.boolValue !== undefined) return value.boolValue
  if (value.intValue !== undefined) return toInteger(value.intValue)
  if (value.doubleValue !== undefined) return Number(value.doubleValue)
  if (value.arrayValue !== undefined) return (value.arrayValue.values ?? []).map(readValue)
  if (value.kvlistValue !== undefined) return Object.fromEntries(readAttributes(value.kvlistValue.values))
  return value.bytesValue ?? null
}

/** An integer beyond what a JavaScript number holds stays a text. */
function toInteger(value: string | number): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

/** The first of the attributes that is a text with something in it. */
export function textOf(attributes: Attributes, ...names: readonly string[]): string | null {
  for (const name of names) {
    const value = attributes.get(name)
    if (typeof value === 'string' && value !== '') return value
  }
  return null
}

/** The first of the attributes that is there; a text that holds JSON as what it holds. */
export function jsonOf(attributes: Attributes, ...names: readonly string[]): unknown {
  for (const name of names) {
    const value = attributes.get(name)
    if (value !== undefined && value !== null) return typeof value === 'string' ? parseOr(value) : value
  }
  return undefined
}

/** `gen_ai.prompt.0.role` and the like, put together as `[{"role": …}]`; undefined when there are none. */
export function indexedOf(attributes: Attributes, prefix: string): Record<string, unknown>[] | undefined {
  const items = new Map<number, Record<string, unknown>>()
  for (const [name, value] of attributes) {
    const found = name.startsWith(`${prefix}.`) ? /^(\d{1,4})\.(.+)$/.exec(name.slice(prefix.length + 1)) : null
    if (found === null) continue
    const index = Number(found[1])
    items.set(index, { ...items.get(index), [found[2] as string]: value })
  }
  if (items.size === 0) return undefined
  return [...items].toSorted(([a], [b]) => a - b).map(([, item]) => item)
}

/** JSON in a text as its value, else the text. Numbers and words stay texts. */
function parseOr(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
