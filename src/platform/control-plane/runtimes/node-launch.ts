import { access } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BuiltAgent } from '../sources/build.ts'
import { baseEnvironment } from './child-environment.ts'
import type { Launch, LaunchPlace } from './launch.ts'
import type { LaunchOptions } from './launch-options.ts'

const LAUNCHER = fileURLToPath(new URL('./launcher.ts', import.meta.url))

/** How a JavaScript agent is started: the launcher, in the Node that runs agents. */
export async function nodeLaunch(agent: BuiltAgent, options: LaunchOptions, { node, directory }: LaunchPlace): Promise<Launch> {
  return {
    command: node,
    args: [...(await nodeOptions(agent, directory)), LAUNCHER, JSON.stringify(options)],
    env: { ...baseEnvironment(agent.home), NODE_ENV: 'production' },
  }
}

/**
 * TypeScript is loaded through tsx, which reads the project's tsconfig.json; plain JavaScript starts a second sooner without.
 */
async function nodeOptions(agent: BuiltAgent, directory: string): Promise<string[]> {
  const specs = [...Object.values(agent.graphs), agent.server.auth?.['path'], agent.server.http?.['app']].map(String)
  const typescript = specs.some((spec) => /\.([cm]?ts|[jt]sx)(:|$)/.test(spec)) || (await hasTsconfig(agent.directory, directory))
  return ['--disable-warning=ExperimentalWarning', ...(typescript ? ['--import', import.meta.resolve('tsx')] : [])]
}

async function hasTsconfig(root: string, directory: string): Promise<boolean> {
  const found = [root, directory].map((folder) => access(path.join(folder, 'tsconfig.json')).then(() => true, () => false))
  return (await Promise.all(found)).includes(true)
}
