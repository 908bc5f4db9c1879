import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { inputEnvironment, readActionManifest, resolveInputs } from './runner/action-manifest.ts'
import type { FileCommandPaths } from './runner/file-commands.ts'
import {
  createJobFolders, GITHUB_TOKEN, jobContexts, jobEnvironment, RUNTIME_TOKEN, type JobFolders, type WorkflowEvent,
} from './runner/job-environment.ts'
import { runPhase, type PhaseResult } from './runner/phase.ts'
import { createSecretMasker, type SecretMasker } from './runner/secret-masker.ts'
import type { SignalStep, When } from './runner/step-process.ts'

export type { PhaseResult } from './runner/phase.ts'

/** A double of GitHub's runner for one step that uses an action: main, then post, with everything that surrounds them. */

export const REPOSITORY_ROOT = resolve(import.meta.dirname, '../..')

const PUSH_EVENT: WorkflowEvent = {
  name: 'push',
  ref: 'refs/heads/main',
  sha: '1111111111111111111111111111111111111111',
  payload: { ref: 'refs/heads/main', after: '1111111111111111111111111111111111111111' },
}

export type RunOptions = {
  /** The step's `with`. */
  with: Readonly<Record<string, string>>
  event?: WorkflowEvent
  /** The step's `env`; also the way to replace a variable of the job, such as GITHUB_API_URL. */
  env?: Readonly<Record<string, string>>
  /** Folder of action.yml; default: this repository. */
  action?: string
  /** GITHUB_WORKSPACE, the working directory; default: an empty folder. */
  cwd?: string
  /** The value of `github.token`. */
  token?: string
  /** Values that the runner knows as secrets from the start, as if they came from `secrets.…`. */
  knownSecrets?: readonly string[]
  /** Turns the step's debug log on, as ACTIONS_STEP_DEBUG does. */
  debug?: boolean
  /** Cancels main by the runner's schedule: SIGINT, 7.5 s, SIGTERM, 2.5 s, SIGKILL. */
  cancelWhen?: When
  /** Signals to main outside any schedule. */
  signals?: readonly SignalStep[]
  /** The test's limit for main and for post, each. Default 30 s. */
  timeoutMs?: number
  /** Damages the command files of main before it starts. */
  tamper?: (files: FileCommandPaths) => Promise<void>
  /** Leave post out, where a test has nothing to learn from it. */
  post?: boolean
}

/** Main's results, and post's under `post` (null when the action has none or it was left out). */
export type RunResult = PhaseResult & {
  post: PhaseResult | null
  /** Everything that `::add-mask::` asked to hide. */
  masks: string[]
  /** The folder of the whole job, with home, temp and workspace. `dispose` removes it. */
  folder: string
  dispose: () => Promise<void>
}

/** Runs the action of `options.action` as one step of a job. The caller disposes of the result. */
export async function runAction(options: RunOptions): Promise<RunResult> {
  const root = await mkdtemp(join(tmpdir(), 'runner-double-'))
  try {
    return await runInFolder(options, root)
  } catch (error) {
    await rm(root, { recursive: true, force: true })
    throw error
  }
}

async function runInFolder(options: RunOptions, root: string): Promise<RunResult> {
  const action = options.action ?? actionFolder()
  const event = options.event ?? PUSH_EVENT
  const token = options.token ?? GITHUB_TOKEN
  const manifest = await readActionManifest(action)
  const folders = await createJobFolders({ root, event, ...(options.cwd === undefined ? {} : { workspace: options.cwd }) })
  const contexts = jobContexts({ event, folders, token })
  const { inputs, unexpected } = resolveInputs({ manifest, given: options.with, contexts })
  const known = [token, RUNTIME_TOKEN, ...(options.knownSecrets ?? [])]
  const masker = createSecretMasker(known)
  const shared = { options, event, folders, masker, inputs: inputEnvironment(inputs) }

  const main = await runMainOrPost({ ...shared, script: manifest.main, state: {}, phase: 'main', unexpected })
  const post = manifest.post !== null && options.post !== false
    ? await runMainOrPost({ ...shared, script: manifest.post, state: main.state, phase: 'post', unexpected: [] })
    : null
  return {
    ...main,
    post,
    masks: masker.values().filter((value) => !known.includes(value)),
    folder: root,
    dispose: () => rm(root, { recursive: true, force: true }),
  }
}

type Phase = {
  options: RunOptions
  event: WorkflowEvent
  folders: JobFolders
  masker: SecretMasker
  inputs: Record<string, string>
  script: string
  state: Readonly<Record<string, string>>
  phase: 'main' | 'post'
  unexpected: readonly string[]
}

async function runMainOrPost({ options, phase, folders, masker, state, inputs, script, ...step }: Phase): Promise<PhaseResult> {
  const states = Object.fromEntries(Object.entries(state).map(([name, value]) => [`STATE_${name}`, value]))
  const { tamper, cancelWhen, signals }: Pick<RunOptions, 'tamper' | 'cancelWhen' | 'signals'> = phase === 'main' ? options : {}
  return await runPhase({
    command: nodeCommand(),
    args: [script],
    cwd: folders.workspace,
    runnerTemp: folders.runnerTemp,
    masker,
    debug: options.debug ?? false,
    unexpected: step.unexpected,
    env: (files) => ({
      ...jobEnvironment({ event: step.event, folders, files }),
      ...(options.debug === true ? { RUNNER_DEBUG: '1' } : {}),
      ...options.env,
      ...states,
      ...inputs,
    }),
    timeoutMs: options.timeoutMs ?? 30_000,
    ...(tamper === undefined ? {} : { tamper }),
    ...(cancelWhen === undefined ? {} : { cancelWhen }),
    ...(signals === undefined ? {} : { signals }),
  })
}

/** Another folder with action.yml and dist/ can be tested before it is committed: `ACTION_FOLDER=/tmp/action`. */
export function actionFolder(): string {
  const elsewhere = process.env['ACTION_FOLDER'] ?? ''
  return elsewhere === '' ? REPOSITORY_ROOT : resolve(elsewhere)
}

/** Node 24, the action's runtime: npm's copy in this repository where the platform has one. */
export function nodeCommand(): string {
  const bundled = join(REPOSITORY_ROOT, 'node_modules', '.bin', 'node')
  return existsSync(bundled) ? bundled : process.execPath
}
