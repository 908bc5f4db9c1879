import { DEFAULT_CONFIG_PATH } from '../contract/config-path.ts'
import type { SourceConfigInput } from '../contract/deployment.ts'
import { type Dialect, dialectOf } from '../contract/dialects.ts'
import { isTagRef } from '../contract/git-ref.ts'
import { REGIONS } from '../contract/regions.ts'
import type { Secret } from '../contract/secret.ts'
import { exportOf, type ExportWish } from './export/wish.ts'
import type { GithubContext } from './github/context.ts'
import { sourceOfEvent } from './github/event.ts'
import { contradictions, previewContradictions } from './inputs/contradictions.ts'
import { gitSource } from './inputs/git-source.ts'
import { given, readFields, refusal } from './inputs/read.ts'
import { unusedWarnings } from './inputs/unused.ts'
import type { Fields } from './parse/fields.ts'
import type { InputProblem } from './parse/problem.ts'
import { sameRepoUrl } from './parse/repo-url.ts'
import { previewName } from './preview/name.ts'
import { previewOf, type PreviewWish, type SweepWish, sweepOf } from './preview/wish.ts'
import { promoteOf, type PromoteWish } from './promote/wish.ts'
import type { INPUTS, InputName } from './registry.ts'
import type { SmokeTest } from './smoke/smoke-test.ts'

export type Mode = (typeof INPUTS)['mode']['values'][number]

/** The texts of all inputs, as the runner gives them; `''` means unset. */
export type RawInputs = Record<InputName, string>

export type GitSource = {
  kind: 'git_host'
  repoUrl: string
  repoRef: string
  configPath: string
  /** The commit that `repoRef` is known to point at: the event's, for its ref in its repository. */
  commit?: string
  /** The event's commit for a ref of this name, whatever the address of its repository: a revision of that commit is the same. */
  eventCommit?: string
  /** Only `commit` will do: a revision of another one is a failure. */
  pinned?: true
}
export type ImageSource = { kind: 'external_docker'; imageUri: string }

/** What every mode needs. */
type CommonInputs = {
  apiKey: string
  workspaceId?: string
  controlPlaneUrl: string
  dialect: Dialect
  dryRun: boolean
  onTimeout: 'leave' | 'interrupt'
  onCancel: 'leave' | 'interrupt'
  summary: boolean
  /** Absent: nothing is recorded on the deployments page. */
  environment?: string
  /** Absent: on pull requests. */
  comment?: boolean
  githubToken?: string
  /** Sentences to print as warnings. */
  warnings: string[]
}

/** What a revision needs, checked and complete: the part that `deploy`, `preview` and `promote` have in common. */
export type Inputs = CommonInputs & {
  target: { name: string } | { id: string }
  source: GitSource | ImageSource
  integrationId?: string
  deploymentType?: string
  /** Set, or implied by a tag. Absent: the service's default on create, unchanged on update. */
  buildOnPush?: boolean
  sourceConfig: SourceConfigInput
  secrets?: Secret[]
  skipUnchanged: boolean
  rollbackOnFailure: boolean
  wait: boolean
  timeoutMs: number
  /** Absent: none is wanted. */
  smokeTest?: SmokeTest
  /** Absent: nothing is exported after the deploy. */
  export?: ExportWish
}

export type DeployInputs = Inputs & { mode: 'deploy' }
export type PreviewInputs = Inputs & { mode: 'preview'; target: { name: string }; preview: PreviewWish }
/** `source` is not used: it is that of the proven revision. */
export type PromoteInputs = Inputs & { mode: 'promote'; promote: PromoteWish }
export type TeardownInputs = CommonInputs & {
  mode: 'teardown'
  target: { name: string }
  preview: PreviewWish
  timeoutMs: number
}
export type SweepInputs = CommonInputs & { mode: 'sweep'; sweep: SweepWish; timeoutMs: number }
export type ExportInputs = CommonInputs & { mode: 'export'; export: ExportWish }

/** What the workflow wants. */
export type StepInputs = DeployInputs | PreviewInputs | PromoteInputs | TeardownInputs | SweepInputs | ExportInputs

/** True for the modes that make a revision. */
export function wantsDeploy(inputs: StepInputs): inputs is DeployInputs | PreviewInputs | PromoteInputs {
  return inputs.mode === 'deploy' || inputs.mode === 'preview' || inputs.mode === 'promote'
}

/** The traces that the step exports; undefined when it exports none. */
export function wantedExport(inputs: StepInputs): ExportWish | undefined {
  return inputs.mode === 'export' || wantsDeploy(inputs) ? inputs.export : undefined
}

