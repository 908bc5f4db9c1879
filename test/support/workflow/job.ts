import { setTimeout as delay } from 'node:timers/promises'
import { createJobFolders, jobContexts, jobEnvironment, RUNTIME_TOKEN, type WorkflowEvent } from '../runner/job-environment.ts'
import { type PhaseResult, runPhase } from '../runner/phase.ts'
import { createSecretMasker } from '../runner/secret-masker.ts'
import type { When } from '../runner/step-process.ts'
import type { RunResult } from '../runner.ts'
import { type Context, evaluate, isTrue, Names, type Plain, type Scope, textOf, textsOf } from './expression.ts'
import type { Permissions } from './permissions.ts'
import { type Place, planStep, type StepPlan, type StepProcess } from './step.ts'
import type { JobTemplate, StepTemplate } from './workflow-file.ts'

export type Conclusion = 'success' | 'failure' | 'cancelled' | 'skipped'

export type StepRun = {
  id: string
  name: string
  kind: StepPlan['kind'] | 'skipped'
  /** Before `continue-on-error`, and after it. */
  outcome: Conclusion
  conclusion: Conclusion
  outputs: Record<string, string>
  /** As of a step that is run alone; null: no process has run. */
  result: RunResult | null
}

export type JobOptions = {
  template: JobTemplate
  event: WorkflowEvent
  /** Where the folders of the job are made. */
  root: string
  workspace?: string
  contexts: Readonly<Record<string, Context>>
  /** Of the workflow. */
  env: Readonly<Record<string, string>>
  /** Variables of the runner's machine, and those of GitHub that are not as usual. */
  machine: Readonly<Record<string, string>>
  token: string
  permissions: Permissions
  secrets: readonly string[]
  inputs: Place['inputs']
  script: Place['script']
  /** Cancels the workflow while this step runs. */
  cancel?: { step: string; when: When }
  stepLimitMs: number
}

export type JobResult = { status: Exclude<Conclusion, 'skipped'>; steps: StepRun[]; scope: Scope }

type Finished = StepRun & { known: readonly string[] | null; plan: StepPlan | null }

