import { DEFAULT_CONFIG_PATH } from '../contract/config-path.ts'
import type { SourceConfigInput } from '../contract/deployment.ts'
import { type Dialect, dialectOf } from '../contract/dialects.ts'
import { isTagRef, repoRefSchema } from '../contract/git-ref.ts'
import { REGIONS } from '../contract/regions.ts'
import type { Secret } from '../contract/secret.ts'
import { EXPORT_INPUTS, exportOf, type ExportWish } from './export/wish.ts'
import type { GithubContext } from './github/context.ts'
import { isFromFork, sourceOfEvent } from './github/event.ts'
import { showAddress } from './parse/address.ts'
import { FIELDS, type Fields } from './parse/fields.ts'
import type { Parsed } from './parse/parsed.ts'
import { type InputProblem, inputFailure } from './parse/problem.ts'
import { sameRepoUrl } from './parse/repo-url.ts'
import { INPUT_NAMES, type InputName, inputSpec } from './registry.ts'
import type { SmokeTest } from './smoke/smoke-test.ts'

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
  /** Sentences to print as warnings. */
  warnings: string[]
}

/** What the workflow wants of `mode: export`. */
export type ExportInputs = CommonInputs & { export: ExportWish }

/** What the workflow wants of `mode: deploy`, checked and complete. */
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
  wait: boolean
  timeoutMs: number
  /** Absent: none is wanted. */
  smokeTest?: SmokeTest
  /** Absent: nothing is exported after the deploy. */
  export?: ExportWish
}

/** What the workflow wants, in any mode. */
export type StepInputs = Inputs | ExportInputs

export function wantsDeploy(inputs: StepInputs): inputs is Inputs {
  return 'target' in inputs
}

/** Reads the inputs of any mode. Throws one `ActionFailure` (`E_INPUT`) that names every bad one. `now`: epoch milliseconds. */
export function parseStepInputs(raw: RawInputs, context: GithubContext, now: number): StepInputs {
  return raw.mode === 'export' ? parseExportInputs(raw, now) : parseInputs(raw, context, now)
}

function parseExportInputs(raw: RawInputs, now: number): ExportInputs {
  const { fields, problems } = readFields(raw)
  const wish = exportOf({ raw, fields, now, problems })
  const { 'api-key': apiKey } = fields
  if (problems.length > 0 || wish === undefined || apiKey === undefined) throw refusal(problems)
  return { ...commonInputs(fields, apiKey, wish), warnings: exportWarnings(raw, fields), export: wish }
}

/** Reads the inputs of a deploy. Throws as `parseStepInputs`. */
export function parseInputs(raw: RawInputs, context: GithubContext, now = Date.now()): Inputs {
  const { fields, problems } = readFields(raw)
  const wish = exportOf({ raw, fields, now, problems })
  problems.push(...contradictions(raw))
  const image = raw['image-uri'] !== ''
  const git = image ? undefined : gitSource({ raw, fields, context, problems })
  const source = image ? imageSource(fields) : git
  const { 'api-key': apiKey } = fields
  const target = fields['deployment-id'] === undefined ? nameTarget(fields) : { id: fields['deployment-id'] }
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
    wait: fields.wait ?? true,
    timeoutMs: fields.timeout ?? 1_800_000,
    ...given({ smokeTest: smokeTestOf({ raw, fields, context, git }), export: wish }),
  }
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
    warnings: [...warningsOf(fields), ...(apiWarning === undefined ? [] : [apiWarning])],
  }
}

/** Inputs that `mode: export` has no use for. */
function exportWarnings(raw: RawInputs, fields: Fields): string[] {
  const used: readonly InputName[] = [...EXPORT_INPUTS, 'api-key', 'workspace-id', 'control-plane-url', 'api-url']
  const unused = INPUT_NAMES.filter((name) => raw[name] !== '' && inputSpec(name).default === '' && !used.includes(name))
  const { warning } = fields['api-url'] ?? {}
  const verb = unused.length === 1 ? 'is' : 'are'
  return [
    ...(warning === undefined ? [] : [warning]),
    ...(unused.length === 0 ? [] : [`mode is export: ${unused.join(', ')} ${verb} not used.`]),
  ]
}

function refusal(problems: readonly InputProblem[]): Error {
  return inputFailure(problems.toSorted((a, b) => INPUT_NAMES.indexOf(a.input) - INPUT_NAMES.indexOf(b.input)))
}

function readFields(raw: RawInputs): { fields: Fields; problems: InputProblem[] } {
  const fields: Record<string, unknown> = {}
  const problems: InputProblem[] = []
  for (const name of INPUT_NAMES) {
    const { default: fallback, required, secret } = inputSpec(name)
    const text = raw[name] === '' ? fallback : raw[name]
    if (text === '' && required)
      problems.push({
        input: name,
        problem: 'is required and empty',
        fix: `set ${name}${secret ? ' from a secret that exists' : ''}`,
      })
    if (text === '') continue
    const { accepted, parse } = FIELDS[name]
    const parsed: Parsed<unknown> = parse(text)
    if ('value' in parsed) {
      fields[name] = parsed.value
      continue
    }
    const { problem, fix } = parsed
    problems.push({
      input: name,
      problem,
      accepted,
      ...shown(name, text),
      ...(fix === undefined ? {} : { fix: hideCredentials(name, fix) }),
    })
  }
  return { fields, problems }
}

