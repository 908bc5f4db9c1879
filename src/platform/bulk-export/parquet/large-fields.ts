import type { Client } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import type { ExportableField } from '../../../contract/exportable-fields.ts'
import type { WriterSetup } from './messages.ts'
import { type LargePage, writeLargePage } from './splice.ts'

/** A field of one row that is too large to be in memory. */
export interface LargeField {
  readonly field: ExportableField
  readonly column: string
}

/** Below this many bytes a field of a large row goes the way of all others. */
const LARGE_FIELD = 512 * 1024

/** The large fields of the one row of `range`. */
export async function largeFieldsOf(
  ask: <Row>(query: string) => Promise<Row[]>,
  { setup, range }: { setup: WriterSetup; range: string },
): Promise<LargeField[]> {
  const texts = setup.fields.flatMap((field, index) =>
    setup.textFields.includes(field) ? [{ field, column: setup.columns[index] ?? '' }] : [],
  )
  if (texts.length === 0) return []
  const lengths = texts.map(({ field, column }) => `coalesce(octet_length(${column}), 0) as ${field}`)
  const [found] = await ask<Record<string, number>>(`select ${lengths.join(', ')} from runs r where ${range}`)
  return texts.filter(({ field }) => (found?.[field] ?? 0) > LARGE_FIELD)
}

/** Copies large fields out of the one row of `range`, one after the other, each into a page of its own. */
export async function writeLargeFields(
  client: Client,
  { setup, range, large, file }: { setup: WriterSetup; range: string; large: readonly LargeField[]; file: string },
): Promise<LargePage[]> {
  const pages: LargePage[] = []
  for (const { field, column } of large) {
    const copy = client.query(copyTo(`copy (select ${column} from runs r where ${range}) to stdout with (format binary)`))
    const value = readBinary(copy as AsyncIterable<Buffer>)
    const { value: head } = await value.next()
    if (typeof head !== 'number') throw new Error(`the row went away while ${field} was read`)
    pages.push(
      await writeLargePage(value as AsyncIterable<Buffer>, {
        column: field,
        file: `${file}.${field}`,
        length: head,
        compression: setup.compression,
      }),
    )
  }
  return pages
}

/** Signature, flags and extension of PostgreSQL's binary format, the number of fields and the length of the first. */
const HEAD = 11 + 4 + 4 + 2 + 4
const NOTHING = -1

/** The one value of a binary `COPY`: first its length in bytes, then its bytes. */
async function* readBinary(source: AsyncIterable<Buffer>): AsyncGenerator<number | Buffer, undefined> {
  let head = Buffer.alloc(0)
  let left: number | null = null
  for await (const chunk of source) {
    let rest = chunk
    if (left === null) {
      head = Buffer.concat([head, chunk])
      if (head.length < HEAD) continue
      left = head.readInt32BE(HEAD - 4)
      if (left === NOTHING) return
      yield left
      rest = head.subarray(HEAD)
    }
    // Behind the value stands the end of the format: two bytes.
    const bytes = rest.subarray(0, left)
    left -= bytes.length
    if (bytes.length > 0) yield bytes
  }
}
