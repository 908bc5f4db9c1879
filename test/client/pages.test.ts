import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PAGES_MAX, readPages, type Page } from '../../src/client/pages.ts'
import { PAGE_OFFSET_MAX } from '../../src/contract/paging.ts'

const endless = () => new Error('endless')
const full = (count = 100) => Array.from({ length: count }, (_, index) => index)

async function read(pages: (offset: number, call: number) => Page<number>, max?: number) {
  const asked: { limit: number; offset: number }[] = []
  const items = await readPages({
    ...(max === undefined ? {} : { max }),
    endless,
    readPage: async (page) => {
      asked.push(page)
      return pages(page.offset, asked.length)
    },
  })
  return { items, asked }
}

describe('readPages', () => {
  it('stops after a page shorter than its limit', async () => {
    const { items, asked } = await read((offset) => ({ resources: full(offset === 0 ? 100 : 3), offset: offset + 100 }))
    expect(asked).toEqual([
      { limit: 100, offset: 0 },
      { limit: 100, offset: 100 },
    ])
    expect(items).toHaveLength(103)
  })

  it.each([[0], [-5], [null], [Number.NaN], [100.5], [2 ** 40]])('stops after a full page whose offset is %s', async (offset) => {
    const { items, asked } = await read(() => ({ resources: full(), offset }))
    expect(asked).toHaveLength(1)
    expect(items).toHaveLength(100)
  })

  it('stops after a full page when the next offset is the same again', async () => {
    const { asked } = await read(() => ({ resources: full(), offset: 100 }))
    expect(asked.map((page) => page.offset)).toEqual([0, 100])
  })

  it('reads the page at the largest offset, and none after it', async () => {
    const { asked } = await read((offset) => ({
      resources: full(),
      offset: offset === 0 ? PAGE_OFFSET_MAX : PAGE_OFFSET_MAX + 1,
    }))
    expect(asked.map((page) => page.offset)).toEqual([0, PAGE_OFFSET_MAX])
  })

  it('reads no more than it is asked for', async () => {
    expect(await read((offset) => ({ resources: full(), offset: offset + 100 }), 150)).toMatchObject({
      asked: [
        { limit: 100, offset: 0 },
        { limit: 100, offset: 100 },
      ],
      items: { length: 150 },
    })
    expect((await read(() => ({ resources: full(3), offset: 3 }), 3)).asked).toEqual([{ limit: 3, offset: 0 }])
  })

  it('refuses a list that never ends', async () => {
    await expect(read((offset) => ({ resources: full(), offset: offset + 100 }))).rejects.toThrow('endless')
  })

  it('ends, whatever offsets and lengths the service gives', async () => {
    const page = fc.record({
      length: fc.oneof(fc.constant(100), fc.integer({ min: 0, max: 130 })),
      offset: fc.oneof(fc.integer(), fc.double(), fc.constant(null), fc.constant('next')),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(page, { minLength: 1, maxLength: 20 }), async (script) => {
        let asked = 0
        const offsets: number[] = []
        const reading = readPages({
          endless,
          readPage: async ({ offset }) => {
            offsets.push(offset)
            const { length, offset: next } = script[asked++ % script.length]!
            const advancing = next === 'next' ? offset + length : next
            return { resources: full(length), offset: advancing }
          },
        })
        const [outcome] = await Promise.allSettled([reading])
        expect(outcome.status === 'fulfilled' || outcome.reason.message === 'endless').toBe(true)
        expect(asked).toBeLessThanOrEqual(PAGES_MAX)
        // Each page is further on than the one before it.
        expect(offsets.every((offset, index) => index === 0 || offset > offsets[index - 1]!)).toBe(true)
      }),
      { numRuns: 60 },
    )
  })
})
