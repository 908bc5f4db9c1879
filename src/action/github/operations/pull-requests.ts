import { z } from 'zod'
import { pullRequestSchema } from '../answers.ts'
import type { Github } from '../github.ts'
import { isNotFound, type Repository } from './repository.ts'

export function pullRequestOperations({ owner, repo, send }: Repository): Pick<Github, 'getPullRequest'> {
  return {
    getPullRequest: async (number, signal) => {
      const pulls = { permission: 'pull-requests: read', signal, operation: `reading the pull request ${number}` } as const
      try {
        const { body } = await send({
          ...pulls,
          route: 'GET /repos/{owner}/{repo}/pulls/{pull_number}',
          parameters: { owner, repo, pull_number: number },
          schema: pullRequestSchema,
        })
        return {
          number: body.number,
          state: body.state === 'closed' ? 'closed' : 'open',
          headRef: body.head.ref,
          headSha: body.head.sha,
          headRepository: body.head.repo?.full_name ?? null,
        }
      } catch (error) {
        if (!isNotFound(error)) throw error
        // GitHub hides what a token may not see: only who sees other pull requests knows that this one is not there.
        const route = 'GET /repos/{owner}/{repo}/pulls'
        const parameters = { owner, repo, state: 'all', per_page: 1 }
        await send({ ...pulls, route, parameters, schema: z.array(z.unknown()) })
        return null
      }
    },
  }
}
