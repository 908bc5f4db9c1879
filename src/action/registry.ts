import { FORMAT_VERSIONS } from '../contract/bulk-export.ts'
import { STREAM_MODES } from '../contract/run-stream.ts'

/**
 * The action's surface, in one place: action.yml and the README's tables are written from it, the code is typed by it, and a test
 * compares all of them.
 */

/** How the text of an input is read. */
type InputKind = 'text' | 'boolean' | 'duration' | 'enum' | 'lines' | 'object' | 'url' | 'uuid'

type InputSpec = {
  /** One or two sentences of Markdown. */
  description: string
  kind: InputKind
  required: boolean
  /** The value never reaches a log, a summary or an error text. */
  secret: boolean
  /** What action.yml gives when the workflow says nothing; `''` means unset. */
  default: string
  /** The same where the runner has to evaluate it: an input without a text is unset all the same. */
  defaultExpression?: string
  /** Where an unset input comes from, for people. */
  defaultNote?: string
  /** What an `enum` accepts. */
  values?: readonly string[]
}

type NamedSpec = { description: string }

const text = { kind: 'text', required: false, secret: false, default: '' } as const

export const ACTION = {
  name: 'Deploy Agent Server',
  description:
    'Creates or updates an agent-server deployment, follows the new revision until it serves, and goes red when it does not.',
  branding: { icon: 'upload-cloud', color: 'blue' },
  runs: { using: 'node24', main: 'dist/index.js', post: 'src/action/post-entry.mjs' },
} as const

