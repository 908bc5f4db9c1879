import { PAGE_LIMIT_MAX, PAGE_OFFSET_MAX } from '../contract/paging.ts'

export type Page<T> = { resources: T[]; offset: number | null }

/** No list of a workspace is longer: a service that goes on giving full pages is at fault. */
export const PAGES_MAX = 1000

/**
 * Reads a list to its end, or to its first `max` items. The end is a page shorter than its limit, or an offset that does not
 * advance. `endless` makes the error of a list that has neither within `PAGES_MAX` pages.
 */
export async function readPages<T>({ readPage, max = Infinity, endless }: {
  readPage: (page: { limit: number; offset: number }) => Promise<Page<T>>
  max?: number
  endless: () => Error
}): Promise<T[]> {
  const items: T[] = []
  const limit = Math.max(1, Math.min(PAGE_LIMIT_MAX, max))
  let offset = 0
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page = await readPage({ limit, offset })
    items.push(...page.resources)
    if (items.length >= max) return items.slice(0, max)
    const next = page.offset
    if (page.resources.length < limit || next === null || !Number.isInteger(next) || next <= offset) return items
    if (next > PAGE_OFFSET_MAX) return items
    offset = next
  }
  throw endless()
}