/** Reads the inputs of any mode. Throws one `ActionFailure` (`E_INPUT`) that names every bad one. `now`: epoch milliseconds. */
export function parseStepInputs(raw: RawInputs, context: GithubContext, now: number): StepInputs {
  switch (raw.mode) {
    case 'export':
      return parseExportInputs(raw, now)
    case 'preview':
      return parsePreviewInputs(raw, context, now)
    case 'teardown':
      return parseTeardownInputs(raw, context)
    case 'sweep':
      return parseSweepInputs(raw, context)
    case 'promote':
      return parsePromoteInputs(raw, context, now)
    default:
      return { mode: 'deploy', ...parseInputs(raw, context, now) }
  }
}

function parseExportInputs(raw: RawInputs, now: number): ExportInputs {
  const { fields, problems } = readFields(raw)
  const wish = exportOf({ raw, fields, now, problems })
  const { 'api-key': apiKey, 'api-url': api } = fields
  if (problems.length > 0 || wish === undefined || apiKey === undefined) throw refusal(problems)
  const warnings = [...(api?.warning === undefined ? [] : [api.warning]), ...unusedWarnings('export', raw)]
  return { mode: 'export', ...commonInputs(fields, apiKey, wish), warnings, export: wish }
}

/** Reads the inputs of a deploy. Throws as `parseStepInputs`. */
export function parseInputs(raw: RawInputs, context: GithubContext, now = Date.now()): Inputs {
  const { fields, problems } = readFields(raw)
  const target = fields['deployment-id'] === undefined ? nameTarget(fields) : { id: fields['deployment-id'] }
  return deployInputs({ raw, fields, context, now, target, problems: [...problems, ...contradictions(raw)] })
}

function parsePromoteInputs(raw: RawInputs, context: GithubContext, now: number): PromoteInputs {
  const { fields, problems } = readFields(raw)
  problems.push(...contradictions(raw))
  const promote = promoteOf({ raw, fields, context, problems })
  const target = fields['deployment-id'] === undefined ? nameTarget(fields) : { id: fields['deployment-id'] }
  const inputs = deployInputs({ raw, fields, context, now, target, problems })
  if (promote === undefined) throw refusal(problems)
  return { ...inputs, mode: 'promote', promote }
}

/** That of a pull request that has just been closed is a teardown: there may be no head any more to make a source from. */
function parsePreviewInputs(raw: RawInputs, context: GithubContext, now: number): PreviewInputs | TeardownInputs {
  const { fields, problems } = readFields(raw)
  problems.push(...previewContradictions('preview', raw))
  const preview = previewOf({ mode: 'preview', fields, context, problems })
  if (preview?.closing === true) return teardownInputs({ fields, preview, problems, warnings: [] })
  const target = preview === undefined ? undefined : { name: previewName(preview.baseName, preview.pullRequest) }
  const inputs = deployInputs({ raw, fields, context, now, target, problems })
  if (preview === undefined || target === undefined) throw refusal(problems)
  return { ...inputs, mode: 'preview', target, preview }
}

function parseTeardownInputs(raw: RawInputs, context: GithubContext): TeardownInputs {
  const { fields, problems } = readFields(raw)
  problems.push(...previewContradictions('teardown', raw))
  const preview = previewOf({ mode: 'teardown', fields, context, problems })
  return teardownInputs({ fields, preview, problems, warnings: unusedWarnings('teardown', raw) })
}

function teardownInputs({
  fields,
  preview,
  problems,
  warnings,
}: {
  fields: Fields
  preview: PreviewWish | undefined
  problems: readonly InputProblem[]
  warnings: readonly string[]
}): TeardownInputs {
  const { 'api-key': apiKey } = fields
  if (problems.length > 0 || apiKey === undefined || preview === undefined) throw refusal(problems)
  const common = commonInputs(fields, apiKey, undefined)
  return {
    ...common,
    mode: 'teardown',
    target: { name: previewName(preview.baseName, preview.pullRequest) },
    preview,
    timeoutMs: timeoutOf(fields),
    warnings: [...common.warnings, ...warnings],
  }
}

function parseSweepInputs(raw: RawInputs, context: GithubContext): SweepInputs {
  const { fields, problems } = readFields(raw)
  problems.push(...previewContradictions('sweep', raw))
  const sweep = sweepOf({ fields, context, problems })
  const { 'api-key': apiKey } = fields
  if (problems.length > 0 || apiKey === undefined || sweep === undefined) throw refusal(problems)
  const common = commonInputs(fields, apiKey, undefined)
  return {
    ...common,
    mode: 'sweep',
    sweep,
    timeoutMs: timeoutOf(fields),
    warnings: [...common.warnings, ...unusedWarnings('sweep', raw)],
  }
}