export const INPUTS = {
  'api-key': {
    ...text,
    description:
      'API key of the control plane, sent as `X-Api-Key`. Give it from a secret; it is masked before anything else happens.',
    required: true,
    secret: true,
  },
  'workspace-id': {
    ...text,
    description:
      'Workspace of the deployment, sent as `X-Tenant-Id`. Needed for exports, and when the key belongs to a whole organisation.',
    kind: 'uuid',
  },
  region: {
    ...text,
    description: 'Region of the hosted service. Picks its addresses.',
    kind: 'enum',
    values: ['us', 'eu', 'apac', 'aws'],
    default: 'us',
  },
  'control-plane-url': {
    ...text,
    description: 'Address of a self-hosted control plane, with its path prefix if it has one. Overrides `region`.',
    kind: 'url',
    defaultNote: 'from `region`',
  },
  'api-url': {
    ...text,
    description: 'Address of a self-hosted main API, which exports go through. Overrides `region`.',
    kind: 'url',
    defaultNote: 'from `region`',
  },
  dialect: {
    ...text,
    description: 'Names that the control plane speaks: `spec` or `vendor`. `auto` tells them apart by the address.',
    kind: 'enum',
    values: ['auto', 'spec', 'vendor'],
    default: 'auto',
  },
  mode: {
    ...text,
    description:
      'What this step does. `deploy` creates or updates one deployment, and then exports traces if `export-project-id` is set; ' +
      '`preview` does so for a deployment of the pull request, and removes it when that is closed; `teardown` only removes it; ' +
      '`sweep` removes the previews that were left over; `promote` deploys what was proven elsewhere; `export` only exports traces.',
    kind: 'enum',
    values: ['deploy', 'preview', 'promote', 'teardown', 'sweep', 'export'],
    default: 'deploy',
  },
  'deployment-name': {
    ...text,
    description:
      'Name of the deployment: found by its exact name, created if it is absent. Give either this or `deployment-id`. The names of ' +
      'previews are made from it: `<name>-pr-<number>`.',
  },
  'deployment-id': {
    ...text,
    description: 'Id of the deployment to update. Never creates one.',
    kind: 'uuid',
  },
  'repo-url': {
    ...text,
    description: 'Git repository to build from. Fixed once the deployment exists.',
    kind: 'url',
    defaultNote: 'this repository',
  },
  'repo-ref': {
    ...text,
    description: 'What to build: a bare branch name, or a full `refs/tags/…`.',
    defaultNote: 'from the event',
  },
  tag: {
    ...text,
    description: 'Tag to build, as `v1.2.3` or `refs/tags/v1.2.3`. Excludes `repo-ref` and implies `build-on-push: false`.',
  },
  'config-path': {
    ...text,
    description: 'Graph configuration file, relative to the root of the repository.',
    defaultNote: '`langgraph.json`',
  },
  'image-uri': {
    ...text,
    description:
      'Container image to run in place of a git build. Excludes the inputs of git: `repo-*`, `tag`, `config-path` and the like.',
  },
  'integration-id': {
    ...text,
    description: 'Id of the git integration that the hosted service reads the repository with. Fixed once the deployment exists.',
    kind: 'uuid',
  },
  'deployment-type': {
    ...text,
    description: 'Type of the deployment as the service names it, such as `dev` or `prod`. Fixed once the deployment exists.',
  },
  'build-on-push': {
    ...text,
    description: 'Whether the service also builds every push to the branch by itself. Must be `false` for a tag.',
    kind: 'boolean',
    defaultNote: '`false` on create, unchanged on update',
  },
  'source-config': {
    ...text,
    description:
      'YAML or JSON object merged into `source_config` on create, for fields without an input: `resource_spec`, `listener_id` …',
    kind: 'object',
  },
  secrets: {
    ...text,
    description:
      'Environment of the agent: lines `NAME=value`, or `NAME<<END` for several lines. Replaces **all** of them; empty keeps all.',
    kind: 'lines',
    secret: true,
  },
  'skip-unchanged': {
    ...text,
    description: 'Makes no revision when the one that serves already has this commit, or this image by digest.',
    kind: 'boolean',
    default: 'false',
  },
  'dry-run': {
    ...text,
    description: 'Authenticates, compares what is wanted with what is live, prints the plan, and changes nothing.',
    kind: 'boolean',
    default: 'false',
  },
  wait: {
    ...text,
    description:
      'Follows the revision to its end. With `false` the step is green as soon as the control plane has accepted the revision.',
    kind: 'boolean',
    default: 'true',
  },
  timeout: {
    ...text,
    description: 'Longest wait for the revision, such as `90s`, `10m` or `1h30m`.',
    kind: 'duration',
    default: '30m',
  },
  'on-timeout': {
    ...text,
    description:
      'What becomes of the remote revision, or the export that this step made, when its wait times out: `leave` it running or ' +
      '`interrupt` it.',
    kind: 'enum',
    values: ['leave', 'interrupt'],
    default: 'leave',
  },
  'on-cancel': {
    ...text,
    description:
      'What becomes of the remote revision, or the export that this step made, when the workflow is cancelled: `leave` it running ' +
      'or `interrupt` it.',
    kind: 'enum',
    values: ['leave', 'interrupt'],
    default: 'leave',
  },
  'smoke-test-input': {
    ...text,
    description:
      'JSON object: the `input` of a run that is streamed once the revision serves, or is found unchanged. Turns the smoke test on.',
    kind: 'object',
  },
  'smoke-test-assistant': {
    ...text,
    description: 'Assistant that the smoke test runs: the name of a graph.',
    defaultNote: 'first graph of the configuration file in the checkout, else of the agent server',
  },
  'smoke-test-stream-mode': {
    ...text,
    description: 'What the smoke test has the agent stream.',
    kind: 'enum',
    values: STREAM_MODES,
    default: 'updates',
  },
  'smoke-test-expect': {
    ...text,
    description:
      'Regular expression to be found in the text that the agent streams, in any mode. `(?i:…)` ignores case; what was said to ' +
      'the agent does not count.',
  },
  'smoke-test-timeout': {
    ...text,
    description: 'Longest wait for a passing run, from the moment that the revision serves. Repeats only what was not answered.',
    kind: 'duration',
    default: '2m',
  },
  'rollback-on-failure': {
    ...text,
    description:
      'Brings the last good source back when the revision fails, or its smoke test: as a new revision, which is waited for and ' +
      'smoke-tested itself. The step stays red. Contradicts `wait: false`.',
    kind: 'boolean',
    default: 'false',
  },
  'promote-from': {
    ...text,
    description:
      'Name or id of the deployment whose live revision `mode: promote` deploys: of the commit that the tag names, and with a ' +
      'recorded smoke test.',
  },
  'preview-ttl': {
    ...text,
    description:
      'Age at which `mode: sweep` removes a preview although its pull request is open, counted from its last revision; up to `365d`.',
    kind: 'duration',
    default: '7d',
  },
  'export-project-id': {
    ...text,
    description:
      'Id of the tracing project whose traces are exported. Turns the export on: after a successful deploy, which keeps its ' +
      '`status`, or alone with `mode: export`. Needs `workspace-id`.',
    kind: 'uuid',
  },
  'export-destination-id': {
    ...text,
    description: 'Id of an existing export destination. Give either this or `export-bucket`.',
    kind: 'uuid',
  },
  'export-bucket': {
    ...text,
    description:
      'Bucket to export to. Its destination is created the first time, and found again by its name, which follows from the bucket, ' +
      'the prefix, the region and the endpoint; credentials that are given are brought up to date.',
  },
  'export-prefix': { ...text, description: 'Root prefix inside the bucket.' },
  'export-bucket-region': {
    ...text,
    description: 'Region of the bucket. Needed for buckets of the original provider, which have no `export-endpoint-url`.',
  },
  'export-endpoint-url': {
    ...text,
    description: 'Address of another S3-compatible store.',
    kind: 'url',
  },
  'export-access-key-id': {
    ...text,
    description: "Access key id for the bucket, from a secret. Without credentials a self-hosted service uses its environment's.",
    secret: true,
  },
  'export-secret-access-key': { ...text, description: 'Secret access key for the bucket, from a secret.', secret: true },
  'export-session-token': { ...text, description: 'Session token of temporary credentials, from a secret.', secret: true },
  'export-start': {
    ...text,
    description:
      'Beginning of the range: ISO 8601 (UTC, unless it has a zone), or relative to the beginning of the export: `-24h`, `-7d`, ' +
      '`now`. With a schedule that exists already a relative beginning is not compared.',
  },
  'export-end': {
    ...text,
    description: 'End of the range, exclusive, written as `export-start`. Must be left out for a scheduled export.',
  },
  'export-interval-hours': {
    ...text,
    description:
      'Hours from 1 to 168: makes a scheduled export, which is not followed. One that is there with the same settings is left as ' +
      'it is (`unchanged`).',
  },
  'export-filter': {
    ...text,
    description: "Filter in the service's language, such as `eq(is_root, true)`. Its syntax is checked before any request.",
    defaultNote: 'all runs',
  },
  'export-fields': {
    ...text,
    description: 'Fields of the runs to export, separated by commas or lines. Without `inputs` and `outputs` it is much faster.',
    kind: 'lines',
    defaultNote: 'all fields',
  },
  'export-format-version': {
    ...text,
    description: '`v2_beta` has richer column types and a Hive layout.',
    kind: 'enum',
    values: FORMAT_VERSIONS,
    defaultNote: "the service's",
  },
  'export-wait': {
    ...text,
    description: 'Follows a one-off export to its end. With `false` the step is green as soon as the export is accepted.',
    kind: 'boolean',
    default: 'true',
  },
  'export-timeout': {
    ...text,
    description: 'Longest wait for the export.',
    kind: 'duration',
    default: '72h',
  },
  environment: {
    ...text,
    description:
      "GitHub environment that the step is recorded for on the repository's deployments page; empty: none is recorded. Needs the " +
      'permission `deployments: write`. Leave it out where the job has an `environment:` of its own, which records it already.',
  },
  comment: {
    ...text,
    description:
      'Comments on the pull request, and keeps that one comment up to date. Needs the permission `pull-requests: write`. There is ' +
      'one comment for each `environment`, or, without one, for each deployment.',
    kind: 'boolean',
    defaultNote: '`true` on pull requests',
  },
  summary: {
    ...text,
    description: 'Writes the job summary.',
    kind: 'boolean',
    default: 'true',
  },
  'github-token': {
    ...text,
    description:
      'Token for GitHub: deployment records, comments, the state of pull requests, tags. Without one, or where it may not, the step ' +
      'warns and goes on.',
    secret: true,
    defaultExpression: '${{ github.token }}',
  },
} as const satisfies Record<string, InputSpec>

