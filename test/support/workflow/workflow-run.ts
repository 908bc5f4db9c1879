import { mkdtemp, rm } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ACTIONS_BOT, type GithubDouble } from '../github-double.ts'
import type { WorkflowEvent } from '../runner/job-environment.ts'
import type { RunResult } from '../runner.ts'
import { type Context, evaluate, isTrue, Names, type Plain, type Scope, textOf, textsOf } from './expression.ts'
import { type Conclusion, type JobOptions, type JobResult, runJob, type StepRun } from './job.ts'
import { type Permissions, permissionsOf, permissionsUsed } from './permissions.ts'
import { recordEnvironment } from './protected-environment.ts'
import { isStartedBy } from './trigger.ts'
import { type JobTemplate, readWorkflow, type WorkflowFile } from './workflow-file.ts'

export type WorkflowOptions = Partial<
  Pick<JobOptions, 'workspace' | 'machine' | 'inputs' | 'script' | 'cancel' | 'stepLimitMs'>
> & {
  path: string
  event: WorkflowEvent
  github: GithubDouble
  secrets?: Readonly<Record<string, string>>
  vars?: Readonly<Record<string, string>>
  /** Changes the text of the workflow. */
  edit?: (text: string) => string
  /** Jobs that are not asked for are left out. */
  jobs?: readonly string[]
}

export type JobRun = {
  id: string
  /** With the values of its matrix. */
  name: string
  /** `elsewhere`: it wants a machine that this is not. */
  conclusion: Conclusion | 'elsewhere'
  steps: StepRun[]
  concurrency: Concurrency | null
  granted: Permissions
  /** What its token was really needed for. */
  used: Permissions
  outputs: Record<string, string>
}

export type Concurrency = { group: string; cancelInProgress: boolean }

export type WorkflowRun = {
  concurrency: Concurrency | null
  jobs: JobRun[]
  /** The step of this id in the only job that ran. */
  step: (id: string) => StepRun
  /** What the actions of this repository did, in order. */
  actions: RunResult[]
  dispose: () => Promise<void>
}

/** Runs a workflow as GitHub would for an event; null when GitHub would not start it. The caller disposes of the result. */
export async function runWorkflow(options: WorkflowOptions): Promise<WorkflowRun | null> {
  const file = await readWorkflow(options.path, options.edit)
  if (!isStartedBy(file.events, options.event)) return null
  const root = await mkdtemp(join(tmpdir(), 'workflow-double-'))
  try {
    const scope = { contexts: workflowContexts(file, options) }
    const jobs: JobRun[] = []
    for (const template of file.jobs.filter(({ id }) => options.jobs?.includes(id) ?? true)) {
      for (const [index, matrix] of combinations(evaluate(template.property('strategy'), scope)).entries()) {
        const folder = join(root, `${template.id}-${index}`)
        jobs.push(await runOne({ file, template, matrix, root: folder, options, before: jobs }))
      }
    }
    const steps = jobs.flatMap((job) => job.steps)
    return {
      concurrency: concurrencyOf(evaluate(file.property('concurrency'), scope)),
      jobs,
      step: (id) => {
        const [step, ...more] = steps.filter((one) => one.id === id)
        if (step === undefined || more.length > 0) throw new Error(`${1 + more.length} steps have the id ${id}`)
        return step
      },
      actions: steps.flatMap(({ kind, result }) => (kind === 'action' && result !== null ? [result] : [])),
      dispose: () => rm(root, { recursive: true, force: true, maxRetries: 5 }),
    }
  } catch (error) {
    await rm(root, { recursive: true, force: true, maxRetries: 5 })
    throw error
  }
}

type OneJob = {
  file: WorkflowFile
  template: JobTemplate
  matrix: Record<string, Plain>
  root: string
  options: WorkflowOptions
  before: readonly JobRun[]
}

