import { z } from 'zod'
import type { GithubContext } from './context.ts'

const number = z.int().min(1)
const pullRequestSchema = z.object({ pull_request: z.object({ number }) })
const commentSchema = z.object({ issue: z.object({ number, pull_request: z.looseObject({}) }) })
const workflowRunSchema = z.object({ workflow_run: z.object({ pull_requests: z.array(z.object({ number })).length(1) }) })

/**
 * The pull request that an event is about, however it says so; undefined for other events, and for a workflow run of a fork, for which
 * GitHub names none.
 */
export function pullRequestNumberOf({ payload }: Pick<GithubContext, 'payload'>): number | undefined {
  const direct = pullRequestSchema.safeParse(payload)
  if (direct.success) return direct.data.pull_request.number
  const commented = commentSchema.safeParse(payload)
  if (commented.success) return commented.data.issue.number
  const run = workflowRunSchema.safeParse(payload)
  return run.success ? run.data.workflow_run.pull_requests[0]?.number : undefined
}
