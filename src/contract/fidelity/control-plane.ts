import { type Area, chosen, documented, inferred, specification } from './evidence.ts'

const described = documented('control plane description')
const reference = documented('control plane reference')
const commandLine = inferred('command line')
const unknownId = chosen('an id that the workspace does not have is not found on this route either')
const ended = chosen('what has ended, or is being deleted, cannot be changed')
const acceptedOnly = (source: 'command line' | 'sample pipeline') => inferred(source, 'accepted, without effect here')

const PAGE = [[specification('8.1'), ['limit', 'offset']]] as const
const LOG_FILTER = ['limit', 'order', 'offset', 'level', 'query', 'start_time', 'end_time']
const OLD_LOG = {
  route: inferred('command line', 'the older form of the log routes'),
  answers: { 200: commandLine, 404: unknownId },
  body: [[commandLine, LOG_FILTER]],
} as const

/** Specification 2.1 to 2.5, 3.1, 4.1 and 7.1. */
export const CONTROL_PLANE: Area = {
  title: 'Control plane',
  routes: {
    'POST /v2/deployments': {
      route: specification('4.1'),
      answers: {
        201: described,
        400: described,
        409: inferred('sample pipeline', 'for a tracing project of that name; for a deployment of that name it is chosen'),
      },
    },
    'GET /v2/deployments': {
      route: described,
      answers: { 200: described },
      query: [
        ...PAGE,
        [
          described,
          ['name_contains', 'status', 'deployment_ids', 'deployment_type', 'remote_reconciled', 'image_version', 'tag_value_ids'],
        ],
        [inferred('sample pipeline', 'it looks for the beginning of a name'), ['name']],
      ],
    },
    'DELETE /v2/deployments': {
      route: described,
      answers: { 200: described, 207: described, 404: described },
      query: [
        [described, ['deployment_ids']],
        [chosen('as in the deletion of one'), ['delete_tracing_project']],
      ],
      answer: [[chosen('the body of this answer is not known'), ['deleted', 'failed', 'failed.id', 'failed.detail']]],
    },
    'GET /v2/deployments/{deployment_id}': { route: specification('4.1'), answers: { 200: described, 404: described } },
    'PATCH /v2/deployments/{deployment_id}': {
      route: specification('4.1'),
      answers: { 200: described, 400: described, 404: described, 409: ended },
    },
    'DELETE /v2/deployments/{deployment_id}': {
      route: described,
      answers: { 204: described, 404: described },
      query: [[described, ['delete_tracing_project']]],
    },
    'GET /v2/deployments/{deployment_id}/revisions': {
      route: specification('4.1'),
      answers: { 200: specification('4.1'), 404: specification('4.1') },
      query: [
        ...PAGE,
        [specification('4.1'), ['status']],
        [specification('4.1', 'what the flag means is chosen: the runtime serves the revision'), ['remote_reconciled']],
      ],
    },
    'POST /v2/deployments/{deployment_id}/revisions': {
      route: reference,
      answers: {
        201: inferred('Terraform provider', 'the status in its tests'),
        400: inferred('Terraform provider'),
        404: unknownId,
        409: ended,
      },
    },
    'GET /v2/deployments/{deployment_id}/revisions/{revision_id}': {
      route: specification('4.1'),
      answers: { 200: specification('4.1'), 404: described },
    },
    'POST /v2/deployments/{deployment_id}/revisions/{revision_id}/redeploy': {
      route: documented(
        'control plane description',
        'that it makes a new revision, of one that need not be the latest, is chosen',
      ),
      answers: { 200: described, 400: described, 404: described, 409: ended },
    },
    'POST /v2/deployments/{deployment_id}/revisions/{revision_id}/interruption': {
      route: inferred('sample pipeline'),
      answers: { 202: inferred('sample pipeline', 'it takes 200, 202 and 204'), 404: unknownId, 409: ended },
    },
    'GET /v2/deployments/{deployment_id}/revisions/{revision_id}/logs': {
      route: reference,
      answers: { 200: reference, 404: reference },
      query: [[reference, ['type', ...LOG_FILTER]]],
    },
    'POST /v1/projects/{deployment_id}/revisions/{revision_id}/build_logs': OLD_LOG,
    'POST /v1/projects/{deployment_id}/revisions/{revision_id}/deploy_logs': OLD_LOG,
    'POST /v1/projects/{deployment_id}/deploy_logs': OLD_LOG,
    'POST /v2/deployments/{deployment_id}/push-token': {
      route: inferred('command line', 'always refused: no deployment here has the source internal_docker'),
      answers: { 400: commandLine, 404: unknownId },
    },
    'POST /v2/deployments/{deployment_id}/upload-url': {
      route: inferred('command line', 'always refused: no deployment here has the source internal_source'),
      answers: { 400: chosen('as for a push token'), 404: unknownId },
    },
  },
  objects: {
    deploymentSchema: {
      title: 'Deployment',
      fields: [
        [specification('2.5'), ['id', 'latest_revision_id', 'source_config', 'source_revision_config']],
        [described, ['tenant_id', 'name', 'status', 'source', 'active_revision_id', 'image_version', 'created_at', 'updated_at']],
        [described, ['secrets', 'secrets.name', 'secret_references']],
        [documented('control plane description', 'always empty here: values are never shown'), ['secrets.value']],
        [inferred('Terraform provider'), ['display_name']],
        [inferred('sample pipeline', 'read before source_config.custom_url'), ['url']],
      ],
    },
    deploymentsListSchema: { title: 'DeploymentsList', fields: [[described, ['resources', 'offset']]] },
    deploymentCreateSchema: {
      title: 'Body of a create',
      fields: [
        [
          documented('control plane description', 'only name, source and what it is made from are required here'),
          ['name', 'source'],
        ],
        [described, ['source_config', 'source_revision_config', 'secrets']],
        [
          documented('control plane description', 'only [] and null are accepted: there is no cluster here'),
          ['secret_references'],
        ],
        [chosen('the Terraform provider sets it by a second request; one is enough'), ['display_name']],
        [acceptedOnly('command line'), ['tracked_packages']],
        [acceptedOnly('sample pipeline'), ['route_through_gateway']],
      ],
    },
    deploymentPatchSchema: {
      title: 'Body of an update',
      fields: [
        [described, ['revision_source', 'source_config', 'source_revision_config', 'secrets']],
        [
          documented('control plane description', 'only [] and null are accepted: there is no cluster here'),
          ['secret_references'],
        ],
        [chosen('accepted with the value that is stored: a client may send back what it has read'), ['source']],
        [inferred('Terraform provider'), ['display_name']],
        [acceptedOnly('command line'), ['tracked_packages']],
        [acceptedOnly('sample pipeline'), ['route_through_gateway']],
      ],
    },
    revisionCreateSchema: {
      title: 'Body of a new revision',
      fields: [
        [inferred('Terraform provider'), ['source_revision_config', 'source_config', 'secrets']],
        [inferred('Terraform provider', 'only [] and null are accepted: there is no cluster here'), ['secret_references']],
        [chosen('as in an update'), ['tracked_packages', 'route_through_gateway']],
      ],
    },
    sourceConfigSchema: {
      title: 'SourceConfig',
      fields: [
        [specification('2.5'), ['build_on_push']],
        [
          described,
          ['integration_id', 'repo_url', 'deployment_type', 'listener_id', 'listener_config', 'listener_config.k8s_namespace'],
        ],
        [described, ['resource_spec', 'install_command', 'build_command']],
        [documented('control plane description', "for git_host the service sets it, to the agent's address"), ['custom_url']],
      ],
    },
    sourceConfigInputSchema: {
      title: 'SourceConfig of a request',
      fields: [
        [specification('2.2', 'must be false with a tag'), ['build_on_push']],
        [described, ['repo_url', 'custom_url', 'resource_spec', 'install_command', 'build_command']],
        [
          documented('control plane description', 'kept and shown, without effect here'),
          ['integration_id', 'deployment_type', 'listener_id', 'listener_config', 'listener_config.k8s_namespace'],
        ],
        [inferred('command line', 'only null'), ['template_id']],
      ],
    },
    sourceRevisionConfigSchema: {
      title: 'SourceRevisionConfig',
      fields: [[specification('2.2'), ['repo_ref', 'graph_config_path', 'image_uri', 'repo_commit_sha']]],
    },
    sourceRevisionConfigInputSchema: {
      title: 'SourceRevisionConfig of a request',
      fields: [
        [specification('2.2'), ['repo_ref', 'graph_config_path', 'image_uri']],
        [specification('2.2', 'read-only: only null is accepted'), ['repo_commit_sha']],
        [documented('control plane description', 'only null: there is no such source here'), ['source_tarball_path']],
      ],
    },
    resourceSpecSchema: {
      title: 'ResourceSpec',
      fields: [
        [
          documented('control plane description', 'its fields for a cluster are carried as they are'),
          ['min_scale', 'max_scale', 'cpu', 'cpu_limit', 'memory_mb', 'memory_limit_mb'],
        ],
      ],
    },
    secretSchema: { title: 'Secret', fields: [[described, ['name', 'value']]] },
    revisionSchema: {
      title: 'Revision',
      fields: [
        [specification('2.1'), ['id', 'created_at', 'updated_at', 'status', 'source', 'source_revision_config']],
        [inferred('sample pipeline', 'not every control plane has it'), ['status_message']],
      ],
    },
    revisionsListSchema: { title: 'RevisionsList', fields: [[specification('2.3'), ['resources', 'offset']]] },
    logsResponseSchema: { title: 'LogsResponse', fields: [[reference, ['logs', 'next_offset']]] },
    logEntrySchema: {
      title: 'LogEntry',
      fields: [[inferred('command line', 'the reference calls an entry a free object'), ['id', 'timestamp', 'level', 'message']]],
    },
    httpValidationErrorSchema: { title: 'HTTPValidationError', fields: [[specification('2.4'), ['detail']]] },
    validationErrorSchema: { title: 'ValidationError', fields: [[specification('2.4'), ['loc', 'msg', 'type']]] },
    detailErrorSchema: {
      title: 'Problem',
      fields: [[specification('7.1', 'for 404; the other refusals have the same form, as was seen'), ['detail']]],
    },
  },
}
