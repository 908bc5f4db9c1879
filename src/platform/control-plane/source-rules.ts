import { isDeepStrictEqual } from 'node:util'
import { DEFAULT_CONFIG_PATH } from '../../contract/config-path.ts'
import {
  type DeploymentCreate,
  FIXED_SOURCE_CONFIG_FIELDS,
  type SourceConfig,
  type SourceConfigInput,
} from '../../contract/deployment.ts'
import { isTagRef } from '../../contract/git-ref.ts'
import type { Source, SourceRevisionConfigInput } from '../../contract/revision.ts'
import { HttpProblem } from '../http/problem.ts'

export type Offering = 'cloud' | 'self_hosted' | 'any'

/** What one revision is made from. */
export interface RevisionSource {
  readonly repo_ref: string | null
  readonly graph_config_path: string | null
  readonly image_uri: string | null
}

/** Fields that mean something for one source only (specification 2.2; hosted service). */
const ONLY_FOR: Readonly<Record<string, Source>> = {
  repo_url: 'git_host',
  integration_id: 'git_host',
  build_on_push: 'git_host',
  install_command: 'git_host',
  build_command: 'git_host',
  repo_ref: 'git_host',
  graph_config_path: 'git_host',
  image_uri: 'external_docker',
  resource_spec: 'external_docker',
  custom_url: 'external_docker',
}

/** Specification 1.3: the managed cloud builds from git only, a self-hosted installation runs images only. */
export function judgeOffering(source: Source, offering: Offering): void {
  if (offering === 'cloud' && source !== 'git_host') {
    refuse("building from a container image ('external_docker') is available only for self-hosted deployments; this is the cloud offering")
  }
  if (offering === 'self_hosted' && source !== 'external_docker') {
    refuse("building from a git repository ('git_host') is available only for the managed cloud offering; this is a self-hosted one")
  }
}

/** The stored form of a create request, every field there. @throws {HttpProblem} 400 with the rule that it breaks. */
export function judgeCreate(body: DeploymentCreate, offering: Offering): { sourceConfig: SourceConfig; revisionSource: RevisionSource } {
  const { source, source_config: config, source_revision_config: revision } = body
  judgeOffering(source, offering)
  judgeApplicable(source, config, revision)
  if (source === 'git_host' && !config.repo_url) refuse("'source_config.repo_url' is required for the source 'git_host'")
  if (source === 'external_docker' && !revision.image_uri) {
    refuse("'source_revision_config.image_uri' is required for the source 'external_docker'")
  }
  const repoUrl = config.repo_url ?? null
  if (repoUrl !== null) judgeRepoUrl(repoUrl)
  const sourceConfig: SourceConfig = {
    integration_id: config.integration_id ?? null,
    repo_url: repoUrl,
    deployment_type: config.deployment_type ?? 'prod',
    build_on_push: source === 'git_host' ? (config.build_on_push ?? false) : null,
    custom_url: config.custom_url ?? null,
    resource_spec: config.resource_spec ?? null,
    listener_id: config.listener_id ?? null,
    listener_config: config.listener_config ?? null,
    install_command: config.install_command ?? null,
    build_command: config.build_command ?? null,
  }
  const revisionSource: RevisionSource = {
    repo_ref: revision.repo_ref ?? null,
    graph_config_path: source === 'git_host' ? (revision.graph_config_path ?? DEFAULT_CONFIG_PATH) : null,
    image_uri: revision.image_uri ?? null,
  }
  judgeBuildOnPush(sourceConfig, revisionSource)
  return { sourceConfig, revisionSource }
}

/** What a deployment has now. */
export interface Stored {
  readonly source: Source
  readonly sourceConfig: SourceConfig
  readonly revisionSource: RevisionSource
  /** Path of the address that its answers show. */
  readonly agentPath: string
}

/** What a PATCH asks for, in the parts that concern the source. */
export interface SourceChange {
  readonly source?: Source | null | undefined
  readonly revision_source?: Source | null | undefined
  readonly source_config?: SourceConfigInput | null | undefined
  readonly source_revision_config?: SourceRevisionConfigInput | null | undefined
}

/**
 * The stored values with a change laid over them; a null means "unchanged". `makesRevision` by specification 2.2 and the hosted service:
 * a non-null `repo_ref`, `graph_config_path`, `image_uri`, `resource_spec`, `install_command` or `build_command`, changed or not.
 * @throws {HttpProblem} 400 with the rule that it breaks, judged against the stored values too.
 */