function deployInputs({
  raw,
  fields,
  context,
  now,
  target,
  problems,
}: {
  raw: RawInputs
  fields: Fields
  context: GithubContext
  now: number
  target: Inputs['target'] | undefined
  problems: InputProblem[]
}): Inputs {
  const wish = exportOf({ raw, fields, now, problems })
  const image = raw['image-uri'] !== ''
  const git = image ? undefined : gitSource({ raw, fields, context, problems })
  const source = image ? imageSource(fields) : git
  const { 'api-key': apiKey } = fields
  if (problems.length > 0 || apiKey === undefined || source === undefined || target === undefined) {
    throw refusal(problems)
  }
  const buildOnPush = fields['build-on-push'] ?? (git !== undefined && isTagRef(git.repoRef) ? false : undefined)
  return {
    ...commonInputs(fields, apiKey, wish),
    target,
    source,
    ...given({
      integrationId: fields['integration-id'],
      deploymentType: fields['deployment-type'],
      buildOnPush,
      secrets: fields.secrets,
    }),
    sourceConfig: fields['source-config'] ?? {},
    skipUnchanged: fields['skip-unchanged'] ?? false,
    rollbackOnFailure: fields['rollback-on-failure'] ?? false,
    wait: fields.wait ?? true,
    timeoutMs: timeoutOf(fields),
    ...given({ smokeTest: smokeTestOf({ raw, fields, context, git }), export: wish }),
  }
}

function timeoutOf(fields: Fields): number {
  return fields.timeout ?? 1_800_000
}

function commonInputs(fields: Fields, apiKey: string, wish: ExportWish | undefined): CommonInputs {
  const controlPlaneUrl = fields['control-plane-url']?.url ?? REGIONS[fields.region ?? 'us'].controlPlaneUrl
  const apiWarning = wish === undefined ? undefined : fields['api-url']?.warning
  return {
    apiKey,
    ...given({ workspaceId: fields['workspace-id'] }),
    controlPlaneUrl,
    dialect: fields.dialect === undefined || fields.dialect === 'auto' ? dialectOf(controlPlaneUrl) : fields.dialect,
    dryRun: fields['dry-run'] ?? false,
    onTimeout: fields['on-timeout'] ?? 'leave',
    onCancel: fields['on-cancel'] ?? 'leave',
    summary: fields.summary ?? true,
    ...given({ environment: fields.environment, comment: fields.comment, githubToken: fields['github-token'] }),
    warnings: [...warningsOf(fields), ...(apiWarning === undefined ? [] : [apiWarning])],
  }
}

function smokeTestOf({
  raw,
  fields,
  context,
  git,
}: {
  raw: RawInputs
  fields: Fields
  context: GithubContext
  git: GitSource | undefined
}): SmokeTest | undefined {
  const input = fields['smoke-test-input']
  if (input === undefined) return undefined
  const { repoUrl: own } = sourceOfEvent(context)
  const isOwn = git === undefined || raw['repo-url'] === '' || (own !== undefined && sameRepoUrl(own, git.repoUrl))
  return {
    input,
    ...given({ assistant: fields['smoke-test-assistant'], expect: fields['smoke-test-expect'] }),
    // Another repository's graphs are not those of the checkout.
    ...(isOwn ? { configPath: git?.configPath ?? DEFAULT_CONFIG_PATH } : {}),
    streamMode: fields['smoke-test-stream-mode'] ?? 'updates',
    timeoutMs: fields['smoke-test-timeout'] ?? 120_000,
  }
}

function warningsOf(fields: Fields): string[] {
  const { warning } = fields['control-plane-url'] ?? {}
  const skipped = fields['smoke-test-input'] !== undefined && fields.wait === false
  return [
    ...(warning === undefined ? [] : [warning]),
    ...(skipped ? ['The smoke test is skipped: with wait: false nothing is known to serve when the step ends.'] : []),
  ]
}

function imageSource(fields: Fields): ImageSource | undefined {
  const imageUri = fields['image-uri']
  return imageUri === undefined ? undefined : { kind: 'external_docker', imageUri }
}

function nameTarget(fields: Fields): { name: string } | undefined {
  const name = fields['deployment-name']
  return name === undefined ? undefined : { name }
}
