import path from 'node:path'
import { isFileSpec } from '../sources/graph-config.ts'
import type { Environment } from './child-environment.ts'
import type { LaunchOptions } from './launch-options.ts'
import { nodeLaunch } from './node-launch.ts'
import { pythonLaunch } from './python-launch.ts'
import type { BuildStart } from './runtime.ts'

/** The process that an agent becomes. */
export interface Launch {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Environment
}

export interface LaunchPlace {
  readonly host: string
  /** The Node that runs JavaScript agents. */
  readonly node: string
  /** The configuration file's folder, which the agent runs in. */
  readonly directory: string
}

const WORKERS = 10

/** Settles how an agent is started, in its language and with its whole environment. */
export async function prepareLaunch(request: BuildStart, place: LaunchPlace): Promise<Launch> {
  const { revisionId, agent, env } = request
  const options = launchOptions(request, place)
  const launch = await (agent.language === 'python' ? pythonLaunch(agent, options, place) : nodeLaunch(agent, options, place))
  return {
    ...launch,
    env: { ...launch.env, LOG_LEVEL: 'info', ...agent.env, ...env, LOG_JSON: 'true', LANGSMITH_HOST_REVISION_ID: revisionId },
  }
}

function launchOptions({ agent, env }: BuildStart, { host, directory }: LaunchPlace): LaunchOptions {
  const wanted = Number(env['N_JOBS_PER_WORKER'] ?? agent.env['N_JOBS_PER_WORKER'])
  const absolute = (spec: unknown) => (typeof spec === 'string' && isFileSpec(spec) ? path.resolve(directory, spec) : spec)
  const { auth, http } = agent.server
  return {
    host,
    workers: Number.isInteger(wanted) && wanted > 0 && wanted <= 1000 ? wanted : WORKERS,
    stateDirectory: agent.stateDirectory,
    graphs: Object.fromEntries(Object.entries(agent.graphs).map(([id, spec]) => [id, path.resolve(directory, spec)])),
    ...(auth === undefined ? {} : { auth: { ...auth, ...(auth['path'] === undefined ? {} : { path: absolute(auth['path']) }) } }),
    ...(http === undefined ? {} : { http: { ...http, ...(http['app'] === undefined ? {} : { app: absolute(http['app']) }) } }),
  }
}
