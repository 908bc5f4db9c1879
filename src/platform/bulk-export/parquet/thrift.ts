/**
 * Thrift's compact protocol, as far as Parquet's metadata needs it: a struct is read into its fields, whatever they mean, and written
 * again as it was. Numbers stay as they are written, so that nothing is lost that this code does not know.
 */
type ThriftValue = boolean | bigint | Buffer | ThriftList | ThriftStruct
export interface ThriftList {
  readonly of: number
  readonly items: ThriftValue[]
}
export interface ThriftField {
  readonly type: number
  readonly value: ThriftValue
}
/** Fields by their numbers. */
export type ThriftStruct = Map<number, ThriftField>

export const THRIFT = { true: 1, false: 2, byte: 3, i32: 5, i64: 6, double: 7, binary: 8, list: 9, set: 10, struct: 12 } as const

/** @throws {Error} for bytes that are no struct of this protocol. */
export function readStruct(bytes: Buffer): ThriftStruct {
  let at = 0
  const next = () => {
    const byte = bytes[at]
    if (byte === undefined) throw new Error('the metadata of a Parquet file ends early')
    at += 1
    return byte
  }
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = next()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number) => {
    at += length
    return bytes.subarray(at - length, at)
  }
  const struct = (): ThriftStruct => {
    const fields: ThriftStruct = new Map()
    let last = 0
    for (;;) {
      const head = next()
      if (head === 0) return fields
      const type = head & 0x0f
      last = head >> 4 === 0 ? Number(toSigned(varint())) : last + (head >> 4)
      fields.set(last, { type, value: type === THRIFT.true || type === THRIFT.false ? type === THRIFT.true : value(type) })
    }
  }
  const list = (): ThriftList => {
    const head = next()
    const size = head >> 4 === 15 ? Number(varint()) : head >> 4
    const of = head & 0x0f
    return { of, items: Array.from({ length: size }, () => (of <= THRIFT.false ? next() === 1 : value(of))) }
  }
  const value = (type: number): ThriftValue => {
    if (type === THRIFT.byte) return BigInt(next())
    if (type > THRIFT.byte && type <= THRIFT.i64) return varint()
    if (type === THRIFT.double) return take(8)
    if (type === THRIFT.binary) return take(Number(varint()))
    if (type === THRIFT.list || type === THRIFT.set) return list()
    if (type === THRIFT.struct) return struct()
    throw new Error(`the metadata of a Parquet file has a field of type ${type}`)
  }
  return struct()
}

export function writeStruct(fields: ThriftStruct): Buffer {
  const parts: Buffer[] = []
  const byte = (value: number) => void parts.push(Buffer.of(value))
  const varint = (value: bigint) => {
    const bytes: number[] = []
    let left = value
    for (; left >= 0x80n; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80)
    parts.push(Buffer.from([...bytes, Number(left)]))
  }
  const struct = (given: ThriftStruct) => {
    let last = 0
    for (const [id, { type, value: content }] of [...given].toSorted(([a], [b]) => a - b)) {
      const kind = typeof content === 'boolean' ? (content ? THRIFT.true : THRIFT.false) : type
      if (id - last <= 15) byte(((id - last) << 4) | kind)
      else {
        byte(kind)
        varint(toUnsigned(BigInt(id)))
      }
      last = id
      if (typeof content !== 'boolean') value(type, content)
    }
    byte(0)
  }
  const value = (type: number, content: ThriftValue) => {
    if (typeof content === 'boolean') byte(content ? 1 : 2)
    else if (type === THRIFT.byte) byte(Number(content))
    else if (typeof content === 'bigint') varint(content)
    else if (Buffer.isBuffer(content)) {
      if (type === THRIFT.binary) varint(BigInt(content.length))
      parts.push(content)
    } else if (content instanceof Map) struct(content)
    else {
      const { of, items } = content
      byte((Math.min(items.length, 15) << 4) | of)
      if (items.length >= 15) varint(BigInt(items.length))
      for (const item of items) value(of, item)
    }
  }
  struct(fields)
  return Buffer.concat(parts)
}

/** A number in the form that it has in a struct. */
export function toUnsigned(value: bigint): bigint {
  return value >= 0n ? value << 1n : (-value << 1n) - 1n
}

export function toSigned(value: bigint): bigint {
  return (value & 1n) === 0n ? value >> 1n : -((value + 1n) >> 1n)
}
