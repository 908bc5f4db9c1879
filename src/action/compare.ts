import type { DeploymentAnswer } from '../contract/answers.ts'
import { FIXED_SOURCE_CONFIG_FIELDS } from '../contract/deployment.ts'
import { isTagRef } from '../contract/git-ref.ts'
import { isImageOf } from '../contract/image.ts'
import type { Inputs } from './inputs.ts'
import type { Change } from './journal.ts'
import { sameRepoUrl } from './parse/repo-url.ts'
import { ActionFailure } from './report/error-codes.ts'

type Field = Change & { same: boolean; input: string }

/**
 * The fields that are fixed at creation and are wanted otherwise. A field that no input names, or that the control plane does not
 * tell, is not compared.
 */
function conflicts(inputs: Inputs, deployment: DeploymentAnswer): Field[] {
  const live = deployment.source_config
  const { source, sourceConfig } = inputs
  const fields: (Field | undefined)[] = [
    compared({ field: 'source', live: deployment.source, wanted: source.kind, input: 'image-uri' }),
    source.kind === 'git_host'
      ? compared({ field: 'repo_url', live: live.repo_url, wanted: source.repoUrl, input: 'repo-url', same: sameRepoUrl })
      : undefined,
    compared({
      field: 'integration_id',
      live: live.integration_id,
      wanted: inputs.integrationId,
      input: 'integration-id',
      same: sameText,
    }),
    compared({ field: 'deployment_type', live: live.deployment_type, wanted: inputs.deploymentType, input: 'deployment-type' }),
    ...FIXED_SOURCE_CONFIG_FIELDS.map((field) =>
      compared({ field, live: toText(live[field]), wanted: toText(sourceConfig[field]), input: 'source-config' }),
    ),
  ]
  return fields.filter((field) => field !== undefined).filter(({ same }) => !same)
}

/** Refuses a deployment that would have to be another one. */
export function refuseConflicts(inputs: Inputs, deployment: DeploymentAnswer): void {
  const found = conflicts(inputs, deployment)
  if (found.length === 0) return
  const lines = found.map(
    ({ field, live, wanted, input }) => `- ${field}: live is '${live}', wanted is '${wanted}' (input ${input})`,
  )
  throw new ActionFailure({
    code: 'E_CONFLICT',
    happened:
      `The deployment '${deployment.name}' exists, and fields of it that are fixed at creation are wanted otherwise:\n` +
      lines.join('\n'),
    tried: 'Nothing was changed.',
    next:
      'Take the live value over into the workflow, or choose another deployment-name so that a new deployment is created' +
      `${deployment.active_revision_id === null ? ', or delete the deployment if it never served' : ''}.`,
  })
}

/** What an update would change. The environment is compared by names: its values are not readable. */
export function changesOf(inputs: Inputs, deployment: DeploymentAnswer): Change[] {
  const live = deployment.source_revision_config
  const { source } = inputs
  const changes: (Field | undefined)[] =
    source.kind === 'git_host'
      ? [
          compared({ field: 'repo_ref', live: live.repo_ref ?? '(none)', wanted: source.repoRef, input: 'repo-ref' }),
          compared({
            field: 'graph_config_path',
            live: live.graph_config_path ?? '(none)',
            wanted: source.configPath,
            input: 'config-path',
          }),
          compared({
            field: 'build_on_push',
            live: String(deployment.source_config.build_on_push ?? 'unknown'),
            wanted: inputs.buildOnPush === undefined ? undefined : String(inputs.buildOnPush),
            input: 'build-on-push',
          }),
        ]
      : [
          compared({
            field: 'image_uri',
            live: live.image_uri ?? '(none)',
            wanted: source.imageUri,
            input: 'image-uri',
            same: isImageOf,
          }),
        ]
  const kept = changes.filter((change) => change !== undefined).filter(({ same }) => !same)
  return [...kept.map(({ field, live, wanted }) => ({ field, live, wanted })), ...environmentChange(inputs, deployment)]
}

/** The variables that an update would take away, because `secrets` replaces all of them. */
export function removedVariables(inputs: Inputs, deployment: DeploymentAnswer): string[] {
  if (inputs.secrets === undefined || inputs.secrets.length === 0) return []
  const wanted = new Set(inputs.secrets.map(({ name }) => name))
  return deployment.secrets.map(({ name }) => name).filter((name) => !wanted.has(name))
}

/** Fields of `source-config` that are live otherwise and are only sent on create. */
export function ignoredSourceConfig(inputs: Inputs, deployment: DeploymentAnswer): string[] {
  const fixed = new Set<string>(FIXED_SOURCE_CONFIG_FIELDS)
  return Object.entries(inputs.sourceConfig)
    .filter(
      ([field, value]) => !fixed.has(field) && value !== undefined && toText(deployment.source_config[field]) !== toText(value),
    )
    .map(([field]) => field)
}

/** True when the service will build the pushes to this branch by itself, beside this step. */
export function buildsTwice(inputs: Inputs, deployment: DeploymentAnswer): boolean {
  const builds = inputs.buildOnPush ?? deployment.source_config.build_on_push ?? false
  return builds && inputs.source.kind === 'git_host' && !isTagRef(inputs.source.repoRef)
}

function environmentChange(inputs: Inputs, deployment: DeploymentAnswer): Change[] {
  if (inputs.secrets === undefined || inputs.secrets.length === 0) return []
  return [{ field: 'secrets', live: names(deployment.secrets), wanted: `${names(inputs.secrets)} (all values set anew)` }]
}

function names(entries: readonly { name: string }[]): string {
  return entries.length === 0
    ? '(none)'
    : entries
        .map(({ name }) => name)
        .toSorted()
        .join(', ')
}

function compared({
  field,
  live,
  wanted,
  input,
  same = (a, b) => a === b,
}: {
  field: string
  live: string | null | undefined
  wanted: string | undefined
  input: string
  same?: (live: string, wanted: string) => boolean
}): Field | undefined {
  if (live === null || live === undefined || wanted === undefined) return undefined
  return { field, live, wanted, input, same: same(live, wanted) }
}

function sameText(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
}

/** A value as one text that does not depend on the order of fields. */
function toText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : JSON.stringify(sorted(value))
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, part]) => [key, sorted(part)]),
  )
}
