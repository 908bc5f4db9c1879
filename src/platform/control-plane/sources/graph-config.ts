import path from 'node:path'
import { parseEnv } from 'node:util'
import { z } from 'zod'
import { isValidConfigPath } from '../../../contract/config-path.ts'
import type { BuildLog } from '../build-log.ts'
import { readBounded, resolveInside } from './inside.ts'
import { BuildFailure } from './source.ts'

const CONFIG_MAX_BYTES = 1024 * 1024
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

const graphSpec = z.union([z.string(), z.looseObject({ path: z.string(), description: z.string().optional() }).transform((spec) => spec.path)], {
  error: 'should be "path:export", or an object with a path',
})
const scalar = z.union([z.string(), z.number(), z.boolean()], { error: 'should be a string' }).transform(String)

/** The graph configuration file, as far as the platform acts on it; unknown keys stay. */
const graphConfigSchema = z.looseObject({
  graphs: z.record(z.string().min(1).max(255), graphSpec).refine((graphs) => Object.keys(graphs).length > 0, 'should name one graph at least'),
  dependencies: z.array(z.string().min(1)).default([]),
  env: z.union([z.string(), z.array(z.string()), z.record(z.string().regex(NAME, 'should be an environment variable name'), scalar)]).default({}),
  node_version: z.union([z.string(), z.int().transform(String)]).optional(),
  python_version: z.union([z.string(), z.number().transform(String)]).optional(),
  auth: z.looseObject({ path: z.string().optional() }).optional(),
  http: z.looseObject({ app: z.string().optional() }).optional(),
})

/** Keys of the vendor's format that change what is built there and have no effect here: their author should know. */
const WITHOUT_EFFECT = ['dockerfile_lines', 'ui', 'ui_config', 'base_image', 'image_distro', 'pip_config_file', 'store', 'checkpointer', 'webhooks']

export interface GraphConfig {
  /** Real path of the folder that the file is in: the base of its paths. */
  readonly directory: string
  /** Graph id to `path:export`. */
  readonly graphs: Record<string, string>
  readonly dependencies: readonly string[]
  readonly env: Record<string, string>
  readonly language: 'js' | 'python'
  /** As it was asked for, `3.12`. */
  readonly pythonVersion?: string | undefined
  readonly server: { auth?: Record<string, unknown>; http?: Record<string, unknown> }
}

/**
 * Reads the graph configuration file of a checkout.
 * @throws {BuildFailure} that names the place in the file, for anything that cannot be built from.
 */
export async function readGraphConfig(root: string, configPath: string, log: BuildLog): Promise<GraphConfig> {
  const { directory, json } = await readJson(root, configPath)
  const parsed = graphConfigSchema.safeParse(json)
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => `${jsonPath(issue.path)} ${phrase(issue)}`)
    throw new BuildFailure(`${configPath} is not a graph configuration: ${faults.join('; ')}.`)
  }
  const config = parsed.data
  for (const [id, spec] of Object.entries(config.graphs)) checkGraphSpec(configPath, id, spec)
  const language = languageOf(configPath, config.graphs)
  if (language === 'js') checkNodeVersion(configPath, config.node_version, log)
  for (const key of WITHOUT_EFFECT) if (key in config) log.write('WARNING', `${configPath}: '${key}' has no effect on this platform`)
  return {
    directory,
    graphs: config.graphs,
    dependencies: config.dependencies,
    env: await readEnvironment({ root, configPath, directory, env: config.env, log }),
    language,
    ...(language === 'python' ? { pythonVersion: config.python_version } : {}),
    server: {
      ...(config.auth === undefined ? {} : { auth: config.auth }),
      ...(config.http === undefined ? {} : { http: config.http }),
    },
  }
}

/** One server loads all graphs of a configuration, and it speaks one language. */
function languageOf(configPath: string, graphs: Record<string, string>): 'js' | 'python' {
  const specs = Object.entries(graphs).map(([id, spec]) => ({
    name: `${id} (${spec})`,
    python: splitSpec(spec).file.endsWith('.py'),
  }))
  const python = specs.filter((spec) => spec.python).map((spec) => spec.name)
  if (python.length === 0) return 'js'
  const others = specs.filter((spec) => !spec.python).map((spec) => spec.name)
  if (others.length === 0) return 'python'
  throw new BuildFailure(
    `${configPath} mixes Python graphs, ${python.join(', ')}, with JavaScript ones, ${others.join(', ')}: one agent server runs one language. ` +
      'Make a configuration file, and a deployment, for each.',
  )
}