export const OUTPUTS = {
  status: {
    description:
      'How the step ended, always set. Green: `deployed` (with `wait: false`: accepted), `unchanged`, `removed`, `skipped`, ' +
      '`planned`, `exported`. After a rollback that worked: `rolled-back`, red.',
  },
  'deployment-id': { description: 'Id of the deployment.' },
  'deployment-name': { description: 'Name of the deployment.' },
  'deployment-url': { description: 'Address of the agent server, when the control plane tells it.' },
  created: { description: '`true` when this step created the deployment, `false` when it was there.' },
  'revision-id': {
    description:
      'Id of the revision that this step made; for `unchanged`, of the one that serves. For `rolled-back` this and the outputs of the ' +
      'revision and of the smoke test are about the one that serves after the rollback; `error-code` is about the one that failed.',
  },
  'revision-status': { description: 'Last status of that revision that was seen, such as `DEPLOYED` or `BUILD_FAILED`.' },
  'previous-revision-id': { description: 'Id of the revision that served before this step.' },
  'commit-sha': { description: 'Commit that the revision was built from, when the control plane or the event tells it.' },
  'image-uri': { description: 'Container image of the revision, when it has one.' },
  'smoke-test': {
    description:
      '`passed` or `failed`; `skipped` when it was asked for and did not come to an answer. Not set without `smoke-test-input`.',
  },
  'smoke-test-first-event-ms': { description: "Milliseconds from the smoke test's request to the first event of the agent." },
  'export-id': { description: 'Id of the export, or of the schedule.' },
  'export-status': { description: 'Last status of the export that was seen, such as `COMPLETED` or `INTERVAL_SCHEDULED`.' },
  'export-rows': { description: 'Rows that the export has written.' },
  'export-files': { description: 'Number of Parquet files that the export has written.' },
  'error-code': { description: 'Stable code of the failure, such as `E_BUILD_FAILED`; not set on a green step.' },
} as const satisfies Record<string, NamedSpec>

