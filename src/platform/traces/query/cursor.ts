import { HttpProblem } from '../../http/problem.ts'
import { isUuid } from '../ingest/run-write.ts'

/** Where a page of runs ended: the place in the order (start, id), and which way it went. */
export interface Cursor {
  /** In microseconds since 1970, exactly. */
  readonly start: string
  readonly id: string
  readonly order: 'asc' | 'desc'
}

export function writeCursor({ start, id, order }: Cursor): string {
  return Buffer.from(`${order} ${start} ${id}`).toString('base64url')
}

/** @throws {HttpProblem} 400 for a text that is no cursor of ours, or of a query in the other order. */
export function readCursor(text: string, order: Cursor['order']): Cursor {
  const [direction, start = '', id] = Buffer.from(text, 'base64url').toString('latin1').split(' ')
  if ((direction !== 'asc' && direction !== 'desc') || !/^-?\d{1,18}$/.test(start) || !isUuid(id)) {
    throw new HttpProblem(
      400,
      'The cursor is not one that a query answered: send the `cursors.next` of the page before as it was.',
    )
  }
  if (direction !== order)
    throw new HttpProblem(400, `The cursor is of a query in ${direction} order: keep the order from page to page.`)
  return { start, id, order }
}
