import { type ChildProcess, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import path from 'node:path'
import type { AuthConfigObject as Login } from 'dockerode'
import type { EngineEnvironment } from './engine.ts'

const HELPER_LIMIT_MS = 15_000
const DOCKER_HUB_KEYS = ['https://index.docker.io/v1/', 'index.docker.io', 'docker.io', 'registry-1.docker.io']

interface DockerConfig {
  readonly auths?: Record<string, { auth?: string; username?: string; password?: string; identitytoken?: string } | undefined>
  readonly credHelpers?: Record<string, string | undefined>
  readonly credsStore?: string
}

/**
 * The login for a registry from Docker's own configuration file (`config.json` in `DOCKER_CONFIG`, or in `~/.docker`), as
 * `docker login` writes it; helper programs are asked. Read anew each time: logins are short-lived. Undefined when there is none.
 * @throws {Error} with a sentence that holds nothing of a credential, when there is one that cannot be read.
 */
export async function registryCredentials(
  registry: string,
  env: EngineEnvironment,
  { limitMs = HELPER_LIMIT_MS } = {},
): Promise<Login | undefined> {
  const file = path.join(env['DOCKER_CONFIG'] || path.join(homedir(), '.docker'), 'config.json')
  const config = await readConfig(file)
  if (config === null) return undefined
  const keys =
    registry === 'docker.io'
      ? DOCKER_HUB_KEYS
      : [registry, `https://${registry}`, `https://${registry}/v1/`, `https://${registry}/v2/`]
  const own = keys.map((key) => config.credHelpers?.[key]).find((helper) => helper !== undefined)
  const helper = own ?? config.credsStore
  for (const key of keys) {
    const found = helper === undefined || helper === '' ? undefined : await askHelper(helper, key, { env, limitMs })
    if (found !== undefined) return { ...found, serveraddress: key }
    const entry = config.auths?.[key]
    if (entry === undefined) continue
    const login = loginOf(entry)
    if (login !== undefined) return { ...login, serveraddress: key }
  }
  return undefined
}

async function readConfig(file: string): Promise<DockerConfig | null> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new Error(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`, { cause: error })
  }
  try {
    return JSON.parse(text) as DockerConfig
  } catch {
    // The parser's own sentence quotes the text.
    throw new Error(`${file} is not JSON`)
  }
}

function loginOf(entry: NonNullable<NonNullable<DockerConfig['auths']>[string]>): Login | undefined {
  const { auth, username = '', password = '', identitytoken } = entry
  if (identitytoken !== undefined && identitytoken !== '') return { identitytoken }
  if (auth !== undefined && auth !== '') {
    const clear = Buffer.from(auth, 'base64').toString('utf8')
    const colon = clear.indexOf(':')
    return { username: clear.slice(0, colon), password: clear.slice(colon + 1) }
  }
  return username === '' ? undefined : { username, password }
}

/** `docker-credential-<helper> get`: the registry on standard input, the login on standard output. Undefined when it has none. */
async function askHelper(
  helper: string,
  registry: string,
  { env, limitMs }: { env: EngineEnvironment; limitMs: number },
): Promise<Login | undefined> {
  if (!/^[\w.-]+$/.test(helper))
    throw new Error('the credential helper in the Docker configuration has a name that no program has')
  const program = `docker-credential-${helper}`
  const child = spawn(program, ['get'], { env: withoutOurs(env), stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stdin.on('error', () => undefined)
  child.stdin.end(registry)
  const limit = setTimeout(() => endGroup(child), limitMs)
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (error) => reject(new Error(`${program} could not be run: ${error.message}`)))
    child.once('close', resolve)
  }).finally(() => clearTimeout(limit))
  if (code !== 0) return undefined
  try {
    const { Username, Secret } = JSON.parse(out) as { Username: string; Secret: string }
    if (Username === '<token>') return { identitytoken: Secret }
    return { username: Username, password: Secret }
  } catch {
    throw new Error(`${program} did not answer as credential helpers do`)
  }
}

/** The platform's own variables, its keys among them, are nothing for the programs of others. */
function withoutOurs(env: EngineEnvironment): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('PLATFORM_')))
}

/** With what it has started: any of it could hold its output open for ever. */
function endGroup({ pid, stdout }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
  stdout?.destroy()
}
