import { startControlPlaneDouble } from './control-plane-double.ts'
import type { ControlPlaneDouble, DoubleOptions } from './control-plane-model.ts'
import { startFaultServer, type FaultServer } from './fault-server.ts'
import { assertNoSecret } from './no-secret.ts'
import { GITHUB_TOKEN, RUNTIME_TOKEN } from './runner/job-environment.ts'
import { runAction, type RunOptions, type RunResult } from './runner.ts'

/** A secret of the agent that every scene deploys with, in a form that has to be escaped in most places. */
export const AGENT_SECRET = 'sk-agent/"quoted"+&<secret>%0Aend'

/** One acceptance test's world: a control plane, a network in front of it that can fail, and steps that run the bundle. */
export type Scene = {
  plane: ControlPlaneDouble
  network: FaultServer
  /** Nothing of these may ever leave a step. */
  secrets: string[]
  /** Runs the bundle. `with` is merged over inputs that deploy `echo-agent`; an empty text takes one out. */
  run: (options?: Partial<RunOptions>) => Promise<RunResult>
  /** `flawsOf` with the secrets of the scene, and more. */
  flaws: (result: RunResult, ending: Ending, more?: readonly string[]) => Promise<string[]>
}

/** Opens a scene, and closes all that was opened in it. */
export async function withScene(options: DoubleOptions, body: (scene: Scene) => Promise<void>): Promise<void> {
  const plane = await startControlPlaneDouble(options)
  const network = await startFaultServer(new URL(plane.url).origin)
  const results: RunResult[] = []
  const scene: Scene = {
    plane,
    network,
    secrets: [plane.apiKey, AGENT_SECRET],
    run: async (run = {}) => {
      const inputs = {
        'api-key': plane.apiKey,
        'control-plane-url': `${network.url}${options.prefix ?? ''}`,
        'deployment-name': 'echo-agent',
        secrets: `MODEL_KEY=${AGENT_SECRET}`,
        timeout: '20s',
        ...run.with,
      }
      const result = await runAction({ ...run, with: inputs })
      results.push(result)
      return result
    },
    flaws: (result, ending, more = []) => flawsOf(result, ending, [...scene.secrets, ...more]),
  }
  try {
    await body(scene)
  } finally {
    await Promise.all([...results.map((result) => result.dispose()), network.stop(), plane.stop()])
  }
}

/** How a step should have ended. A `code` makes it a red one. */
export type Ending = {
  status: string
  code?: string
  /** Texts or patterns that have to be in the red annotation. */
  says?: readonly (string | RegExp)[]
  /** The command file of the outputs was damaged: outputs cannot be looked at, and the runner adds its own errors. */
  outputsLost?: boolean
}

export const DEPLOYED: Ending = { status: 'deployed' }

export function failed(code: string, ...says: (string | RegExp)[]): Ending {
  return { status: 'failed', code, says }
}

/**
 * Everything that is wrong with the way in which a step ended; empty when nothing is. It looks for the three things that no step
 * may do, whatever the test is about: be green by mistake, hang, or let a secret out.
 */
export async function flawsOf(result: RunResult, ending: Ending, secrets: readonly string[]): Promise<string[]> {
  const flaws = [...hangs(result), ...colours(result, ending), ...flawsOfPost(result)]
  await assertNoSecret(result, [...secrets, GITHUB_TOKEN, RUNTIME_TOKEN]).catch((error: Error) => flaws.push(error.message))
  if (flaws.length > 0) flaws.push(`--- log of main (exit code ${result.exitCode}) ---\n${result.log}\n${result.stderr}`)
  return flaws
}

function hangs(result: RunResult): string[] {
  return [
    ...(result.timedOut ? [`main did not end within the test's limit (${Math.round(result.durationMs)} ms)`] : []),
    ...(result.leftChildren ? ['main ended, but something still held its output'] : []),
    ...(result.commandsStopped ? ['::stop-commands:: was never taken back'] : []),
  ]
}

function colours(result: RunResult, { status, code, says, outputsLost }: Ending): string[] {
  const flaws: string[] = []
  const expectOutput = (name: string, value: string | undefined) => {
    const actual = result.outputs[name]
    if (outputsLost !== true && actual !== value) flaws.push(`output ${name} is ${actual}, not ${value}`)
  }
  const fromRunner = /^Unable to process file command|^EISDIR|^Invalid (format|value)/
  const errors = result.annotations.filter(({ level, message }) => level === 'error' && !fromRunner.test(message))
  const texts = errors.map(({ message }) => message).join(' | ')
  expectOutput('status', status)
  expectOutput('error-code', code)
  if (code === undefined) {
    if (result.exitCode !== 0 || result.conclusion !== 'success') flaws.push(`it is red: exit code ${result.exitCode}`)
    if (errors.length > 0) flaws.push(`it is green and has red annotations: ${texts}`)
    return flaws
  }
  if (result.exitCode !== 1) flaws.push(`the exit code is ${result.exitCode}, not 1`)
  if (result.conclusion === 'success') flaws.push('it is green')
  if (errors.length !== 1) flaws.push(`there are ${errors.length} red annotations, not 1: ${texts}`)
  const [error] = errors
  const text = `${error?.title ?? ''}\n${error?.message ?? ''}`
  if (!text.includes(code)) flaws.push(`the red annotation does not name ${code}: ${text}`)
  for (const expected of says ?? []) {
    const found = typeof expected === 'string' ? text.includes(expected) : expected.test(text)
    if (!found) flaws.push(`the red annotation does not say ${String(expected)}: ${text}`)
  }
  return flaws
}

function flawsOfPost({ post }: RunResult): string[] {
  if (post === null) return []
  return [
    ...(post.timedOut ? ['post did not end'] : []),
    ...(post.exitCode === 0 ? [] : [`post ended with ${post.exitCode}:\n${post.log}`]),
    ...(post.commandsStopped ? ['post never took ::stop-commands:: back'] : []),
  ]
}