/** What `main` leaves for `post`. */
export const STATE_KEYS = {
  isPost: { description: 'Set by main at its start, so that the same bundle knows that it runs as post.' },
  done: { description: 'Set when main has concluded: post has nothing to do.' },
  pending: { description: 'The change that was asked for and not yet answered, in words.' },
  deploymentId: { description: 'Deployment that main works on.' },
  revisionId: { description: 'Revision that main made.' },
  interrupt: { description: 'Why the revision is to be interrupted, as long as that has not been done.' },
  ended: { description: 'Set when the revision reached its end: there is nothing left to interrupt.' },
  exportId: { description: 'Export that main created.' },
  exportEnded: { description: 'Set when that export reached its end, or is not followed: there is nothing left to cancel.' },
  deploymentRecord: { description: "Record on GitHub's deployments page that main has made and not yet brought to its end." },
  cancelExport: { description: 'Why that export is to be cancelled, as long as that has not been done.' },
} as const satisfies Record<string, NamedSpec>

export type InputName = keyof typeof INPUTS
export type OutputName = keyof typeof OUTPUTS
export type StateKey = keyof typeof STATE_KEYS

export const INPUT_NAMES = Object.keys(INPUTS) as InputName[]

/** What a spec says, with the optional parts that `as const` hides. */
export function inputSpec(name: InputName): InputSpec {
  return INPUTS[name]
}

/** How a step can end, and whether that is green. */
export const STATUSES = {
  deployed: true,
  unchanged: true,
  removed: true,
  skipped: true,
  planned: true,
  exported: true,
  failed: false,
  'timed-out': false,
  cancelled: false,
  superseded: false,
  'rolled-back': false,
} as const satisfies Record<string, boolean>
export type Status = keyof typeof STATUSES