/** Inputs that are fine by themselves and exclude each other. Both are named, and both remedies. */
function contradictions(raw: RawInputs): InputProblem[] {
  const problems: InputProblem[] = []
  const isSet = (name: InputName): boolean => raw[name] !== ''
  if (isSet('deployment-name') && isSet('deployment-id')) {
    problems.push({
      input: 'deployment-id',
      problem: 'and deployment-name are both set',
      fix: 'keep deployment-id to update exactly this one, or deployment-name to create it when it is absent',
    })
  }
  if (!isSet('deployment-name') && !isSet('deployment-id')) {
    problems.push({ input: 'deployment-name', problem: 'and deployment-id are both empty', fix: 'set one of them' })
  }
  if (isSet('tag') && isSet('repo-ref')) {
    problems.push({ input: 'tag', problem: 'and repo-ref are both set', fix: 'keep tag for a tag, or repo-ref for a branch' })
  }
  for (const name of ['smoke-test-assistant', 'smoke-test-expect'] as const) {
    if (isSet(name) && !isSet('smoke-test-input'))
      problems.push({
        input: name,
        problem: 'is set, and smoke-test-input is empty: no smoke test would run',
        fix: `set smoke-test-input, or take ${name} out`,
      })
  }
  if (isSet('image-uri')) {
    for (const name of ['repo-url', 'repo-ref', 'tag', 'config-path', 'integration-id', 'build-on-push'] as const) {
      if (isSet(name))
        problems.push({
          input: name,
          problem: 'and image-uri are both set',
          fix: `take ${name} out to run the image, or image-uri to build from git`,
        })
    }
  }
  return problems
}

function gitSource({
  raw,
  fields,
  context,
  problems,
}: {
  raw: RawInputs
  fields: Fields
  context: GithubContext
  problems: InputProblem[]
}): GitSource | undefined {
  const event = sourceOfEvent(context)
  const wantedRef = fields.tag ?? fields['repo-ref']
  const named = raw.tag !== '' || raw['repo-ref'] !== ''
  const repoUrl = fields['repo-url'] ?? (raw['repo-url'] === '' ? event.repoUrl : undefined)
  if (raw['repo-url'] === '' && repoUrl === undefined) {
    problems.push({
      input: 'repo-url',
      problem: 'is empty, and GITHUB_REPOSITORY does not say which repository this is',
      fix: 'set repo-url, or image-uri to run an image',
    })
  }
  if (raw['repo-url'] === '' && isFromFork(context)) {
    problems.push({
      input: 'repo-url',
      problem: `is empty, and the pull request comes from a fork (${event.repoUrl ?? 'unknown'})`,
      fix: 'set repo-url to the fork to deploy code that anybody may have written, or skip this step for forks',
    })
  }
  if (!named && event.ref === undefined) {
    problems.push({
      input: 'repo-ref',
      problem: `is empty, and ${event.problem ?? 'the event has no ref'}`,
      fix: 'set repo-ref or tag',
    })
  }
  const repoRef = named ? wantedRef : event.ref
  if (!named && repoRef !== undefined && !repoRefSchema.safeParse(repoRef).success) {
    problems.push({
      input: 'repo-ref',
      problem: `is empty, and the event's ref '${repoRef}' is not one that can be deployed`,
      fix: 'set repo-ref or tag',
    })
  }
  if (repoRef !== undefined && isTagRef(repoRef) && fields['build-on-push'] === true) {
    problems.push({
      input: 'build-on-push',
      value: 'true',
      problem: `contradicts the tag ${repoRef}: when a tag is used, build_on_push must be false`,
      fix: 'set build-on-push to false, or deploy a branch',
    })
  }
  if (repoUrl === undefined || repoRef === undefined) return undefined
  const eventCommit = event.ref === repoRef ? event.commit : undefined
  const commit = event.repoUrl !== undefined && sameRepoUrl(event.repoUrl, repoUrl) ? eventCommit : undefined
  return {
    kind: 'git_host',
    repoUrl,
    repoRef,
    configPath: fields['config-path'] ?? DEFAULT_CONFIG_PATH,
    ...given({ commit, eventCommit }),
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

/** The value of an input as an error may show it. */
function shown(name: InputName, text: string): { value?: string } {
  if (inputSpec(name).secret || inputSpec(name).kind === 'object') return {}
  return { value: hideCredentials(name, text) }
}

function hideCredentials(name: InputName, text: string): string {
  return inputSpec(name).kind === 'url' || name === 'image-uri' ? showAddress(text) : text
}

/** The fields that have a value, for types that tell "absent" from "undefined". */
function given<T extends Record<string, unknown>>(fields: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Key in keyof T]?: Exclude<T[Key], undefined>
  }
}
