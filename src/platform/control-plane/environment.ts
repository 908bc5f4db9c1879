import type { DeploymentRow, RevisionRow } from '../database/schema.ts'
import type { SecretBox } from '../secrets.ts'

/** The environment that the deployment's user gave, in clear: for the agent's processes only. */
export function agentSecrets(
  secretBox: SecretBox,
  revision: Pick<RevisionRow, 'secrets' | 'deployment_id'>,
): Record<string, string> {
  if (revision.secrets === null) return {}
  return Object.fromEntries(secretBox.open(revision.secrets, revision.deployment_id).map(({ name, value }) => [name, value]))
}

/** What the platform itself tells an agent about where it runs; users cannot set these names (hosted service). */
export function platformEnvironment(
  deployment: Pick<DeploymentRow, 'id' | 'name' | 'workspace_id' | 'source_config'>,
  revision: Pick<RevisionRow, 'id' | 'repo_ref' | 'repo_commit_sha'>,
): Record<string, string> {
  return {
    LANGSMITH_DEPLOYMENT_NAME: deployment.name,
    LANGSMITH_PROJECT: deployment.name,
    LANGSMITH_HOST_PROJECT_NAME: deployment.name,
    LANGSMITH_HOST_PROJECT_ID: deployment.id,
    LANGSMITH_HOST_REVISION_ID: revision.id,
    LANGSMITH_TENANT_ID: deployment.workspace_id,
    LANGSMITH_LANGGRAPH_GIT_REPO: deployment.source_config.repo_url ?? '',
    LANGSMITH_LANGGRAPH_GIT_REF: revision.repo_ref ?? '',
    LANGSMITH_LANGGRAPH_GIT_REF_SHA: revision.repo_commit_sha ?? '',
  }
}

/** True when the user sends the agent's traces to another service: then this one does not interfere. */
export function tracesElsewhere(secrets: Readonly<Record<string, string>>): boolean {
  return 'LANGSMITH_API_KEY' in secrets || 'LANGSMITH_ENDPOINT' in secrets
}

/** Makes an agent trace into this platform by itself; the tracing project has the deployment's name. */
export function tracingEnvironment({ url, key }: { url: string; key: string }): Record<string, string> {
  return { LANGSMITH_TRACING: 'true', LANGSMITH_ENDPOINT: url, LANGSMITH_API_KEY: key }
}
