import { z } from 'zod'
import type { GithubContext } from '../github/context.ts'
import { PULL_REQUEST_MAX } from './name.ts'

/** The pull request that an event is about, as it was when the event happened. */
export type EventPullRequest = {
  number: number
  state: 'open' | 'closed'
  headSha: string | undefined
  /** The event is that it was closed. */
  closing: boolean
}

const numberSchema = z.int().min(1).max(PULL_REQUEST_MAX)
const stateSchema = z.enum(['open', 'closed'])
const headSchema = z.object({ sha: z.string() })
const pullRequestSchema = z.object({
  pull_request: z.object({ number: numberSchema, state: stateSchema, head: headSchema.optional() }),
})
const commentSchema = z.object({ issue: z.object({ number: numberSchema, state: stateSchema, pull_request: z.looseObject({}) }) })

/** True for the events that carry the head of a pull request, which a preview is made from. */
export function isPullRequestEvent({ eventName }: GithubContext): boolean {
  return eventName === 'pull_request' || eventName === 'pull_request_target'
}

/** The pull request of an event, or of the comment that it is about; undefined when it has none. */
export function pullRequestOfEvent(context: GithubContext): EventPullRequest | undefined {
  const { payload } = context
  const direct = pullRequestSchema.safeParse(payload)
  const commented = commentSchema.safeParse(payload)
  const found = direct.success ? direct.data.pull_request : commented.success ? commented.data.issue : undefined
  if (found === undefined) return undefined
  const headSha = direct.success ? direct.data.pull_request.head?.sha : undefined
  const closing = isPullRequestEvent(context) && payload['action'] === 'closed'
  return { number: found.number, state: found.state, headSha, closing }
}
