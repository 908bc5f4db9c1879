import { mkdir, realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import { baseEnvironment, npmEnvironment, pipEnvironment, pythonEnvironment } from '../runtimes/child-environment.ts'
import { diskFull, isDiskFullError } from './disk-full.ts'
import { checkoutGit } from './git.ts'
import { type GraphConfig, isFileSpec, readGraphConfig, splitSpec } from './graph-config.ts'
import { resolveInside } from './inside.ts'
import { installDependencies } from './install.ts'
import { installPython, type PythonBuild } from './install-python.ts'
import { type BuildEffects, BuildFailure, type GitSource } from './source.ts'

export { BuildFailure } from './source.ts'

/** What is to be built, and where. */
export interface BuildRequest {
  readonly source: GitSource
  /** Path of the graph configuration file in the repository. */
  readonly configPath: string
  /** Belongs to this build alone: emptied first, then holds `checkout/`, `home/` and `state/`. */
  readonly directory: string
  /** Replaces the install. Run by `sh -c` in the package's directory. */
  readonly installCommand?: string | null | undefined
  /** Runs after the install, by `sh -c` in the package's directory. */
  readonly buildCommand?: string | null | undefined
  /** The deployment's secrets: install scripts may need them. */
  readonly env: Readonly<Record<string, string>>
  /** The package managers' cache that all builds share: npm's, and pip's in a folder of it. */
  readonly npmCache: string
  /** Whether `file://` and paths of this machine may be cloned. Default true. */
  readonly allowLocal?: boolean | undefined
  /** What the checkout may take on disk. Default `CHECKOUT_MAX_BYTES`. */
  readonly maxCheckoutBytes?: number | undefined
}

/** A build that is ready to start. Plain data: it can be stored, and started again after a restart of the platform. */
export interface BuiltAgent {
  readonly commitSha: string
  /** The root of the checkout. */
  readonly directory: string
  readonly configPath: string
  /** Graph id to `path:export`, relative to the configuration file's directory. */
  readonly graphs: Record<string, string>
  /** The configuration file's `env`; a dotenv file is already read. */
  readonly env: Record<string, string>
  readonly language: 'js' | 'python'
  /** Of Python agents. */
  readonly python?: PythonBuild
  /** HOME of the agent. */
  readonly home: string
  /** Where the agent server keeps threads and checkpoints: its own for each build, so that no revision reads another's. */
  readonly stateDirectory: string
  /** The parts of the configuration file that the agent server itself reads. */
  readonly server: { auth?: Record<string, unknown>; http?: Record<string, unknown> }
}

/**
 * Clones, reads the graph configuration, installs and builds.
 * @throws {BuildFailure} for what the user can mend; the signal's reason when it was aborted, with every process of the build gone.
 */
export async function buildAgent(request: BuildRequest, effects: BuildEffects): Promise<BuiltAgent> {
  try {
    return await build(request, effects)
  } catch (error) {
    if (isDiskFullError(error)) throw diskFull()
    throw error
  }
}

async function build(request: BuildRequest, effects: BuildEffects): Promise<BuiltAgent> {
  const { source, configPath, directory, npmCache, allowLocal, maxCheckoutBytes } = request
  const { log, signal } = effects
  const checkout = path.join(directory, 'checkout')
  const home = path.join(directory, 'home')
  const stateDirectory = path.join(directory, 'state')
  // What an interrupted attempt has left.
  await rm(directory, { recursive: true, force: true })
  for (const folder of [checkout, home, stateDirectory, npmCache]) await mkdir(folder, { recursive: true })

  const { commitSha } = await checkoutGit(source, { directory: checkout, log, signal, allowLocal, maxBytes: maxCheckoutBytes })
  effects.onCommit?.(commitSha)
  const config = await readGraphConfig(checkout, configPath, log)
  const root = await realpath(checkout)
  const { graphs, env, language, server, dependencies, directory: configDirectory } = config
  const { installCommand, buildCommand } = request
  const install = { root, configDirectory, configPath, dependencies, installCommand, buildCommand }
  const own = { ...env, ...request.env }
  let python: PythonBuild | undefined
  if (language === 'python') {
    const virtualEnvironment = path.join(await realpath(directory), 'venv')
    const pythonEnv = { ...pythonEnvironment(home, virtualEnvironment), ...pipEnvironment(path.join(npmCache, 'pip')), ...own }
    python = await installPython({ ...install, env: pythonEnv, virtualEnvironment, wanted: config.pythonVersion }, effects)
  } else {
    await installDependencies({ ...install, env: { ...baseEnvironment(home), ...npmEnvironment(npmCache), ...own } }, effects)
  }
  await checkFiles(root, config, configPath)
  log.write('INFO', `Built ${Object.keys(graphs).join(', ')} from commit ${commitSha}`)
  const built = { commitSha, directory: checkout, configPath, graphs, env, language, home, stateDirectory, server }
  return python === undefined ? built : { ...built, python }
}

/** Only now: the build may have made them. */
async function checkFiles(root: string, config: GraphConfig, configPath: string): Promise<void> {
  const named = [
    ...Object.entries(config.graphs).map(([id, spec]) => [`graph '${id}'`, spec] as const),
    ...[config.server.auth?.['path'], config.server.http?.['app']]
      .filter((spec): spec is string => typeof spec === 'string' && isFileSpec(spec))
      .map((spec) => ['server', spec] as const),
  ]
  for (const [what, spec] of named) {
    const { file } = splitSpec(spec)
    const found = await resolveInside(root, path.join(config.directory, file))
    if (!('fault' in found)) continue
    const fault = found.fault === 'missing' ? 'does not exist after the build' : 'is outside of the repository'
    throw new BuildFailure(`${configPath}: the file '${file}' of ${what} ${fault}.`)
  }
}
