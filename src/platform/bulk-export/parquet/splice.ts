import { createReadStream, createWriteStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { Transform, type TransformCallback } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { createGzip, createZstdCompress } from 'node:zlib'
import type { Compression } from '../../../contract/bulk-export.ts'
import {
  readStruct,
  THRIFT,
  type ThriftField,
  type ThriftList,
  type ThriftStruct,
  toSigned,
  toUnsigned,
  writeStruct,
} from './thrift.ts'

/**
 * Text of any size in a Parquet file of one row, without ever being in memory: the engine writes the row with nothing in these columns,
 * and their pages are put behind it, as streams.
 */

/** One value as a page of Parquet in a file: compressed, without its header. */
export interface LargePage {
  readonly column: string
  readonly file: string
  readonly compressed: number
  readonly uncompressed: number
}

/** That a value is there: one run of one definition level. */
const PRESENT = Buffer.from([2, 0, 0, 0, 2, 1])
const MAGIC = Buffer.from('PAR1')

/** Makes a page of `length` bytes of text. @throws {Error} when there are not as many. */
export async function writeLargePage(
  source: AsyncIterable<Buffer>,
  { column, file, length, compression }: { column: string; file: string; length: number; compression: Compression },
): Promise<LargePage> {
  const size = Buffer.alloc(4)
  size.writeUInt32LE(length)
  const uncompressed = PRESENT.length + size.length + length
  let seen = 0
  const page = async function* () {
    yield Buffer.concat([PRESENT, size])
    for await (const chunk of source) {
      seen += chunk.length
      yield chunk
    }
    if (seen !== length) throw new Error(`a value of ${length} bytes has ${seen}`)
  }
  const to = createWriteStream(file, { highWaterMark: 1024 * 1024 })
  const through = compressor(compression, uncompressed)
  await (through === null ? pipeline(page, to) : pipeline(page, through, to))
  return { column, file, compressed: (await stat(file)).size, uncompressed }
}

function compressor(compression: Compression, bytes: number): Transform | null {
  if (compression === 'gzip') return createGzip()
  if (compression === 'zstandard') return createZstdCompress()
  return compression === 'snappy' ? createSnappyFrame(bytes) : null
}

/** Snappy's format with nothing compressed: its compressor is not part of Node, and needs what is compressed in memory. */
function createSnappyFrame(bytes: number): Transform {
  let begun = false
  return new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      if (!begun) {
        begun = true
        const length: number[] = []
        let left = bytes
        for (; left >= 0x80; left = Math.floor(left / 0x80)) length.push((left % 0x80) | 0x80)
        this.push(Buffer.from([...length, left]))
      }
      for (let at = 0; at < chunk.length; at += 65_536) {
        const literal = chunk.subarray(at, at + 65_536)
        this.push(Buffer.of(61 << 2, (literal.length - 1) & 0xff, (literal.length - 1) >> 8))
        this.push(literal)
      }
      done()
    },
  })
}

/**
 * Puts pages into a file of one row in place of the nothing that their columns have there. The result is another file, in which the
 * columns lie in their order: readers fetch neighbours together.
 */
export async function splice({ from, to, pages }: { from: string; to: string; pages: readonly LargePage[] }): Promise<void> {
  const bytes = await readFile(from)
  const end = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8)
  const metadata = readStruct(bytes.subarray(end, -8))
  const [group, ...others] = structsOf(metadata.get(4))
  if (group === undefined || others.length > 0) throw new Error('a file of one row has not one row group')
  const target = createWriteStream(to, { highWaterMark: 1024 * 1024 })
  target.write(MAGIC)
  let offset = MAGIC.length
  let [grown, packed] = [0, 0]
  for (const chunk of structsOf(group.get(1))) {
    const meta = metaOf(chunk)
    const page = pages.find(({ column }) => column === nameOf(meta))
    for (const field of INDEXES) chunk.delete(field)
    for (const field of BLOOM_FILTER) meta.delete(field)
    if (page === undefined) {
      const start = Math.min(...[FIRST_PAGE, DICTIONARY].flatMap((field) => numberOf(meta, field) ?? []))
      const length = numberOf(meta, PACKED) ?? 0
      target.write(bytes.subarray(start, start + length))
      for (const field of [FIRST_PAGE, DICTIONARY]) move(meta, field, offset - start)
      offset += length
      continue
    }
    const header = pageHeader(page)
    target.write(header)
    await pipeline(createReadStream(page.file), target, { end: false })
    grown += header.length + page.uncompressed - (numberOf(meta, GROWN) ?? 0)
    packed += header.length + page.compressed - (numberOf(meta, PACKED) ?? 0)
    describe(meta, { page, offset, header: header.length })
    offset += header.length + page.compressed
  }
  move(group, 2, grown)
  move(group, 6, packed)
  const footer = writeStruct(metadata)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(footer.length)
  target.end(Buffer.concat([footer, length, MAGIC]))
  await finished(target)
}

/** Fields of a column's metadata: sizes before and after compression, and where its pages begin. */
const [GROWN, PACKED, FIRST_PAGE, DICTIONARY] = [6, 7, 9, 11]
const BLOOM_FILTER = [14, 15]
/** Fields of a column: where indexes of its pages are. Nobody needs them for one row. */
const INDEXES = [4, 5, 6, 7]
/** What is said of the nothing that was in a column: its dictionary, its least and greatest value, its encodings' numbers. */
const OF_NOTHING = [10, DICTIONARY, 12, 13, 16]

const i32 = (value: number) => ({ type: THRIFT.i32, value: toUnsigned(BigInt(value)) })
const i64 = (value: number) => ({ type: THRIFT.i64, value: toUnsigned(BigInt(value)) })

/** A data page of one value: plain, its level in runs. */
function pageHeader({ compressed, uncompressed }: LargePage): Buffer {
  const data: ThriftStruct = new Map([1, 0, 3, 3].map((value, index) => [index + 1, i32(value)]))
  return writeStruct(
    new Map<number, ThriftField>([
      [1, i32(0)],
      [2, i32(uncompressed)],
      [3, i32(compressed)],
      [5, { type: THRIFT.struct, value: data }],
    ]),
  )
}

const structsOf = (field: ThriftField | undefined) => ((field?.value ?? NONE) as ThriftList).items as ThriftStruct[]
const NONE: ThriftList = { of: THRIFT.struct, items: [] }
const metaOf = (chunk: ThriftStruct) => chunk.get(3)?.value as ThriftStruct
const nameOf = (meta: ThriftStruct) => String(((meta.get(3)?.value ?? NONE) as ThriftList).items[0])

/** What the metadata say of a column whose page is another now. */
function describe(meta: ThriftStruct, { page, offset, header }: { page: LargePage; offset: number; header: number }): void {
  meta.set(2, { type: THRIFT.list, value: { of: THRIFT.i32, items: [i32(0).value, i32(3).value] } })
  meta.set(GROWN, i64(header + page.uncompressed))
  meta.set(PACKED, i64(header + page.compressed))
  meta.set(FIRST_PAGE, i64(offset))
  for (const field of OF_NOTHING) meta.delete(field)
}

function numberOf(fields: ThriftStruct, field: number): number | undefined {
  const found = fields.get(field)
  return found === undefined ? undefined : Number(toSigned(found.value as bigint))
}

function move(fields: ThriftStruct, field: number, by: number): void {
  const before = numberOf(fields, field)
  if (before !== undefined) fields.set(field, i64(before + by))
}
