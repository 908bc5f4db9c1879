import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import {
  AppsV1Api,
  AuthorizationV1Api,
  CoreV1Api,
  createConfiguration,
  IsomorphicFetchHttpLibrary,
  KubeConfig,
  ServerConfiguration,
} from '@kubernetes/client-node'
import { HttpMethod, RequestContext } from '@kubernetes/client-node/dist/gen/http/http.js'
import { ClusterRefusal } from './cluster-error.ts'
import { createLogin } from './login.ts'
import { type KubernetesEnvironment, KubernetesSettingsError } from './settings.ts'

/** What one request may take that does not stream. Milliseconds. */
const REQUEST_LIMIT_MS = 15_000
/** What a program may take that the kubeconfig names for the credentials (`exec`). Milliseconds. */
const LOGIN_LIMIT_MS = 10_000
/** A refusal is a short text. */
const REFUSAL_MAX = 10_000

/** A cluster's API, by the credentials of this platform. */
export interface Cluster {
  /** Its address, for sentences. */
  readonly name: string
  /** The namespace that the credentials belong to. */
  readonly namespace: string
  readonly core: CoreV1Api
  readonly apps: AppsV1Api
  readonly authorization: AuthorizationV1Api
  /**
   * Opens an answer that goes on (`watch`, a log that is followed). An error of the connection is the stream's.
   * @throws {ClusterRefusal} for an answer other than 200.
   */
  stream(place: string, query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Readable>
}

/**
 * The cluster that `KUBECONFIG` names; else the one that the platform runs in; else the one of `~/.kube/config`. Nothing is sent yet.
 * @throws {KubernetesSettingsError} when there is none, or its configuration cannot be read.
 */
export function openCluster(env: KubernetesEnvironment, { loginLimitMs = LOGIN_LIMIT_MS } = {}): Cluster {
  const config = readConfig(env)
  const login = createLogin(config, loginLimitMs)
  const server = config.getCurrentCluster()?.server
  if (server === undefined) throw new KubernetesSettingsError('the kubeconfig has no current context with a cluster')
  const http = new IsomorphicFetchHttpLibrary()
  const configuration = createConfiguration({
    baseServer: new ServerConfiguration(server, {}),
    authMethods: { default: { getName: () => 'login', applySecurityAuthentication: login } },
    promiseMiddleware: [
      {
        pre: async (context) => {
          context.setSignal(AbortSignal.timeout(REQUEST_LIMIT_MS))
          return context
        },
        post: async (response) => response,
      },
    ],
  })
  return {
    name: server,
    namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? 'default',
    core: new CoreV1Api(configuration),
    apps: new AppsV1Api(configuration),
    authorization: new AuthorizationV1Api(configuration),
    stream: async (place, query, signal) => {
      const url = new URL(server.replace(/\/$/, '') + place)
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
      const context = new RequestContext(url.href, HttpMethod.GET)
      await login(context)
      context.setSignal(signal)
      const response = await http.send(context).toPromise()
      const body = response.body.stream()
      const stream = body === null ? Readable.from([]) : Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0])
      if (response.httpStatusCode === 200) return stream
      throw new ClusterRefusal(response.httpStatusCode, await beginningOf(stream))
    },
  }
}

function readConfig(env: KubernetesEnvironment): KubeConfig {
  const files = (env['KUBECONFIG'] ?? '').split(path.delimiter).filter((file) => file !== '')
  const home = path.join(env['HOME'] ?? homedir(), '.kube', 'config')
  try {
    const config = new KubeConfig()
    if (files.length > 0) readFiles(config, files)
    else if (env['KUBERNETES_SERVICE_HOST']) config.loadFromCluster()
    else if (existsSync(home)) config.loadFromFile(home)
    else throw new Error('there is none: set KUBECONFIG to a file that names the cluster and the credentials')
    // It would have all of our environment, and say what it likes.
    if (config.getCurrentUser()?.authProvider?.config?.['cmd-path']) {
      throw new Error('its user has an auth-provider with a program, as Kubernetes had until 1.25: give it an exec plugin')
    }
    return config
  } catch (error) {
    throw new KubernetesSettingsError(`the kubeconfig cannot be used: ${faultOf(error as Error)}`)
  }
}

/** The parser's own sentence quotes the text around the fault: a token, perhaps. */
function faultOf(error: Error & { mark?: { line?: number } }): string {
  if (error.name === 'YAMLException') return `it is not YAML (line ${(error.mark?.line ?? 0) + 1})`
  return error.message
}

function readFiles(config: KubeConfig, [first = '', ...others]: readonly string[]): void {
  config.loadFromFile(first)
  for (const file of others) {
    const other = new KubeConfig()
    other.loadFromFile(file)
    config.mergeConfig(other, true)
  }
}

async function beginningOf(stream: Readable): Promise<string> {
  let text = ''
  for await (const chunk of stream.setEncoding('utf8')) {
    text += chunk as string
    if (text.length > REFUSAL_MAX) break
  }
  return text
}
