import { describe, expect, it } from 'vitest'
import { deploymentOperations } from '../../../../src/action/github/operations/deployments.ts'
import { failureOf } from '../support.ts'
import { fakeSend, record, type Reply, signal } from './support.ts'

describe('lists', () => {
  const page = (count: number, from = 0): Record<string, unknown>[] =>
    Array.from({ length: count }, (_, index) => record({ id: from + index + 1 }))
  const idsOf = async (max: number, ...replies: Reply[]): Promise<[number, unknown[]]> => {
    const { asked, here } = fakeSend(...replies)
    const records = await deploymentOperations(here).listDeployments({ max }, signal)
    return [records.length, asked.map(({ parameters }) => [parameters['page'], parameters['per_page']])]
  }

  it.each([
    ['a short page', 1000, [{ body: page(99) }], 99, [[1, 100]]],
    [
      'full pages until a short one',
      1000,
      [{ body: page(100) }, { body: page(1, 100) }],
      101,
      [
        [1, 100],
        [2, 100],
      ],
    ],
    ['a full page that says that it is the last', 1000, [{ body: page(100), link: '<x>; rel="prev"' }], 100, [[1, 100]]],
    [
      'a short page that says that it is not the last',
      1000,
      [{ body: page(1), link: '<x>;rel=next' }, { body: page(1, 1) }],
      2,
      [
        [1, 100],
        [2, 100],
      ],
    ],
    [
      'a link with spaces',
      1000,
      [{ body: page(1), link: '<x>;  rel="next", <y>; rel="last"' }, { body: [] }],
      1,
      [
        [1, 100],
        [2, 100],
      ],
    ],
    ['as many as are wanted', 3, [{ body: page(3) }], 3, [[1, 3]]],
    ['no more than are wanted', 2, [{ body: page(3), link: '<x>; rel="next"' }], 2, [[1, 2]]],
  ] as [string, number, Reply[], number, number[][]][])('are read to %s', async (_, max, replies, count, pages) => {
    expect(await idsOf(max, ...replies)).toEqual([count, pages])
  })

  it('without an end are given up after 300 pages', async () => {
    const replies = Array.from({ length: 301 }, () => ({ body: [], link: '<x>; rel="next"' }))
    const { asked, here } = fakeSend(...replies)
    const thrown = await failureOf(deploymentOperations(here).listDeployments({ max: 1000 }, signal))
    expect(asked).toHaveLength(300)
    expect(thrown.message).toBe(
      'listing deployment records failed: GET /repos/{owner}/{repo}/deployments gave page after page without an end',
    )
    expect(thrown.permission).toBeNull()
  })
})
