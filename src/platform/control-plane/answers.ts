import type { Deployment } from '../../contract/deployment.ts'
import type { Revision } from '../../contract/revision.ts'
import { AGENTS_PREFIX } from '../agents/admission.ts'
import type { DeploymentRow, RevisionRow } from '../database/schema.ts'

/** The columns of a revision that its answer shows. */
export const SHOWN_OF_REVISION = [
  'id',
  'created_at',
  'updated_at',
  'status',
  'status_message',
  'source',
  'repo_ref',
  'graph_config_path',
  'image_uri',
  'repo_commit_sha',
] as const satisfies readonly (keyof RevisionRow)[]

export type ShownRevision = Pick<RevisionRow, (typeof SHOWN_OF_REVISION)[number]>

/** A revision as the service answers it (specification 2.1). */
export function revisionAnswer(row: ShownRevision): Revision {
  return {
    id: row.id,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    status: row.status,
    status_message: row.status_message,
    source: row.source,
    source_revision_config: sourceRevisionConfig(row),
  }
}

/** The columns of a deployment's latest revision that its answer shows. */
export type LatestRevision = Pick<
  RevisionRow,
  'repo_ref' | 'graph_config_path' | 'image_uri' | 'repo_commit_sha' | 'secret_names'
>

/** A deployment as the service answers it (specification 2.5; hosted service). `latest` describes `source_revision_config` and the secrets. */
export function deploymentAnswer(row: DeploymentRow, latest: LatestRevision, origin: string): Deployment {
  return {
    id: row.id,
    tenant_id: row.workspace_id,
    name: row.name,
    display_name: row.display_name,
    status: row.status,
    source: row.source,
    // For a git source the service sets the address itself (hosted service).
    source_config: { ...row.source_config, custom_url: row.source === 'git_host' ? agentUrl(row, origin) : row.source_config.custom_url },
    source_revision_config: sourceRevisionConfig(latest),
    secrets: latest.secret_names.map((name) => ({ name, value: '' })),
    secret_references: null,
    latest_revision_id: row.latest_revision_id,
    active_revision_id: row.active_revision_id,
    url: agentUrl(row, origin),
    image_version: null,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}

/** The address of the deployed agent server: a custom one, or the platform's own. */
function agentUrl(row: Pick<DeploymentRow, 'slug' | 'source_config'>, origin: string): string {
  return row.source_config.custom_url ?? `${origin}${agentPath(row.slug)}`
}

export function agentPath(slug: string): string {
  return `${AGENTS_PREFIX}${slug}`
}

function sourceRevisionConfig(row: Omit<LatestRevision, 'secret_names'>) {
  return {
    repo_ref: row.repo_ref,
    graph_config_path: row.graph_config_path,
    image_uri: row.image_uri,
    repo_commit_sha: row.repo_commit_sha,
  }
}
