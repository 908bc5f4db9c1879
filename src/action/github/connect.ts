import type { Effects } from '../../client/effects.ts'
import { formatDuration } from '../parse/duration.ts'
import type { Log } from '../report/log.ts'
import { createGithub } from './client.ts'
import type { GithubContext } from './context.ts'
import type { Github } from './github.ts'

/** GitHub, for the repository of the workflow; undefined without a token or a repository. */
export function connectGithub({
  token,
  context: { repository, apiUrl },
  effects,
  log,
  redact,
}: {
  token: string | undefined
  context: Pick<GithubContext, 'repository' | 'apiUrl'>
  effects: Effects
  log: Pick<Log, 'info'>
  redact: (text: string) => string
}): Github | undefined {
  if (token === undefined || !/^[^/]+\/[^/]+$/.test(repository)) return undefined
  return createGithub({
    token,
    repository,
    apiUrl,
    redact,
    effects,
    onRetry: ({ method, path, reason, waitMs }) =>
      log.info(`GitHub: ${method} ${path} ${reason}: trying again in ${formatDuration(waitMs)}.`),
  })
}
