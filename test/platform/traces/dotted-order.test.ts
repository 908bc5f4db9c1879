import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readDottedOrder } from '../../../src/platform/traces/ingest/dotted-order.ts'

const segment = fc
  .tuple(
    fc.date({ min: new Date('1970-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
    fc.constantFrom('', '123', '123456'),
    fc.uuid(),
  )
  .map(([date, fraction, id]) => ({
    date,
    fraction,
    id,
    text: `${date.toISOString().slice(0, 19).replace(/[-:]/g, '')}${fraction}Z${id}`,
  }))

describe('a dotted order', () => {
  it('says which run it is of, in which trace, below which parent, and when it began', () => {
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 8 }), fc.boolean(), (segments, shouted) => {
        const text = segments.map((one) => one.text).join('.')
        const last = segments.at(-1)!
        expect(readDottedOrder(shouted ? text.toUpperCase() : text)).toEqual({
          text,
          id: last.id,
          traceId: segments[0]!.id,
          parentId: segments.at(-2)?.id ?? null,
          start: `${last.date.toISOString().slice(0, 19)}.${last.fraction.padEnd(6, '0')}Z`,
        })
      }),
    )
  })

  it('is told what is wrong with it, whatever the text', () => {
    const piece = fc.oneof(
      segment.map((one) => one.text),
      fc.constantFrom('.', 'Z', 'T', '20240919', '', 'x', '\n', '💡'),
    )
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join('')),
        (text) => {
          const read = readDottedOrder(text)
          if ('fault' in read) expect(read.fault).toMatch(/^its segment \d+ is not/)
          else expect(read.text).toMatch(/^(\d{8}T\d{6}(\d{3}){0,2}Z[0-9a-f-]{36}(\.|$))+$/)
        },
      ),
    )
  })

  it('has a day that there is, or no start', () => {
    expect(readDottedOrder('20240230T000000000000Z0e01bf50-474d-4536-810f-67d3ee7ea3e7')).toMatchObject({ start: null })
  })
})
