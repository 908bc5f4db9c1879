import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { findPython } from './find-python.ts'
import { resolveInside } from './inside.ts'
import { failed, type InstallRequest, runCommand } from './install.ts'
import { runStep, type StepResult } from './run-step.ts'
import { type BuildEffects, BuildFailure } from './source.ts'

export interface PythonRequest extends InstallRequest {
  /** Where the virtual environment is made. */
  readonly virtualEnvironment: string
  /** `python_version` of the configuration file. */
  readonly wanted: string | undefined
}

/** What it takes to start a Python agent. */
export interface PythonBuild {
  /** The virtual environment's own. */
  readonly interpreter: string
  /** Folders that modules are imported from, besides those of the virtual environment. */
  readonly paths: string[]
}

/** The vendor's open-source agent server for Python, which keeps its state in memory and in files. */
const SERVER = 'langgraph-cli[inmem]'

/**
 * Makes a virtual environment with the configuration's dependencies and the agent server in it, then runs the build command.
 * @throws {BuildFailure} when this machine has no Python for it, or a command fails; its output is in the log.
 */
export async function installPython(request: PythonRequest, effects: BuildEffects): Promise<PythonBuild> {
  const { configDirectory, configPath, env, installCommand, buildCommand, virtualEnvironment, wanted } = request
  const { log } = effects
  const { args, paths } = await readDependencies(request)
  const { executable } = await findPython({ configPath, wanted, directory: configDirectory }, effects)
  log.write('INFO', 'Making a virtual environment')
  // Not in the agent's folders: a module of the repository must not take the place of the standard library's.
  const made = await runStep({ command: executable, args: ['-I', '-m', 'venv', virtualEnvironment], cwd: configDirectory, env }, effects)
  if (!made.ok) throw failed('python -m venv', made)
  const interpreter = path.join(virtualEnvironment, 'bin/python')

  if (installCommand) await runCommand({ name: 'install_command', command: installCommand, directory: configDirectory, env }, effects)
  const wishes = installCommand ? [SERVER] : [...args, SERVER]
  log.write('INFO', `Running pip install ${wishes.join(' ')}`)
  const pip = ['-I', '-m', 'pip', 'install', ...wishes]
  const installed = await runStep({ command: interpreter, args: pip, cwd: configDirectory, env, level: levelOfPip }, effects)
  if (!installed.ok) throw pipFailure(installed)
  if (buildCommand) await runCommand({ name: 'build_command', command: buildCommand, directory: configDirectory, env }, effects)
  return { interpreter, paths }
}

/** A requirement by name, with optional extras, versions and markers: no address, no path, no option. */
const PACKAGE = /^[A-Za-z0-9][\w.-]*\s*(\[[\w.,\s-]*\])?\s*([<>=!~]=?[^@/\\]*)?(;[^@/\\]*)?$/

/**
 * What pip is to install, as the vendor's own tool does it: a folder that is a package as such (editable), the requirements of one that is
 * not, packages by name.
 */
async function readDependencies(request: PythonRequest): Promise<{ args: string[]; paths: string[] }> {
  const { configDirectory, configPath, dependencies } = request
  const args: string[] = []
  const paths = new Set([configDirectory])
  for (const [index, dependency] of dependencies.entries()) {
    if (dependency.startsWith('.')) {
      const folder = await dependencyFolder(request, dependency)
      const files = new Set(await readdir(folder))
      if (files.has('pyproject.toml') || files.has('setup.py')) args.push('--editable', folder)
      else if (files.has('requirements.txt')) args.push('--requirement', path.join(folder, 'requirements.txt'))
      paths.add(folder)
      // The folder is itself a package: it is found from the folder that it lies in.
      if (files.has('__init__.py') && folder !== configDirectory) paths.add(path.dirname(folder))
    } else if (PACKAGE.test(dependency)) args.push(dependency)
    else {
      const wrong = `$.dependencies[${index}] should be a folder ('.', './lib') or a package ('name==1.2.3'), not '${dependency}'`
      throw new BuildFailure(`${configPath}: ${wrong}. Addresses belong in a requirements.txt.`)
    }
  }
  return { args, paths: [...paths] }
}

async function dependencyFolder({ root, configDirectory, configPath }: PythonRequest, folder: string): Promise<string> {
  const found = await resolveInside(root, path.join(configDirectory, folder))
  const place = `${configPath}: the folder '${folder}' of $.dependencies`
  if ('fault' in found) throw new BuildFailure(`${place} ${found.fault === 'missing' ? 'does not exist' : 'leads out of the repository'}.`)
  if ((await stat(found.path)).isDirectory()) return found.path
  throw new BuildFailure(`${place} is no folder.`)
}

function levelOfPip(line: string): 'ERROR' | 'WARNING' | 'INFO' {
  if (/^(ERROR|error):/.test(line)) return 'ERROR'
  return /^(WARNING|DEPRECATION):/.test(line) ? 'WARNING' : 'INFO'
}

/** pip's words for an index that does not answer; what it says last is that no version was found. */
const UNREACHABLE =
  /Retrying \(Retry\(|(NewConnection|ConnectTimeout|ReadTimeout|NameResolution|SSL|Proxy)Error|Could not fetch URL/

function pipFailure(result: StepResult): BuildFailure {
  const cause = result.tail.find((line) => UNREACHABLE.test(line))
  if (cause === undefined) return failed('pip install', result)
  const advice = "Check the network of the platform's machine, or its user's pip settings."
  return new BuildFailure(`pip could not reach its package index (${cause.slice(0, 300)}). ${advice}`)
}
