import { describe, expect, it } from 'vitest'
import { pullRequestOperations } from '../../../../src/action/github/operations/pull-requests.ts'
import { httpFailure } from '../../../support/request-failure.ts'
import { githubFailure } from '../support.ts'
import { fakeSend, HERE, signal } from './support.ts'

describe('a pull request', () => {
  const ASKED = { operation: 'reading the pull request 7', permission: 'pull-requests: read' }
  const ONE = {
    ...ASKED,
    route: 'GET /repos/{owner}/{repo}/pulls/{pull_number}',
    parameters: { ...HERE, pull_number: 7 },
  }

  it.each([
    ['closed', { full_name: 'a/b' }, 'closed', 'a/b'],
    ['open', null, 'open', null],
    ['queued', undefined, 'open', null],
  ])('that is %s', async (state, repo, expected, headRepository) => {
    const { asked, here } = fakeSend({ body: { number: 7, state, head: { ref: 'x', sha: 'c0ffee', repo } } })
    const pullRequest = { number: 7, state: expected, headRef: 'x', headSha: 'c0ffee', headRepository }
    expect(await pullRequestOperations(here).getPullRequest(7, signal)).toEqual(pullRequest)
    expect(asked).toEqual([ONE])
  })

  it('is not there only where others can be seen', async () => {
    const { asked, here } = fakeSend(githubFailure(httpFailure(404)), { body: [] })
    expect(await pullRequestOperations(here).getPullRequest(7, signal)).toBeNull()
    const all = { ...ASKED, route: 'GET /repos/{owner}/{repo}/pulls', parameters: { ...HERE, state: 'all', per_page: 1 } }
    expect(asked).toEqual([ONE, all])
  })

  it.each([
    [githubFailure(httpFailure(404, { excerpt: '<html>' }))],
    [githubFailure(httpFailure(500))],
    [new Error('a mistake')],
  ])('is not missed because of %s', async (error) => {
    const { asked, here } = fakeSend(error)
    await expect(pullRequestOperations(here).getPullRequest(7, signal)).rejects.toBe(error)
    expect(asked).toHaveLength(1)
  })
})
