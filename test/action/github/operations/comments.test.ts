import { describe, expect, it } from 'vitest'
import { commentOperations } from '../../../../src/action/github/operations/comments.ts'
import { httpFailure } from '../../../support/request-failure.ts'
import { githubFailure } from '../support.ts'
import { fakeSend, HERE, signal } from './support.ts'

describe('comments', () => {
  const comment = (id: number, changes: Record<string, unknown> = {}): Record<string, unknown> => ({
    id,
    body: `number ${id}`,
    user: { login: 'octocat', type: 'User' },
    html_url: `https://c/${id}`,
    ...changes,
  })

  it('are listed oldest first, with their authors', async () => {
    const bodies = [
      comment(3),
      comment(1, { user: null, body: null }),
      comment(4, { user: { login: 'app[bot]' } }),
      comment(2, { user: { login: 'app', type: 'Bot' } }),
      comment(5, { user: { login: '[bot]x', type: 'User' } }),
    ]
    const { asked, here } = fakeSend({ body: bodies })
    expect(await commentOperations(here).listComments(7, signal)).toEqual([
      { id: 1, body: '', author: null, authorIsBot: false, url: 'https://c/1' },
      { id: 2, body: 'number 2', author: 'app', authorIsBot: true, url: 'https://c/2' },
      { id: 3, body: 'number 3', author: 'octocat', authorIsBot: false, url: 'https://c/3' },
      { id: 4, body: 'number 4', author: 'app[bot]', authorIsBot: true, url: 'https://c/4' },
      { id: 5, body: 'number 5', author: '[bot]x', authorIsBot: false, url: 'https://c/5' },
    ])
    expect(asked).toEqual([
      {
        operation: 'listing the comments of the pull request 7',
        permission: 'pull-requests: write',
        route: 'GET /repos/{owner}/{repo}/issues/{issue_number}/comments',
        parameters: { ...HERE, issue_number: 7, per_page: 100, page: 1 },
      },
    ])
  })

  it('are written, changed and deleted by their addresses', async () => {
    const { asked, here } = fakeSend({ body: comment(8) }, { body: comment(8) }, { body: undefined })
    const { createComment, updateComment, deleteComment } = commentOperations(here)
    expect((await createComment(7, 'text', signal)).id).toBe(8)
    await updateComment(8, 'more', signal)
    await deleteComment(8, signal)
    const one = '/repos/{owner}/{repo}/issues/comments/{comment_id}'
    const permission = 'pull-requests: write'
    expect(asked).toEqual([
      {
        operation: 'commenting on the pull request 7',
        permission,
        route: 'POST /repos/{owner}/{repo}/issues/{issue_number}/comments',
        parameters: { ...HERE, issue_number: 7, body: 'text' },
      },
      {
        operation: 'updating the comment 8',
        permission,
        route: `PATCH ${one}`,
        parameters: { ...HERE, comment_id: 8, body: 'more' },
        idempotent: true,
      },
      {
        operation: 'deleting the comment 8',
        permission,
        route: `DELETE ${one}`,
        parameters: { ...HERE, comment_id: 8 },
        idempotent: true,
      },
    ])
  })

  it.each([
    ['GitHub says that it is not there', githubFailure(httpFailure(404)), true],
    ['a proxy says so', githubFailure(httpFailure(404, { excerpt: '<html>' })), false],
    ['it may not be deleted', githubFailure(httpFailure(403)), false],
  ])('are gone where %s: %#', async (_, error, gone) => {
    const thrown = await commentOperations(fakeSend(error).here)
      .deleteComment(8, signal)
      .catch((refused: unknown) => refused)
    expect(thrown).toBe(gone ? undefined : error)
  })

  it.each([
    ['octocat', false],
    ['app[bot]', true],
  ])('are of %s', async (login, isBot) => {
    const { asked, here } = fakeSend({ body: { data: { viewer: { login } } } })
    expect(await commentOperations(here).viewer(signal)).toEqual({ login, isBot })
    expect(asked).toEqual([
      {
        operation: 'finding out whose token this is',
        permission: 'pull-requests: write',
        route: 'POST /graphql',
        parameters: { query: 'query { viewer { login } }' },
        idempotent: true,
      },
    ])
  })

  it('are of nobody without a name', async () => {
    const { here } = fakeSend({ body: { data: { viewer: { login: '' } } } })
    await expect(commentOperations(here).viewer(signal)).rejects.toThrow(/viewer[^]*login/)
  })
})
