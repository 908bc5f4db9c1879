import type { Github } from './github.ts'
import { commentOperations } from './operations/comments.ts'
import { deploymentOperations } from './operations/deployments.ts'
import { pullRequestOperations } from './operations/pull-requests.ts'
import { tagOperations } from './operations/tags.ts'
import { createSend, type SendOptions } from './request.ts'

/** The client for one repository, `owner/name`. Makes no request by itself, and throws only for a repository that is not so written. */
export function createGithub({ repository, ...options }: SendOptions & { repository: string }): Github {
  const [, owner, repo] = /^([^/]+)\/([^/]+)$/.exec(repository) ?? []
  if (owner === undefined || repo === undefined) throw new Error(`'${repository}' is not owner/name`)
  const here = { owner, repo, send: createSend(options) }
  return {
    ...pullRequestOperations(here),
    ...tagOperations(here),
    ...deploymentOperations(here),
    ...commentOperations(here),
  }
}
