/**
 * What to mask so that a sensitive value does not show: the runner masks every line of a value that it is given, however short,
 * so that a pretty-printed JSON value would blank every brace of the log. Here a value of several lines, or of JSON, is masked
 * by its parts, and no part is shorter than four characters or a word that every log is full of.
 */
const SHORTEST = 4
const COMMON = new Set(['true', 'false', 'null', 'none'])

export function masksOf(value: string): string[] {
  const parts = new Set<string>()
  const add = (part: string): void => {
    if (part.length >= SHORTEST && !COMMON.has(part.toLowerCase())) parts.add(part)
  }
  if (!/[\r\n]/.test(value)) add(value.trim())
  else for (const line of value.split(/[\r\n]+/)) add(line.trim())
  for (const leaf of jsonLeaves(value)) {
    for (const line of leaf.split(/[\r\n]+/)) add(line.trim())
  }
  return [...parts]
}

/**
 * Replaces every mask in a text, as it is and as JSON, an address or base64 would write it; the longest first, so that a mask inside
 * another one leaves no rest. The runner does the same for the log; this is for everything else, and for what splits a value.
 */
export function createRedactor(): { add: (masks: readonly string[]) => void; redact: (text: string) => string } {
  let known: string[] = []
  return {
    add: (masks) => {
      known = [...new Set([...known, ...masks.flatMap(formsOf)])].toSorted((a, b) => b.length - a.length)
    },
    redact: (text) => known.reduce((rest, mask) => rest.replaceAll(mask, '***'), text),
  }
}

export type Redactor = ReturnType<typeof createRedactor>

const ENTITIES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;', '&': '&amp;' }

/** A part of a value beside an ampersand that is still worth hiding: shells and HTML change what is around one. */
const SHORTEST_PART = 6

function formsOf(mask: string): string[] {
  const base64 = Buffer.from(mask).toString('base64').replace(/=+$/, '')
  const xml = mask.replace(/[<>"'&]/g, (character) => ENTITIES[character] ?? character)
  const parts = mask.split('&').filter((part) => part !== mask && part.length >= SHORTEST_PART)
  return [mask, JSON.stringify(mask).slice(1, -1), encodeURIComponent(mask.toWellFormed()), base64, xml, ...parts]
}

function jsonLeaves(text: string): string[] {
  if (!/^\s*[[{]/.test(text)) return []
  try {
    return leavesOf(JSON.parse(text))
  } catch {
    return []
  }
}

function leavesOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(leavesOf)
}
