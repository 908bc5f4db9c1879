import { z } from 'zod'
import { TAG_REF_PREFIX } from '../../contract/git-ref.ts'
import type { GithubContext } from './context.ts'

/** The source that an event points at. */
export type EventSource = {
  /** The address of the repository of the event; absent outside a workflow. */
  repoUrl?: string
  /** As the service wants it: a bare branch name, or `refs/tags/…`. Absent when the event has none; then `problem` says why. */
  ref?: string
  /** The commit that `ref` pointed at when the event happened. */
  commit?: string
  problem?: string
}

const BRANCH_REF_PREFIX = 'refs/heads/'

const pullRequestSchema = z.object({
  pull_request: z.object({
    head: z.object({ ref: z.string().min(1), sha: z.string(), repo: z.object({ full_name: z.string() }).nullish() }),
  }),
})
const releaseSchema = z.object({ release: z.object({ tag_name: z.string().min(1) }) })
const pushSchema = z.object({ head_commit: z.object({ id: z.string().min(1) }) })

/** What to deploy when no input names it. */
export function sourceOfEvent(context: GithubContext): EventSource {
  const { eventName, payload } = context
  const repoUrl = context.repository === '' ? undefined : `${context.serverUrl}/${context.repository}`
  const here = repoUrl === undefined ? {} : { repoUrl }
  if (eventName === 'pull_request' || eventName === 'pull_request_target') return sourceOfPullRequest(context, here)
  if (eventName === 'release') {
    const event = releaseSchema.safeParse(payload)
    if (!event.success) return { ...here, problem: 'the payload of the release event has no tag name' }
    return { ...here, ref: TAG_REF_PREFIX + event.data.release.tag_name, ...commit(context.sha) }
  }
  const ref = refOf(context.ref)
  if (ref === undefined) {
    return {
      ...here,
      problem: `the event ${eventName || '(none)'} has no branch or tag (GITHUB_REF is '${context.ref}')`,
    }
  }
  // The commit of an annotated tag's push is in head_commit: elsewhere the payload may name the tag object.
  const pushed = eventName === 'push' ? pushSchema.safeParse(payload) : undefined
  return { ...here, ref, ...commit(pushed?.success === true ? pushed.data.head_commit.id : context.sha) }
}

function sourceOfPullRequest(context: GithubContext, here: { repoUrl?: string }): EventSource {
  const event = pullRequestSchema.safeParse(context.payload)
  if (!event.success) return { ...here, problem: `the payload of the ${context.eventName} event has no head branch` }
  const { head } = event.data.pull_request
  const repository = head.repo?.full_name
  if (repository === undefined) return { ...here, problem: 'the head repository of the pull request has been deleted' }
  const source = { repoUrl: `${context.serverUrl}/${repository}`, ref: head.ref, ...commit(head.sha) }
  return source
}

/** True when the event is about a branch of another repository: a pull request from a fork. */
export function isFromFork(context: GithubContext): boolean {
  const event = pullRequestSchema.safeParse(context.payload)
  const repository = event.success ? event.data.pull_request.head.repo?.full_name : undefined
  return (
    context.eventName.startsWith('pull_request') &&
    repository !== undefined &&
    repository.toLowerCase() !== context.repository.toLowerCase()
  )
}

function refOf(ref: string): string | undefined {
  if (ref.startsWith(BRANCH_REF_PREFIX)) return ref.slice(BRANCH_REF_PREFIX.length)
  return ref.startsWith(TAG_REF_PREFIX) ? ref : undefined
}

function commit(sha: string): { commit?: string } {
  return /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(sha) ? { commit: sha } : {}
}