export function judgeChange(
  stored: Stored,
  change: SourceChange,
): { sourceConfig: SourceConfig; revisionSource: RevisionSource; makesRevision: boolean } {
  const config = withoutShownAddress(change.source_config ?? {}, stored)
  const revision = change.source_revision_config ?? {}
  for (const field of ['source', 'revision_source'] as const) {
    const wanted = change[field]
    if (wanted && wanted !== stored.source) {
      refuse(`'source' cannot change after creation: it is '${stored.source}', the request has '${wanted}' as '${field}'`)
    }
  }
  for (const field of FIXED_SOURCE_CONFIG_FIELDS) {
    const wanted = config[field]
    const now = stored.sourceConfig[field]
    if (wanted !== undefined && wanted !== null && !isDeepStrictEqual(wanted, now)) {
      refuse(`'source_config.${field}' cannot change after creation: it is ${JSON.stringify(now)}, the request has ${JSON.stringify(wanted)}`)
    }
  }
  judgeApplicable(stored.source, config, revision)
  const sourceConfig: SourceConfig = {
    ...stored.sourceConfig,
    ...withoutNulls({
      build_on_push: config.build_on_push,
      custom_url: config.custom_url,
      resource_spec: config.resource_spec,
      install_command: config.install_command,
      build_command: config.build_command,
    }),
  }
  const { repo_ref, graph_config_path, image_uri } = revision
  const revisionSource = { ...stored.revisionSource, ...withoutNulls({ repo_ref, graph_config_path, image_uri }) }
  judgeBuildOnPush(sourceConfig, revisionSource)
  const triggers = [repo_ref, graph_config_path, image_uri, config.resource_spec, config.install_command, config.build_command]
  return { sourceConfig, revisionSource, makesRevision: triggers.some((value) => value !== undefined && value !== null) }
}

/** A client that sends back what it has read sends the address of a git source too, which the service set itself: that asks for nothing. */
function withoutShownAddress(config: SourceConfigInput, { source, agentPath }: Stored): SourceConfigInput {
  const shown = source === 'git_host' && config.custom_url && new URL(config.custom_url).pathname === agentPath
  return shown ? { ...config, custom_url: null } : config
}

function judgeApplicable(source: Source, config: SourceConfigInput, revision: SourceRevisionConfigInput): void {
  const places = { source_config: config, source_revision_config: revision }
  for (const [place, fields] of Object.entries(places)) {
    for (const [field, value] of Object.entries(fields)) {
      const only = Object.hasOwn(ONLY_FOR, field) ? ONLY_FOR[field] : undefined
      if (only === undefined || only === source || value === null || value === undefined) continue
      // Saying "no" to what is impossible anyway harms nobody; clients send it by habit.
      if (field === 'build_on_push' && value === false) continue
      refuse(`'${place}.${field}' applies to the source '${only}' only; this deployment's source is '${source}'`)
    }
  }
}

/** Specification 2.2: a tag never moves, so it cannot be built on push. */
function judgeBuildOnPush(sourceConfig: SourceConfig, { repo_ref }: RevisionSource): void {
  if (sourceConfig.build_on_push === true && repo_ref !== null && isTagRef(repo_ref)) {
    refuse(`'source_config.build_on_push' must be false when 'source_revision_config.repo_ref' is a tag (${repo_ref})`)
  }
}

/** Addresses that builds can fetch from. With credentials in it an address would be a secret, and it is shown. */
function judgeRepoUrl(repoUrl: string): void {
  if (/[\0-\x20\x7f]/.test(repoUrl)) refuse("'source_config.repo_url' has white space or control characters")
  const url = URL.parse(repoUrl)
  if (url === null || !['https:', 'http:', 'file:'].includes(url.protocol)) {
    refuse("'source_config.repo_url' should be an address like https://github.com/owner/repository: https, http and file are possible")
  }
  if (url.username !== '' || url.password !== '') {
    refuse("'source_config.repo_url' must not carry credentials: it is shown in answers and logs")
  }
}

function withoutNulls<T extends Record<string, unknown>>(record: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null && value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
}

function refuse(rule: string): never {
  throw new HttpProblem(400, `Source configuration error: ${rule}.`)
}
