import { access, mkdir, rm, symlink } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BuiltAgent } from '../sources/build.ts'
import { pythonEnvironment } from './child-environment.ts'
import type { Launch, LaunchPlace } from './launch.ts'
import type { LaunchOptions } from './launch-options.ts'
import { StartFailure } from './runtime.ts'

const LAUNCHER = fileURLToPath(new URL('./launcher.py', import.meta.url))

/** Where the Python agent server keeps its files, below the folder that it runs in; it cannot be told another place. */
const STATE = '.langgraph_api'

/**
 * How a Python agent is started: the launcher, in the virtual environment of its build.
 * @throws {StartFailure} when that is gone, or the Python that it was made of.
 */
export async function pythonLaunch(agent: BuiltAgent, options: LaunchOptions, { directory }: LaunchPlace): Promise<Launch> {
  const { interpreter, paths } = agent.python ?? { interpreter: '', paths: [] }
  // A link to the machine's Python, which may have been replaced since.
  await access(interpreter).catch(() => {
    throw new StartFailure(`The Python that the agent was built with is gone (${interpreter}): make a new revision.`)
  })
  await linkState(directory, agent.stateDirectory)
  return {
    command: interpreter,
    // Safe path: the launcher's own folder is not the agent's to import from.
    args: ['-P', LAUNCHER, JSON.stringify({ ...options, paths })],
    env: {
      ...pythonEnvironment(agent.home, path.resolve(interpreter, '../..')),
      LOG_COLOR: 'false',
      LANGGRAPH_NO_VERSION_CHECK: 'true',
      LANGGRAPH_CLI_NO_ANALYTICS: '1',
    },
  }
}

/** The agent runs in its own folder, as its author had it, and its state lies where the platform keeps it. */
async function linkState(directory: string, stateDirectory: string): Promise<void> {
  const target = path.join(stateDirectory, STATE)
  await mkdir(target, { recursive: true })
  const link = path.join(directory, STATE)
  await rm(link, { recursive: true, force: true })
  await symlink(target, link)
}
