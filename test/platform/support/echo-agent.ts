import { cpSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildAgent, type BuiltAgent } from '../../../src/platform/control-plane/sources/build.ts'
import { echoPackages } from '../../support/echo-packages.ts'
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

/** The example agent with other files beside it, built below a folder. Its packages are linked: the install itself is tested elsewhere. */
export async function buildEchoAgent(folder: string, files: Record<string, string> = {}): Promise<BuiltAgent> {
  const repository = createEchoRepository(path.join(folder, 'echo'))
  repository.commit(files)
  return buildAgent(
    {
      source: { repoUrl: repository.directory, ref: 'main' },
      configPath: 'langgraph.json',
      directory: path.join(folder, 'build'),
      installCommand: `ln -s '${await echoPackages()}' node_modules`,
      env: {},
      npmCache: path.join(folder, 'npm-cache'),
    },
    { log: memoryLog(), signal: new AbortController().signal },
  )
}
