import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { inputEnvironment, readActionManifest, resolveInputs } from '../runner/action-manifest.ts'
import type { PhaseResult } from '../runner/phase.ts'
import { actionFolder, nodeCommand } from '../runner.ts'
import { evaluate, type Scope, textOf, textsOf } from './expression.ts'
import type { StepTemplate } from './workflow-file.ts'

/** A process that a step starts, and what of the step's is in its environment. */
export type StepProcess = { command: string; args: string[]; cwd: string; env: Record<string, string>; unexpected?: string[] }

/** What a step does: a process, for an action with another one at the end of the job, or nothing at all. */
export type StepPlan = {
  kind: 'run' | 'action' | 'done'
  /** Outputs that action.yml declares; null: any name may be one. */
  outputs: readonly string[] | null
  main?: StepProcess
  post?: (main: PhaseResult) => StepProcess
}

export type Place = {
  workspace: string
  runnerTemp: string
  /** `github.…` and `runner.…` for the defaults in action.yml. */
  defaults: Readonly<Record<string, Readonly<Record<string, string>>>>
  scope: Scope
  /** Changes what a step gives to this action. */
  inputs: (inputs: Record<string, string>) => Record<string, string>
  /** The script that runs in the place of one that is written. */
  script: (script: string) => string
}

/** This action, as workflows of other repositories name it. */
const SELF = /^deploy-agent-server\/deploy-agent-server@(v1|[0-9a-f]{40})$/
/** Actions of others that are taken as done: what they make is there before the job begins. */
const DONE = /^actions\/(checkout|setup-node)@/

/** @throws {Error} for an action that is not known here. */
export async function planStep(step: StepTemplate, place: Place): Promise<StepPlan> {
  const uses = step.property('uses')
  if (uses === undefined) return { kind: 'run', outputs: null, main: await planScript(step, place) }
  const action = textOf(evaluate(uses, place.scope))
  if (DONE.test(action)) return { kind: 'done', outputs: null }
  if (action.startsWith('./')) return await planAction(resolve(place.workspace, action), step, place)
  if (SELF.test(action)) return await planAction(actionFolder(), step, place)
  throw new Error(`the workflow double does not know the action ${action}`)
}

async function planAction(
  folder: string,
  step: StepTemplate,
  { scope, workspace, defaults, ...place }: Place,
): Promise<StepPlan> {
  const manifest = await readActionManifest(folder)
  const given = place.inputs(textsOf(step.property('with'), scope))
  const { inputs, unexpected } = resolveInputs({ manifest, given, contexts: defaults })
  const env = inputEnvironment(inputs)
  const process = (script: string): StepProcess => ({ command: nodeCommand(), args: [script], cwd: workspace, env })
  const { main, post, outputs } = manifest
  return {
    kind: 'action',
    outputs,
    main: { ...process(main), unexpected },
    ...(post === null ? {} : { post: ({ state }) => withState(process(post), state) }),
  }
}

function withState(process: StepProcess, state: Readonly<Record<string, string>>): StepProcess {
  const states = Object.entries(state).map(([name, value]) => [`STATE_${name}`, value])
  return { ...process, env: { ...process.env, ...Object.fromEntries(states) } }
}

async function planScript(step: StepTemplate, { scope, workspace, runnerTemp, script }: Place): Promise<StepProcess> {
  const file = join(runnerTemp, `${randomUUID()}.sh`)
  await writeFile(file, script(textOf(evaluate(step.property('run'), scope))))
  const [command = '', ...args] = shellOf(textOf(evaluate(step.property('shell'), scope)), file)
  return { command, args, cwd: resolve(workspace, textOf(evaluate(step.property('working-directory'), scope))), env: {} }
}

/** GitHub's commands for the shells of its runners; `bash` that is named stops at a failure inside a pipe, too. */
function shellOf(shell: string, file: string): string[] {
  if (shell === '') return ['bash', '-e', file]
  if (shell === 'bash') return ['bash', '--noprofile', '--norc', '-eo', 'pipefail', file]
  if (shell === 'sh') return ['sh', '-e', file]
  if (shell.includes('{0}')) return shell.split(' ').map((part) => part.replace('{0}', file))
  throw new Error(`the workflow double does not know the shell ${shell}`)
}
