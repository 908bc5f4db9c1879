import { toInstant } from '../../../contract/instant.ts'

const SEGMENT = /^(\d{8})T(\d{6})(\d{3}|\d{6})?Z([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/i
const SEGMENTS_MAX = 1024

/** Where a run stands in its trace, read from its dotted order (hosted service). */
export interface DottedOrder {
  readonly text: string
  readonly id: string
  readonly traceId: string
  readonly parentId: string | null
  /** The start that the last segment carries; null when it is no time. */
  readonly start: string | null
}

/** Reads `<start>Z<run id>` segments, joined by dots; the fault as a sentence when it is none. */
export function readDottedOrder(text: string): DottedOrder | { readonly fault: string } {
  const segments = text.split('.')
  if (segments.length > SEGMENTS_MAX) return { fault: `it has more than ${SEGMENTS_MAX} segments` }
  const ids: string[] = []
  let start: string | null = null
  for (const [index, segment] of segments.entries()) {
    const found = SEGMENT.exec(segment)
    if (found === null) {
      return { fault: `its segment ${index + 1} is not a time and a run id such as 20240919T171648521691Z0e01bf50-…` }
    }
    const [, day, time, fraction = '', id] = found as unknown as [string, string, string, string | undefined, string]
    ids.push(id.toLowerCase())
    if (index === segments.length - 1) start = toInstant(spell(day, time, fraction))
  }
  return {
    text: text.toLowerCase().replace(/[tz]/g, (letter) => letter.toUpperCase()),
    id: ids.at(-1) as string,
    traceId: ids[0] as string,
    parentId: ids.at(-2) ?? null,
    start,
  }
}

function spell(day: string, time: string, fraction: string): string {
  const date = `${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}`
  return `${date}T${time.slice(0, 2)}:${time.slice(2, 4)}:${time.slice(4)}.${fraction.padEnd(6, '0')}Z`
}