/** Runs the steps of a job in their order, then what their actions do at its end, in the opposite order. */
export async function runJob(options: JobOptions): Promise<JobResult> {
  const { template, event, token, machine } = options
  const { workspace: given } = options
  const folders = await createJobFolders({ root: options.root, event, ...(given === undefined ? {} : { workspace: given }) })
  const known = [token, RUNTIME_TOKEN, ...options.secrets].filter((value) => value !== '')
  const masker = createSecretMasker(known)
  const usual = jobContexts({ event, folders, token })
  const runner: Record<string, string> = {
    ...usual.runner,
    name: 'runner double',
    tool_cache: folders.toolCache,
    environment: 'github-hosted',
    debug: '',
  }
  const finished: Finished[] = []
  const groups: number[] = []
  const path: string[] = []
  let status: JobResult['status'] = 'success'
  let env: Record<string, string> = { ...options.env }

  const scope = (step: Readonly<Record<string, string>> = {}): Scope => ({
    contexts: {
      ...options.contexts,
      github: withValues(options.contexts['github'], { ...usual.github, ...githubOf(machine), job: template.id }),
      runner: new Names('runner', runner),
      env: { ...env, ...step },
      job: { status },
      steps: new Names('steps', Object.fromEntries(finished.map((one) => [one.id, contextOf(one)])), ids(template)),
    },
    status: { success: status === 'success', failure: status === 'failure', cancelled: status === 'cancelled' },
  })
  env = { ...env, ...textsOf(template.property('env'), scope()) }

  type Start = { step: StepTemplate; stepEnv: Record<string, string>; process: StepProcess; cancelWhen?: When }
  const start = async ({ step, stepEnv, process, cancelWhen }: Start): Promise<PhaseResult> => {
    const phase = await runPhase({
      command: process.command,
      args: process.args,
      cwd: process.cwd,
      runnerTemp: folders.runnerTemp,
      masker,
      unexpected: process.unexpected ?? [],
      env: (files) => {
        const usualEnv = jobEnvironment({ event, folders, files })
        const own = { GITHUB_JOB: template.id, GITHUB_ACTION: step.id }
        const all: Record<string, string> = { ...usualEnv, ...own, ...machine, ...env, ...stepEnv, ...process.env }
        return { ...all, PATH: [...path.toReversed(), all['PATH'] ?? ''].join(':') }
      },
      timeoutMs: options.stepLimitMs,
      leave: (group) => groups.push(group),
      ...(cancelWhen === undefined ? {} : { cancelWhen }),
    })
    env = { ...env, ...phase.env }
    path.push(...phase.path)
    return phase
  }

  const runStep = async (step: StepTemplate): Promise<Finished> => {
    const stepEnv = textsOf(step.property('env'), scope())
    const name = () => textOf(evaluate(step.property('name') ?? step.property('uses') ?? step.property('run'), scope(stepEnv)))
    if (!isTrue(evaluate(step.if, scope(stepEnv)))) {
      const skipped = { outcome: 'skipped', conclusion: 'skipped', outputs: {}, result: null } as const
      return { id: step.id, name: step.id, kind: 'skipped', ...skipped, known: null, plan: null }
    }
    const place = { ...folders, defaults: usual, scope: scope(stepEnv), inputs: options.inputs, script: options.script }
    const plan = await planStep(step, place)
    const cancel = options.cancel?.step === step.id ? { cancelWhen: options.cancel.when } : {}
    const main = plan.main === undefined ? null : await start({ step, stepEnv, process: plan.main, ...cancel })
    const outcome = main?.conclusion ?? (options.permissions.contents === 'none' && isCheckout(step) ? 'failure' : 'success')
    const forgiven = outcome === 'failure' && isTrue(evaluate(step.property('continue-on-error'), scope(stepEnv)))
    return {
      id: step.id,
      name: name(),
      kind: plan.kind,
      outcome,
      conclusion: forgiven ? 'success' : outcome,
      outputs: main?.outputs ?? {},
      result: main === null ? null : { ...main, post: null, masks: [], folder: folders.root, dispose: () => Promise.resolve() },
      known: plan.outputs ?? Object.keys(main?.outputs ?? {}),
      plan,
    }
  }

  try {
    for (const step of template.steps) {
      const one = await runStep(step)
      finished.push(one)
      if (one.conclusion === 'cancelled') status = 'cancelled'
      if (one.conclusion === 'failure' && status === 'success') status = 'failure'
    }
    for (const { id, plan, result } of finished.toReversed()) {
      const step = template.steps.find((one) => one.id === id)
      if (plan?.post === undefined || result === null || step === undefined) continue
      result.post = await start({ step, stepEnv: textsOf(step.property('env'), scope()), process: plan.post(result) })
      if (result.post.conclusion !== 'success' && status === 'success') status = 'failure'
    }
    const masks = masker.values().filter((value) => !known.includes(value))
    for (const { result } of finished) result?.masks.push(...masks)
    return { status, steps: finished.map(({ known: _known, plan: _plan, ...step }) => step), scope: scope() }
  } finally {
    await Promise.all(groups.map(endGroup))
  }
}

function isCheckout(step: StepTemplate): boolean {
  return (step.property('uses')?.toString() ?? '').startsWith('actions/checkout@')
}

function ids({ steps }: JobTemplate): string[] {
  return steps.map(({ id }) => id).filter((id) => !id.startsWith('__'))
}

function contextOf({ id, kind, outcome, conclusion, outputs, known }: Finished): Context {
  const strict = kind !== 'skipped' && known !== null
  return { outcome, conclusion, outputs: strict ? new Names(`steps.${id}.outputs`, outputs, known) : outputs }
}

function withValues(context: Context | undefined, values: Readonly<Record<string, Plain>>): Context {
  return context instanceof Names ? new Names(context.path, { ...context.values, ...values }, context.known) : values
}

/** Where GitHub is, for the context as for the environment. */
function githubOf(machine: Readonly<Record<string, string>>): Record<string, string> {
  const pairs = [
    ['server_url', machine['GITHUB_SERVER_URL']],
    ['api_url', machine['GITHUB_API_URL']],
  ] as const
  return Object.fromEntries(pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

/** What steps have left running ends with the job, as on GitHub; here it may also tidy up. */
async function endGroup(group: number): Promise<void> {
  const send = (signal: NodeJS.Signals | 0): boolean => {
    try {
      return process.kill(-group, signal)
    } catch {
      return false
    }
  }
  if (!send('SIGTERM')) return
  const limit = performance.now() + 15_000
  while (send(0) && performance.now() < limit) await delay(50)
  send('SIGKILL')
}