async function runOne({ file, template, matrix, root, options, before }: OneJob): Promise<JobRun> {
  const { github, event } = options
  const needs = template.needs.map((id) => [id, before.filter((job) => job.id === id)] as const)
  const contexts: Record<string, Context> = {
    ...workflowContexts(file, options),
    matrix: new Names('matrix', matrix),
    strategy: {},
    needs: new Names('needs', Object.fromEntries(needs.map(([id, jobs]) => [id, needContext(jobs)]))),
  }
  const results = needs.flatMap(([, jobs]) => jobs.map(({ conclusion }) => conclusion))
  const status = {
    success: results.every((one) => one === 'success'),
    failure: results.includes('failure'),
    cancelled: results.includes('cancelled'),
  }
  const scope: Scope = { contexts, status }
  const fork = isForeign(event)
  const said = { job: evaluate(template.property('permissions'), scope), workflow: evaluate(file.property('permissions'), scope) }
  const granted = permissionsOf({ ...said, fork })
  const job: JobRun = {
    id: template.id,
    name: [template.id, ...Object.values(matrix).map(textOf)].join(' '),
    conclusion: 'skipped',
    steps: [],
    concurrency: null,
    granted,
    used: permissionsUsed([]),
    outputs: {},
  }
  if (!isTrue(evaluate(template.if, scope))) return job
  if (!textOf(evaluate(template.property('runs-on'), scope)).startsWith('ubuntu-')) return { ...job, conclusion: 'elsewhere' }

  const token = `ghs_${randomUUID().replaceAll('-', '')}`
  github.state.tokens.set(token, { account: ACTIONS_BOT, permissions: granted })
  const from = github.requests.length
  const environment = await recordEnvironment({ token: template.property('environment'), scope, github, event })
  let result: JobResult | undefined
  try {
    result = await runJob({
      template,
      event,
      root,
      contexts,
      env: textsOf(file.property('env'), scope),
      machine: { ...github.env, ...options.machine },
      token,
      permissions: granted,
      secrets: Object.values(secretsOf(options)),
      inputs: options.inputs ?? ((inputs) => inputs),
      script: options.script ?? ((script) => script),
      stepLimitMs: options.stepLimitMs ?? 120_000,
      ...(options.workspace === undefined ? {} : { workspace: options.workspace }),
      ...(options.cancel === undefined ? {} : { cancel: options.cancel }),
    })
  } finally {
    github.state.tokens.delete(token)
    await environment?.end(result)
  }
  return {
    ...job,
    conclusion: result.status,
    steps: result.steps,
    concurrency: concurrencyOf(evaluate(template.property('concurrency'), scope)),
    used: permissionsUsed(github.requests.slice(from).filter(({ headers }) => headers['authorization']?.endsWith(token))),
    outputs: textsOf(template.property('outputs'), result.scope),
  }
}

function workflowContexts(file: WorkflowFile, options: WorkflowOptions): Record<string, Context> {
  const { event } = options
  const declared = file.events.workflow_dispatch?.inputs ?? {}
  const given = (event.payload as { inputs?: Record<string, Plain> }).inputs ?? {}
  const inputs =
    event.name === 'workflow_dispatch'
      ? Object.entries(declared).map(([name, input]) => [name, given[name] ?? input.default ?? ''])
      : []
  return {
    github: new Names('github', githubContext(file, options)),
    // An organisation's secrets and variables that are not this repository's are not there either.
    secrets: new Names('secrets', secretsOf(options)),
    vars: new Names('vars', options.vars ?? {}),
    inputs: new Names('inputs', Object.fromEntries(inputs) as Record<string, Plain>, Object.keys(declared)),
  }
}

/** Those of `github.…` that do not depend on the job. */
function githubContext(file: WorkflowFile, { event }: WorkflowOptions): Record<string, Plain> {
  const short = /^refs\/(heads|tags|pull)\/(.+)$/.exec(event.ref)
  return {
    event: event.payload as Plain,
    event_name: event.name,
    ref: event.ref,
    ref_name: short?.[2] ?? '',
    ref_type: short?.[1] === 'tags' ? 'tag' : 'branch',
    sha: event.sha,
    head_ref: event.headRef ?? '',
    base_ref: event.baseRef ?? '',
    repository: 'acme/agents',
    repository_owner: 'acme',
    actor: 'octocat',
    workflow: textOf(file.property('name')?.toString() ?? file.path),
    run_id: '30433642',
    run_number: '562',
    run_attempt: '1',
  }
}

/** A pull request of another repository: no secrets, and a token that may only read. */
function isForeign({ name, payload }: WorkflowEvent): boolean {
  type PullRequest = { head: { repo: { full_name: string } | null }; base: { repo: { full_name: string } } }
  const pull = (payload as { pull_request?: PullRequest }).pull_request
  return name === 'pull_request' && pull !== undefined && pull.head.repo?.full_name !== pull.base.repo.full_name
}

function secretsOf({ secrets = {}, event }: WorkflowOptions): Record<string, string> {
  return isForeign(event) ? Object.fromEntries(Object.keys(secrets).map((name) => [name, ''])) : { ...secrets }
}

function needContext(jobs: readonly JobRun[]): Context {
  const result = jobs.map(({ conclusion }) => conclusion).find((one) => one !== 'success') ?? 'success'
  return { result, outputs: Object.assign({}, ...jobs.map(({ outputs }) => outputs)) as Record<string, string> }
}

function concurrencyOf(value: Plain): Concurrency | null {
  if (value === null) return null
  if (typeof value !== 'object' || Array.isArray(value)) return { group: textOf(value), cancelInProgress: false }
  return { group: textOf(value['group'] ?? ''), cancelInProgress: isTrue(value['cancel-in-progress'] ?? false) }
}

/** The jobs that a matrix makes; without one, a single job. */
function combinations(strategy: Plain): Record<string, Plain>[] {
  const matrix = (strategy as { matrix?: Record<string, Plain[]> } | null)?.matrix ?? {}
  if ('include' in matrix || 'exclude' in matrix)
    throw new Error('the workflow double does not know include and exclude of a matrix')
  return Object.entries(matrix).reduce<Record<string, Plain>[]>(
    (made, [name, values]) => made.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  )
}
