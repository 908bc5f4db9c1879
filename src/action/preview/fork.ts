import { z } from 'zod'
import type { GithubContext } from '../github/context.ts'
import { isFromFork } from '../github/event.ts'
import type { RawInputs } from '../inputs.ts'
import { isPullRequestEvent } from './event.ts'

const senderSchema = z.object({ sender: z.object({ login: z.string() }) })
/** The repository of the head is null once a fork has been deleted. */
const deletedForkSchema = z.object({ pull_request: z.object({ head: z.object({ repo: z.null() }) }) })
const DEPENDABOT = 'dependabot[bot]'

/**
 * Why this step has nothing to do, as a sentence: GitHub gives no secrets to pull requests from forks and of Dependabot, so that there
 * is no key to deploy their previews with, and nothing that could have been deployed before. Undefined for every other step: workflows
 * of `pull_request_target` get the secrets also for forks, so that a key which is missing there was forgotten.
 */
export function reasonToSkip(raw: Pick<RawInputs, 'mode' | 'api-key'>, context: GithubContext): string | undefined {
  const isPreview = raw.mode === 'preview' || raw.mode === 'teardown'
  if (!isPreview || raw['api-key'] !== '' || !isPullRequestEvent(context)) return undefined
  const sender = senderSchema.safeParse(context.payload)
  const byDependabot = sender.success && sender.data.sender.login === DEPENDABOT
  const fromFork =
    context.eventName === 'pull_request' && (isFromFork(context) || deletedForkSchema.safeParse(context.payload).success)
  if (!fromFork && !byDependabot) return undefined
  const from = byDependabot ? 'is of Dependabot' : 'comes from a fork'
  return `There is no preview: the pull request ${from}, and GitHub gives it no secrets, so that api-key is empty.`
}
