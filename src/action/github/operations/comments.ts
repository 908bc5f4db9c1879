import { z } from 'zod'
import { commentSchema, viewerSchema } from '../answers.ts'
import type { Comment, Github } from '../github.ts'
import { readList } from './list.ts'
import { isNotFound, type Repository } from './repository.ts'

const OF_PULL_REQUEST = '/repos/{owner}/{repo}/issues/{issue_number}/comments'
const ONE = '/repos/{owner}/{repo}/issues/comments/{comment_id}'
const WRITE = 'pull-requests: write'

type Operations = Pick<Github, 'listComments' | 'createComment' | 'updateComment' | 'deleteComment' | 'viewer'>

export function commentOperations({ owner, repo, send }: Repository): Operations {
  const here = { owner, repo }
  return {
    listComments: async (pullRequest, signal) => {
      const comments = await readList(send, {
        operation: `listing the comments of the pull request ${pullRequest}`,
        // Who comments has to write, too: one correction of the workflow is enough.
        permission: WRITE,
        route: `GET ${OF_PULL_REQUEST}`,
        parameters: { ...here, issue_number: pullRequest },
        schema: commentSchema,
        signal,
        max: Infinity,
      })
      return comments.map(commentOf).toSorted((a, b) => a.id - b.id)
    },
    createComment: async (pullRequest, body, signal) => {
      const answer = await send({
        operation: `commenting on the pull request ${pullRequest}`,
        permission: WRITE,
        route: `POST ${OF_PULL_REQUEST}`,
        parameters: { ...here, issue_number: pullRequest, body },
        schema: commentSchema,
        signal,
      })
      return commentOf(answer.body)
    },
    updateComment: async (commentId, body, signal) => {
      await send({
        operation: `updating the comment ${commentId}`,
        permission: WRITE,
        route: `PATCH ${ONE}`,
        parameters: { ...here, comment_id: commentId, body },
        schema: commentSchema,
        idempotent: true,
        signal,
      })
    },
    deleteComment: async (commentId, signal) => {
      try {
        await send({
          operation: `deleting the comment ${commentId}`,
          permission: WRITE,
          route: `DELETE ${ONE}`,
          parameters: { ...here, comment_id: commentId },
          schema: z.unknown(),
          idempotent: true,
          signal,
        })
      } catch (error) {
        if (!isNotFound(error)) throw error
      }
    },
    viewer: async (signal) => {
      const { body } = await send({
        operation: 'finding out whose token this is',
        permission: WRITE,
        // No other request works for the tokens of people, of apps and of workflows alike.
        route: 'POST /graphql',
        parameters: { query: 'query { viewer { login } }' },
        schema: viewerSchema,
        idempotent: true,
        signal,
      })
      const { login } = body.data.viewer
      return { login, isBot: login.endsWith('[bot]') }
    },
  }
}

function commentOf({ id, body, user, html_url: url }: z.infer<typeof commentSchema>): Comment {
  const author = user?.login ?? null
  return { id, body: body ?? '', author, authorIsBot: user?.type === 'Bot' || author?.endsWith('[bot]') === true, url }
}