async function readJson(root: string, configPath: string): Promise<{ directory: string; json: unknown }> {
  if (!isValidConfigPath(configPath)) throw new BuildFailure(`'${configPath}' is not a path of a configuration file in the repository.`)
  const folder = await resolveInside(root, path.dirname(configPath))
  const found = 'fault' in folder ? folder : await resolveInside(root, configPath)
  if ('fault' in folder || 'fault' in found) {
    throw new BuildFailure(
      'fault' in found && found.fault === 'missing'
        ? `There is no ${configPath} in the repository at this ref. Add it, or correct graph_config_path.`
        : `${configPath} leads out of the repository: a graph configuration file must be inside.`,
    )
  }
  const text = await readBounded(found.path, CONFIG_MAX_BYTES)
  if (text === null) throw new BuildFailure(`${configPath} is no file of at most ${CONFIG_MAX_BYTES} bytes.`)
  try {
    return { directory: folder.path, json: JSON.parse(text.replace(/^\uFEFF/, '')) }
  } catch (error) {
    throw new BuildFailure(`${configPath} is not valid JSON: ${(error as Error).message}.`)
  }
}

/** `./agent.ts:graph`: a relative path, and optionally the name of an export. */
function checkGraphSpec(configPath: string, id: string, spec: string): void {
  const place = `${configPath}: ${jsonPath(['graphs', id])}`
  const { file, extra } = splitSpec(spec)
  if (file === '' || path.isAbsolute(file)) throw new BuildFailure(`${place} should be "./path:export" with a relative path, not '${spec}'.`)
  if (extra) throw new BuildFailure(`${place} should be "./path:export" with one colon, not '${spec}'.`)
  if (!/\.([cm]?[jt]s|[jt]sx|py)$/.test(file)) {
    throw new BuildFailure(`${place} should name a file that ends in .ts, .mts, .cts, .js, .mjs, .cjs or .py, not '${file}'.`)
  }
}

export function splitSpec(spec: string): { file: string; name: string; extra: boolean } {
  const [file = '', name = '', ...rest] = spec.split(':')
  return { file, name: name || 'default', extra: rest.length > 0 }
}

/** Python's server also takes `package.module:name`, which is no file. */
export function isFileSpec(spec: string): boolean {
  return spec.startsWith('.') || /[/\\]|\.(py|[cm]?[jt]s|[jt]sx)(:|$)/.test(spec)
}

const OLDEST_NODE = 20

/** The platform runs agents on its own Node, which runs what was written for an earlier one that is still maintained. */
function checkNodeVersion(configPath: string, wanted: string | undefined, log: BuildLog): void {
  const own = Number(process.versions.node.split('.')[0])
  if (wanted !== undefined) {
    const major = Number(/^v?(\d+)(\.(\d+|x))*$/.exec(wanted.trim())?.[1] ?? Number.NaN)
    if (!(major >= OLDEST_NODE && major <= own)) {
      throw new BuildFailure(
        `${configPath}: $.node_version is '${wanted}', and this platform has Node ${own}, which runs what is written for ${OLDEST_NODE} to ${own}.`,
      )
    }
  }
  log.write('INFO', `Node ${process.versions.node}${wanted === undefined ? '' : ` (node_version: ${wanted})`}`)
}

interface EnvironmentSource {
  readonly root: string
  readonly configPath: string
  readonly directory: string
  readonly env: string | string[] | Record<string, string>
  readonly log: BuildLog
}

/** `env` is an object, the path of a dotenv file, or a list of names that the deployment is to set. */
async function readEnvironment({ root, configPath, directory, env, log }: EnvironmentSource): Promise<Record<string, string>> {
  if (Array.isArray(env)) {
    if (env.length > 0) log.write('INFO', `${configPath}: the deployment's secrets are to set ${env.join(', ')}`)
    return {}
  }
  if (typeof env !== 'string') return env
  const found = await resolveInside(root, path.join(directory, env))
  if ('fault' in found) {
    if (found.fault === 'outside') throw new BuildFailure(`${configPath}: $.env leads out of the repository ('${env}').`)
    // Most repositories keep it out of git on purpose.
    log.write('WARNING', `${configPath}: the file '${env}' of $.env is not in the repository; only the deployment's secrets are set`)
    return {}
  }
  const text = await readBounded(found.path, CONFIG_MAX_BYTES)
  if (text === null) throw new BuildFailure(`${configPath}: $.env ('${env}') is no file of at most ${CONFIG_MAX_BYTES} bytes.`)
  const values = Object.entries(parseEnv(text)).filter((entry): entry is [string, string] => NAME.test(entry[0]) && entry[1] !== undefined)
  return Object.fromEntries(values)
}

function jsonPath(segments: readonly PropertyKey[]): string {
  return segments.reduce<string>((place, segment) => {
    if (typeof segment === 'number') return `${place}[${segment}]`
    return /^[A-Za-z_$][\w$]*$/.test(String(segment)) ? `${place}.${String(segment)}` : `${place}[${JSON.stringify(String(segment))}]`
  }, '$')
}

function phrase(issue: z.core.$ZodIssue): string {
  const message = issue.code === 'invalid_union' && issue.message === 'Invalid input' ? 'has the wrong type' : issue.message
  return message.charAt(0).toLowerCase() + message.slice(1)
}
