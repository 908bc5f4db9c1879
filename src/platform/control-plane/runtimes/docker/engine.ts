import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import Docker, { type DockerOptions, type DockerVersion } from 'dockerode'

/** What one request may take that does not stream. Milliseconds. */
const REQUEST_LIMIT_MS = 30_000
const PING_LIMIT_MS = 3000

export type EngineEnvironment = Readonly<Record<string, string | undefined>>

/** A container engine with the Docker API: Docker Engine, or Podman's service. */
export interface Engine {
  readonly docker: Docker
  /** Its address, for sentences. */
  readonly name: string
  /** The machine that it runs on, when that is another one. */
  readonly remoteHost: string | null
  /** Options that end a request: at its limit, or with the signal. */
  limited(signal?: AbortSignal): Ending
}

interface Ending {
  readonly abortSignal: AbortSignal
}

/** Operations that take an end, which the library's types do not know. */
interface Answering {
  ping(ending: Ending): Promise<unknown>
  info(ending: Ending): Promise<{ NCPU?: number; InitBinary?: string }>
  version(ending: Ending): Promise<DockerVersion>
}

/** The address ranges of one of the engine's networks. */
export async function readNetwork({ docker, limited }: Engine, name: string): Promise<{ Gateway?: string }[]> {
  const network = docker.getNetwork(name) as unknown as {
    inspect(ending: Ending): Promise<{ IPAM?: { Config?: { Gateway?: string }[] | null } }>
  }
  return (await network.inspect(limited())).IPAM?.Config ?? []
}

export function answering({ docker }: Engine): Answering {
  return docker as unknown as Answering
}

/** The variables that name an engine are wrong. */
export class EngineAddressError extends Error {}

/**
 * The engine that the variables of Docker's own tools name: `DOCKER_HOST` (a socket, or tcp), with `DOCKER_CERT_PATH` and
 * `DOCKER_TLS_VERIFY` for TLS; without them the default socket. Nothing is sent yet.
 * @throws {EngineAddressError} when they make no sense.
 */
export function engineOf(env: EngineEnvironment): Engine {
  const address = env['DOCKER_HOST'] ?? ''
  if (address === '' || address.startsWith('unix://')) {
    const socketPath = address.slice('unix://'.length) || '/var/run/docker.sock'
    // A kept connection to an engine that was restarted would fail the next request.
    const docker = connect({ socketPath, agent: new HttpAgent({ keepAlive: false }) })
    return { docker, name: `unix://${socketPath}`, remoteHost: null, limited }
  }
  const url = URL.parse(address)
  if (url === null || !['tcp:', 'http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw new EngineAddressError(`DOCKER_HOST is '${address}': give unix:///path/of/the/socket or tcp://host:2376`)
  }
  const secure = url.protocol === 'https:' || isSet(env['DOCKER_TLS_VERIFY']) || url.port === '2376'
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const docker = connect({
    protocol: secure ? 'https' : 'http',
    host,
    port: url.port || (secure ? '2376' : '2375'),
    ...(secure ? certificates(env['DOCKER_CERT_PATH']) : {}),
    agent: secure ? new HttpsAgent({ keepAlive: false }) : new HttpAgent({ keepAlive: false }),
  })
  return { docker, name: `${secure ? 'https' : 'tcp'}://${url.host}`, remoteHost: isLoopback(host) ? null : host, limited }
}

function connect(options: DockerOptions & { agent: HttpAgent }): Docker {
  return new Docker(options)
}

function limited(signal?: AbortSignal): Ending {
  const limit = AbortSignal.timeout(REQUEST_LIMIT_MS)
  return { abortSignal: signal === undefined ? limit : AbortSignal.any([signal, limit]) }
}

function certificates(folder: string | undefined): { ca?: string; cert?: string; key?: string } {
  if (!isSet(folder)) return {}
  const read = (name: string) => {
    try {
      return readFileSync(path.join(folder, name), 'utf8')
    } catch (error) {
      throw new EngineAddressError(`DOCKER_CERT_PATH is '${folder}', and its ${name} cannot be read: ${(error as Error).message}`)
    }
  }
  return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') }
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== ''
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}

/** Why the engine does not answer; null when it does. */
export async function ping(engine: Engine): Promise<string | null> {
  try {
    await answering(engine).ping({ abortSignal: AbortSignal.timeout(PING_LIMIT_MS) })
    return null
  } catch (error) {
    return isTimeout(error) ? `nothing within ${PING_LIMIT_MS / 1000} s` : reasonOf(error)
  }
}

interface EngineError extends Error {
  readonly statusCode?: number
  readonly code?: string
  readonly json?: { readonly message?: unknown } | null
}

/** The status of the engine's answer; undefined when there was none. */
export function statusOf(error: unknown): number | undefined {
  return (error as EngineError).statusCode
}

/** Whether the engine did not answer at all: it is being restarted, or the way to it is broken. */
export function isAway(error: unknown): boolean {
  const { statusCode, code, message } = error as EngineError
  if (statusCode !== undefined) return statusCode === 502 || statusCode === 503 || statusCode === 504
  if (isTimeout(error)) return true
  return (
    /^(ECONN|EPIPE|ENOENT|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN|ENOTFOUND)/.test(code ?? '') ||
    /socket hang up|aborted/.test(message)
  )
}

function isTimeout(error: unknown): boolean {
  const { name, cause } = error as Error
  return name === 'TimeoutError' || (cause instanceof Error && cause.name === 'TimeoutError')
}

const REASON_MAX = 600

/** What the engine says, in one line without a full stop. */
export function reasonOf(error: unknown): string {
  const { json, message } = error as EngineError
  const said = typeof json?.message === 'string' ? json.message : message
  const line = said
    .replace(/^\(HTTP code \d+\) [^-]*- /, '')
    .replace(/[\s\x00-\x1f\x7f]+/g, ' ')
    .trim()
    .replace(/\.$/, '')
  return line.length > REASON_MAX ? `${line.slice(0, REASON_MAX)}…` : line
}
