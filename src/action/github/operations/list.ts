import { z } from 'zod'
import { endlessList } from '../../../client/failure.ts'
import { GithubFailure } from '../failure.ts'
import type { GithubRequest, Send } from '../request.ts'

const PAGE_SIZE = 100
const PAGES_MAX = 300

/** Reads a list to its end, or to `max` entries; `schema` is that of one entry. */
export async function readList<T>(send: Send, { max, schema, ...request }: GithubRequest<T> & { max: number }): Promise<T[]> {
  const items: T[] = []
  const pageSize = Math.min(PAGE_SIZE, max)
  for (let page = 1; page <= PAGES_MAX; page++) {
    const parameters = { ...request.parameters, per_page: pageSize, page }
    const { body, link } = await send({ ...request, parameters, schema: z.array(schema) })
    items.push(...body)
    const more = link === undefined ? body.length === pageSize : /;\s*rel="?next"?/.test(link)
    if (!more || items.length >= max) return items.slice(0, max)
  }
  const { operation, route } = request
  throw new GithubFailure({ operation, request: endlessList(route.split(' ')[1] ?? ''), permission: null })
}
