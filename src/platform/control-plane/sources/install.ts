import { access, constants, readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import type { Environment } from '../runtimes/child-environment.ts'
import { describeExit } from '../runtimes/process-group.ts'
import { diskFull, isDiskFull } from './disk-full.ts'
import { isInside, readBounded, resolveInside } from './inside.ts'
import { runStep, type StepResult } from './run-step.ts'
import { type BuildEffects, BuildFailure } from './source.ts'

export interface InstallRequest {
  /** Real path of the checkout's root. */
  readonly root: string
  /** Real path of the configuration file's folder. */
  readonly configDirectory: string
  readonly configPath: string
  /** `dependencies` of the configuration file: folders (`.`, `./lib`) and packages (`name@range`). */
  readonly dependencies: readonly string[]
  readonly installCommand?: string | null | undefined
  readonly buildCommand?: string | null | undefined
  readonly env: Environment
}

/**
 * Installs what the agent needs, with the repository's own lockfile, then runs its build command.
 * @throws {BuildFailure} that names the command that failed; its output is in the log.
 */
export async function installDependencies(request: InstallRequest, effects: BuildEffects): Promise<void> {
  const { root, configDirectory, configPath, env, installCommand, buildCommand } = request
  const { folders, packages } = sortDependencies(request)
  const nearest = await nearestPackage(root, configDirectory)
  const directory = nearest ?? configDirectory
  if (installCommand) {
    await runCommand({ name: 'install_command', command: installCommand, directory, env }, effects)
  } else {
    if (nearest === null) {
      throw new BuildFailure(
        `There is no package.json beside ${configPath} or above it in the repository. Add one that depends on @langchain/langgraph.`,
      )
    }
    const places = new Set([await workspaceRoot(root, nearest)])
    for (const folder of folders) places.add(await workspaceRoot(root, await dependencyFolder(request, folder)))
    for (const place of places) await installPackages({ root, directory: place, env }, effects)
    if (packages.length > 0) await addPackages({ directory, packages, env }, effects)
  }
  if (buildCommand) await runCommand({ name: 'build_command', command: buildCommand, directory, env }, effects)
}

/** A name in the registry with an optional range or tag: no address, no path, no option. */
const PACKAGE = /^(@[a-z0-9~][\w.~-]*\/)?[a-z0-9~][\w.~-]*(@[\w.^~<>=|*+ -]+)?$/i

function sortDependencies({ dependencies, configPath }: InstallRequest): { folders: string[]; packages: string[] } {
  const folders: string[] = []
  const packages: string[] = []
  for (const [index, dependency] of dependencies.entries()) {
    // The folder of the configuration file itself is installed in any case.
    if (dependency === '.' || dependency === './') continue
    if (dependency.startsWith('.')) folders.push(dependency)
    else if (PACKAGE.test(dependency)) packages.push(dependency)
    else throw new BuildFailure(`${configPath}: $.dependencies[${index}] should be a folder ('./lib') or a package ('name@1.2.3'), not '${dependency}'.`)
  }
  return { folders, packages }
}

async function dependencyFolder({ root, configDirectory, configPath }: InstallRequest, folder: string): Promise<string> {
  const found = await resolveInside(root, path.join(configDirectory, folder))
  if ('fault' in found) {
    const what = found.fault === 'missing' ? 'does not exist' : 'leads out of the repository'
    throw new BuildFailure(`${configPath}: the folder '${folder}' of $.dependencies ${what}.`)
  }
  if (await isFile(path.join(found.path, 'package.json'))) return found.path
  throw new BuildFailure(`${configPath}: the folder '${folder}' of $.dependencies has no package.json.`)
}

/** The folder nearest to `from`, upwards inside the checkout, that has a package.json. */
async function nearestPackage(root: string, from: string): Promise<string | null> {
  for (const folder of upwards(root, from)) if (await isFile(path.join(folder, 'package.json'))) return folder
  return null
}

/** A member of a workspace is installed from the workspace's root: the lockfile is there. */
async function workspaceRoot(root: string, member: string): Promise<string> {
  for (const folder of upwards(root, path.dirname(member))) {
    if (member === root) break
    const patterns = await workspacePatterns(folder)
    const relative = path.relative(folder, member)
    if (patterns.some((pattern) => path.matchesGlob(relative, pattern.replace(/^\.\/|\/+$/g, '')))) return folder
  }
  return member
}

const manifestSchema = z.looseObject({
  workspaces: z.union([z.array(z.string()), z.looseObject({ packages: z.array(z.string()) }).transform((value) => value.packages)]).catch([]),
})

async function workspacePatterns(folder: string): Promise<string[]> {
  try {
    const text = await readBounded(path.join(folder, 'package.json'), 1024 * 1024)
    return manifestSchema.parse(JSON.parse(text ?? '{}')).workspaces
  } catch {
    return []
  }
}

function* upwards(root: string, from: string): Generator<string> {
  for (let folder = from; isInside(root, folder); folder = path.dirname(folder)) {
    yield folder
    if (folder === root) return
  }
}

interface Place {
  readonly root: string
  readonly directory: string
  readonly env: Environment
}

async function installPackages({ root, directory, env }: Place, effects: BuildEffects): Promise<void> {
  const where = path.relative(root, directory) || '.'
  const { manager, lockfile } = await packageManager(directory, env)
  const run = (...args: string[]) => {
    effects.log.write('INFO', `Running ${manager} ${args.join(' ')} in ${where}`)
    return runStep({ command: manager, args, cwd: directory, env }, effects)
  }
  if (manager !== 'npm') {
    const result = await run('install', '--frozen-lockfile')
    if (!result.ok) throw failed(`${manager} install`, result)
    return
  }
  if (lockfile === 'npm') {
    const result = await run('ci')
    if (result.ok) return
    if (!isOutOfSync(result)) throw failed('npm ci', result)
    effects.log.write('WARNING', 'package.json and its lockfile differ: falling back to npm install. Run npm install and commit the lockfile.')
  } else if (lockfile !== null) {
    effects.log.write('WARNING', `${lockfile} was not used, because its package manager is not on this machine: npm chooses the versions`)
  } else {
    effects.log.write('WARNING', 'There is no lockfile: npm chooses the versions. Commit one, so that each build gets the same.')
  }
  const result = await run('install')
  if (!result.ok) throw failed('npm install', result)
}

/** npm ci refuses a lockfile that does not match, with one of these words; some such locks are written by npm itself. */
function isOutOfSync(result: StepResult): boolean {
  return /can only install packages when your package\.json|npm (error|ERR!) code EUSAGE/.test(result.tail.join('\n'))
}

interface Choice {
  readonly manager: 'npm' | 'pnpm' | 'yarn'
  /** `npm`: one that npm reads. Another name: a lockfile that nobody here reads. */
  readonly lockfile: string | null
}

async function packageManager(directory: string, env: Environment): Promise<Choice> {
  const files = new Set(await readdir(directory))
  if (files.has('package-lock.json') || files.has('npm-shrinkwrap.json')) return { manager: 'npm', lockfile: 'npm' }
  for (const [manager, lockfile] of [['pnpm', 'pnpm-lock.yaml'], ['yarn', 'yarn.lock']] as const) {
    if (files.has(lockfile)) return (await isOnPath(manager, env)) ? { manager, lockfile } : { manager: 'npm', lockfile }
  }
  const bun = ['bun.lock', 'bun.lockb'].find((name) => files.has(name))
  return { manager: 'npm', lockfile: bun ?? null }
}

async function isOnPath(program: string, env: Environment): Promise<boolean> {
  const folders = (env['PATH'] ?? '').split(path.delimiter).filter((folder) => folder !== '')
  const found = await Promise.all(folders.map((folder) => access(path.join(folder, program), constants.X_OK).then(() => true, () => false)))
  return found.includes(true)
}

interface Addition {
  readonly directory: string
  readonly packages: readonly string[]
  readonly env: Environment
}

async function addPackages({ directory, packages, env }: Addition, effects: BuildEffects): Promise<void> {
  const args = ['install', '--no-save', '--no-package-lock', '--', ...packages]
  effects.log.write('INFO', `Running npm ${args.join(' ')}`)
  const result = await runStep({ command: 'npm', args, cwd: directory, env }, effects)
  if (!result.ok) throw failed('npm install', result)
}

export interface Command {
  readonly name: 'install_command' | 'build_command'
  readonly command: string
  readonly directory: string
  readonly env: Environment
}

/** The one place where a shell reads text: these two settings are shell commands by definition. */
export async function runCommand({ name, command, directory, env }: Command, effects: BuildEffects): Promise<void> {
  effects.log.write('INFO', `Running ${name}: ${command}`)
  const result = await runStep({ command: 'sh', args: ['-c', command], cwd: directory, env }, effects)
  if (!result.ok) throw failed(name, result)
}

/** A command's end as the build's: what it was, how it ended, and its line that tells the most. */
export function failed(what: string, result: StepResult): BuildFailure {
  if (isDiskFull(result)) return diskFull()
  if (result.exit.code === 127 && what.startsWith('npm')) return new BuildFailure('There is no npm on this machine: the platform needs it to build.')
  const telling = reasonOfNpm(result.tail) ?? result.tail.findLast((line) => /error/i.test(line)) ?? result.tail.at(-1)
  return new BuildFailure(`${what} ${describeExit(result.exit)}${telling === undefined ? '' : `: ${telling.slice(0, 300)}`}`)
}

/** npm says after the code what was wrong; advice and the place of a debug log follow. Undefined when npm did not fail by itself. */
function reasonOfNpm(tail: readonly string[]): string | undefined {
  const code = tail.findLastIndex((line) => /^npm (error|ERR!) code E/.test(line))
  if (code === -1) return undefined
  return tail.slice(code + 1).find((line) => !/^npm (error|ERR!) (syscall|path|dest|errno|network)\b/.test(line))
}

async function isFile(file: string): Promise<boolean> {
  return stat(file).then((stats) => stats.isFile(), () => false)
}
