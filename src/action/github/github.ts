/** A pull request, as far as a preview needs it. */
export type PullRequest = {
  number: number
  state: 'open' | 'closed'
  headRef: string
  headSha: string
  /** `owner/name`; null when the fork has been deleted. */
  headRepository: string | null
}

/** A record on GitHub's deployments page. */
export type DeploymentRecord = {
  id: number
  environment: string
  /** The commit. */
  sha: string
  ref: string
  task: string
  /** What `createDeployment` was given, when it was this action. */
  payload: unknown
  /** Epoch milliseconds. */
  createdAt: number
}

export type DeploymentState = 'in_progress' | 'success' | 'failure' | 'error' | 'inactive' | 'queued' | 'pending'

export type DeploymentRecordStatus = { state: DeploymentState; description: string; createdAt: number }

export type NewDeployment = {
  ref: string
  environment: string
  task: string
  description: string
  payload: Record<string, unknown>
  transient: boolean
  production: boolean
}

export type Comment = { id: number; body: string; author: string | null; authorIsBot: boolean; url: string }

/**
 * What the action asks of GitHub, for the repository of the workflow. Every operation has a deadline of its own within `signal`, is
 * repeated where that can do no harm, waits as long as GitHub asks, and throws a `GithubFailure` (see there) otherwise. Lists are
 * read to their end, or to `max` entries.
 */
export type Github = {
  /** Null when there is no such pull request: never because the token cannot see it. */
  getPullRequest: (number: number, signal: AbortSignal) => Promise<PullRequest | null>
  /** The commit that a tag names (annotated tags are followed to it); null when there is no such tag. */
  commitOfTag: (tag: string, signal: AbortSignal) => Promise<string | null>
  /** No checks are awaited, and nothing is merged. A record that an unanswered request has made is found by its payload. */
  createDeployment: (options: NewDeployment, signal: AbortSignal) => Promise<DeploymentRecord>
  createDeploymentStatus: (
    options: {
      deploymentId: number
      state: DeploymentState
      /** Cut to the 140 characters that GitHub takes. */
      description: string
      environmentUrl?: string
      logUrl?: string
      /** Makes the earlier records of this environment inactive. */
      autoInactive?: boolean
    },
    signal: AbortSignal,
  ) => Promise<void>
  /** Newest first. */
  listDeployments: (
    options: { environment?: string; task?: string; sha?: string; max: number },
    signal: AbortSignal,
  ) => Promise<DeploymentRecord[]>
  /** Newest first. */
  listDeploymentStatuses: (deploymentId: number, signal: AbortSignal) => Promise<DeploymentRecordStatus[]>
  /** All comments of a pull request, oldest first. */
  listComments: (pullRequest: number, signal: AbortSignal) => Promise<Comment[]>
  createComment: (pullRequest: number, body: string, signal: AbortSignal) => Promise<Comment>
  updateComment: (commentId: number, body: string, signal: AbortSignal) => Promise<void>
  /** Fine when it is gone already. */
  deleteComment: (commentId: number, signal: AbortSignal) => Promise<void>
  /** Whose token this is, as an author of comments. */
  viewer: (signal: AbortSignal) => Promise<{ login: string; isBot: boolean }>
}
