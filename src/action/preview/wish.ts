import type { Mode } from '../inputs.ts'
import type { GithubContext } from '../github/context.ts'
import { sourceOfEvent } from '../github/event.ts'
import type { Fields } from '../parse/fields.ts'
import type { InputProblem } from '../parse/problem.ts'
import { type EventPullRequest, isPullRequestEvent, pullRequestOfEvent } from './event.ts'

/** The pull request whose preview this step is about. */
export type PreviewWish = {
  /** `deployment-name`: what the names of all previews begin with. */
  baseName: string
  pullRequest: number
  /** As the event tells it; it may have changed since. */
  eventState: EventPullRequest['state']
  /** The same of the commit of its head, where the event tells it. */
  headSha: string | undefined
  /** Addresses of this repository, of the head of the pull request and of `repo-url`: previews of others are left alone. */
  repositories: readonly string[]
  /** The step runs because the pull request was closed. */
  closing: boolean
}

export type SweepWish = {
  baseName: string
  /** Address of this repository, which the previews were built from. */
  repoUrl: string
  /** A preview whose last revision is older is removed. */
  ttlMs: number
}

const DAY_MS = 86_400_000

/** Reads which pull request is meant; undefined when there are problems, which it adds. */
export function previewOf({
  mode,
  fields,
  context,
  problems,
}: {
  mode: Mode
  fields: Fields
  context: GithubContext
  problems: InputProblem[]
}): PreviewWish | undefined {
  const found = pullRequestOfEvent(context)
  const event = context.eventName || '(none)'
  if (mode === 'preview' && !isPullRequestEvent(context)) {
    const fix = 'run this step on pull_request, or use mode: deploy for other events'
    problems.push({ input: 'mode', problem: `is preview, and the event ${event} is not one of a pull request`, fix })
    return undefined
  }
  if (found === undefined) {
    const fix = 'run this step on pull_request events'
    problems.push({ input: 'mode', problem: `is ${mode}, and the payload of the event ${event} has no pull request`, fix })
  }
  const { 'deployment-name': baseName } = fields
  if (found === undefined || baseName === undefined) return undefined
  const repositories = [repoUrlOf(context), sourceOfEvent(context).repoUrl, fields['repo-url']].filter((url) => url !== undefined)
  return {
    baseName,
    pullRequest: found.number,
    eventState: found.state,
    closing: found.closing,
    headSha: found.headSha,
    repositories,
  }
}

/** Reads what a sweep needs; undefined when there are problems, which it adds. */
export function sweepOf({
  fields,
  context,
  problems,
}: {
  fields: Fields
  context: GithubContext
  problems: InputProblem[]
}): SweepWish | undefined {
  if (context.repository === '') {
    const fix = 'run this step in a workflow'
    problems.push({ input: 'mode', problem: 'is sweep, and GITHUB_REPOSITORY does not say which repository this is', fix })
  }
  const { 'deployment-name': baseName } = fields
  if (context.repository === '' || baseName === undefined) return undefined
  return { baseName, repoUrl: repoUrlOf(context), ttlMs: fields['preview-ttl'] ?? 7 * DAY_MS }
}

function repoUrlOf({ serverUrl, repository }: GithubContext): string {
  return `${serverUrl}/${repository}`
}
