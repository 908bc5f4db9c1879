import { createHash, randomUUID } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildAgent, type BuiltAgent } from '../../../src/platform/control-plane/sources/build.ts'
import { createGitRepository, type GitRepository } from './git-repository.ts'
import { memoryLog } from './memory-log.ts'

const ECHO_AGENT = fileURLToPath(new URL('../../../examples/echo-agent', import.meta.url))

/** The example agent in a repository of its own, committed on `main`. */
export function createEchoRepository(directory: string): GitRepository {
  const repository = createGitRepository(directory)
  cpSync(ECHO_AGENT, directory, { recursive: true, filter: (file) => path.basename(file) !== 'node_modules' })
  repository.commit({ '.gitignore': 'node_modules/\n' })
  return repository
}

export function echoAgentFile(name: string): string {
  return readFileSync(path.join(ECHO_AGENT, name), 'utf8')
}

/**
 * The example agent, built below a folder. Its packages are installed once for a lockfile and copied from then on: the install itself is
 * tested elsewhere.
 */
export async function buildEchoAgent(folder: string): Promise<BuiltAgent> {
  const repository = createEchoRepository(path.join(folder, 'echo'))
  const key = createHash('sha256').update(echoAgentFile('package-lock.json')).update(process.version).digest('hex').slice(0, 16)
  const packages = path.join(tmpdir(), `echo-agent-packages-${key}`)
  const cached = existsSync(packages)
  const agent = await buildAgent(
    {
      source: { repoUrl: repository.directory, ref: 'main' },
      configPath: 'langgraph.json',
      directory: path.join(folder, 'build'),
      installCommand: cached ? `cp -R '${packages}' node_modules` : null,
      env: {},
      npmCache: path.join(folder, 'npm-cache'),
    },
    { log: memoryLog(), signal: new AbortController().signal },
  )
  if (!cached) keep(path.join(agent.directory, 'node_modules'), packages)
  return agent
}

/** Written aside and moved into place: several test files may do it at once, and one may be interrupted. */
function keep(from: string, to: string): void {
  const aside = `${to}.${randomUUID()}`
  mkdirSync(aside)
  try {
    cpSync(from, path.join(aside, 'packages'), { recursive: true, verbatimSymlinks: true })
    renameSync(path.join(aside, 'packages'), to)
  } catch (error) {
    // Another one was sooner.
    if (!existsSync(to)) throw error
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}
