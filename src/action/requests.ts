import type { DeploymentCreate, DeploymentPatch } from '../contract/deployment.ts'
import type { Inputs } from './inputs.ts'

/** Body of the request that creates the deployment. */
export function createBody(name: string, inputs: Inputs): DeploymentCreate {
  const { source } = inputs
  const type = inputs.deploymentType === undefined ? {} : { deployment_type: inputs.deploymentType }
  const integration = inputs.integrationId === undefined ? {} : { integration_id: inputs.integrationId }
  const sourceConfig =
    source.kind === 'git_host'
      ? { ...inputs.sourceConfig, ...type, ...integration, repo_url: source.repoUrl, build_on_push: inputs.buildOnPush ?? false }
      : { resource_spec: {}, ...inputs.sourceConfig, ...type }
  return {
    name,
    source: source.kind,
    source_config: sourceConfig,
    source_revision_config: revisionConfig(inputs),
    secrets: inputs.secrets ?? [],
  }
}

/**
 * Body of the request that updates the deployment: the source of the revision is never null, so that one is made (specification
 * 2.2); fields that are fixed at creation are never sent; the environment only when it was given, because it replaces all of it.
 */
export function patchBody(inputs: Inputs): DeploymentPatch {
  const build = inputs.source.kind === 'git_host' && inputs.buildOnPush !== undefined
  return {
    ...(build ? { source_config: { build_on_push: inputs.buildOnPush } } : {}),
    source_revision_config: revisionConfig(inputs),
    ...(inputs.secrets === undefined || inputs.secrets.length === 0 ? {} : { secrets: inputs.secrets }),
  }
}

function revisionConfig({ source }: Inputs): DeploymentCreate['source_revision_config'] {
  return source.kind === 'git_host'
    ? { repo_ref: source.repoRef, graph_config_path: source.configPath }
    : { image_uri: source.imageUri }
}
