/** What the double of GitHub knows: one repository. Tests read and change it between two steps. */

export type Account = { login: string; type: 'Bot' | 'User' }
export type Level = 'none' | 'read' | 'write'
export type PermissionName = 'contents' | 'deployments' | 'issues' | 'pull-requests'

/** What a token stands for. */
export type TokenHolder = { account: Account; permissions: Record<PermissionName, Level> }

export type PullRequestState = {
  number: number
  state: 'open' | 'closed'
  title: string
  headRef: string
  headSha: string
  /** `owner/name`; null: the fork has been deleted. */
  headRepository: string | null
}

export type CommentState = { id: number; pullRequest: number; author: Account; body: string; createdAt: number; edits: number }

export type StatusState = {
  id: number
  state: string
  description: string
  environmentUrl: string
  logUrl: string
  author: Account
  createdAt: number
}

export type DeploymentRecordState = {
  id: number
  ref: string
  sha: string
  task: string
  environment: string
  description: string
  payload: unknown
  transient: boolean
  production: boolean
  author: Account
  createdAt: number
  /** Oldest first. */
  statuses: StatusState[]
}

export type GithubState = {
  /** `owner/name`. */
  repository: string
  tokens: Map<string, TokenHolder>
  pullRequests: Map<number, PullRequestState>
  comments: CommentState[]
  deployments: DeploymentRecordState[]
  /** The object that `refs/tags/<name>` points at. */
  tags: Map<string, { type: 'commit' | 'tag' | 'tree'; sha: string }>
  /** Tag objects by their sha: what each points at. */
  tagObjects: Map<string, { type: 'commit' | 'tag' | 'tree'; sha: string; tag: string }>
  /** Commits of branches, by the branch. */
  branches: Map<string, string>
}

export const ACTIONS_BOT: Account = { login: 'github-actions[bot]', type: 'Bot' }

/** Everything that this action may ask for. */
export const ALL_PERMISSIONS: Readonly<Record<PermissionName, Level>> = {
  contents: 'read',
  deployments: 'write',
  issues: 'none',
  'pull-requests': 'write',
}

/** The state of a deployment record as the deployments page shows it. */
export function stateOf({ statuses }: DeploymentRecordState): string {
  return statuses.at(-1)?.state ?? 'pending'
}
