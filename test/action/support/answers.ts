import {
  type DeploymentAnswer,
  deploymentAnswerSchema,
  type RevisionAnswer,
  revisionAnswerSchema,
} from '../../../src/contract/answers.ts'

export const DEPLOYMENT_ID = '1b4e28ba-2fa1-4d2b-883f-0016d3cca427'
export const OLD_REVISION_ID = '00000000-0000-4000-8000-000000000001'
export const NEW_REVISION_ID = '00000000-0000-4000-8000-000000000002'
export const COMMIT = 'c0ffee0000000000000000000000000000000000'
export const REPO_URL = 'https://github.com/acme/agents'
export const DIGEST = `registry.example.com/team/agent@sha256:${'a'.repeat(64)}`

/** `main` of the repository, at the commit of the event. */
export const GIT_SOURCE = {
  kind: 'git_host',
  repoUrl: REPO_URL,
  repoRef: 'main',
  configPath: 'langgraph.json',
  commit: COMMIT,
  eventCommit: COMMIT,
} as const

/** A deployment that serves `main`, as the client answers it. */
export function deployment(changes: Record<string, unknown> = {}): DeploymentAnswer {
  return deploymentAnswerSchema.parse({
    id: DEPLOYMENT_ID,
    name: 'agent',
    status: 'READY',
    source: 'git_host',
    source_config: { repo_url: REPO_URL, build_on_push: false },
    source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' },
    secrets: [],
    latest_revision_id: OLD_REVISION_ID,
    active_revision_id: OLD_REVISION_ID,
    url: 'https://agent.example.com',
    ...changes,
  })
}

export function revision(status: string, changes: Record<string, unknown> = {}): RevisionAnswer {
  return revisionAnswerSchema.parse({
    id: NEW_REVISION_ID,
    status,
    source: 'git_host',
    source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json', repo_commit_sha: COMMIT },
    created_at: '2026-01-01T00:00:00Z',
    updated_at: '2026-01-01T00:01:00Z',
    ...changes,
  })
}
