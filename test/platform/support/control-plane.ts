import type { Hono } from 'hono'
import type { Deployment } from '../../../src/contract/deployment.ts'
import type { Dialect } from '../../../src/contract/dialects.ts'
import { controlPlaneRoutes } from '../../../src/platform/control-plane/routes/routes.ts'
import type { Offering } from '../../../src/platform/control-plane/source-rules.ts'
import type { Database } from '../../../src/platform/database/schema.ts'
import type { Log } from '../../../src/platform/log.ts'
import { createSecretBox, type SecretBox } from '../../../src/platform/secrets.ts'
import { askCluster, CLUSTERED, clusterOn } from '../cluster-support/topology.ts'
import { SILENT } from './database.ts'
import { createDescribedApp } from './described-app.ts'

export interface Ask {
  readonly method?: string
  readonly path: string
  readonly key?: string
  readonly headers?: Record<string, string>
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is. */
  readonly raw?: string | Uint8Array<ArrayBuffer>
}

export interface Seen {
  readonly status: number
  readonly headers: Headers
  // What comes back is looked at field by field.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
}

/** The control plane in this process, without a queue: nothing builds, and revisions stay as they were made. */
export interface TestControlPlane {
  readonly app: Hono
  readonly secretBox: SecretBox
  /** Sends a request. Every answer of a described path is checked against the OpenAPI description. */
  ask(request: Ask): Promise<Seen>
  /** A client with a key. */
  as(key: string): (request: Omit<Ask, 'key'>) => Promise<Seen>
}

export function createControlPlane({
  db,
  offering = 'any',
  dialect = 'spec',
  log = SILENT,
}: {
  db: Database
  offering?: Offering
  dialect?: Dialect
  log?: Log
}): TestControlPlane {
  const secretBox = createSecretBox(SECRET_KEY)
  const routes = controlPlaneRoutes({ db, secretBox, offering })
  const { app, description } = createDescribedApp({ db, routes, dialect, log })
  const ask = async ({ method = 'GET', path, key, headers = {}, body, raw }: Ask): Promise<Seen> => {
    const content = raw ?? (body === undefined ? null : JSON.stringify(body))
    const init = {
      method,
      headers: { ...(key === undefined ? {} : { 'X-Api-Key': key }), 'Content-Type': 'application/json', ...headers },
      ...(content === null ? {} : { body: content }),
    }
    const response = CLUSTERED ? await askCluster(await addressOf(db, { offering, dialect }), path, init) : await app.request(path, init)
    const text = await response.text()
    const seen = { status: response.status, headers: response.headers, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
    const pathOnly = new URL(path, 'http://localhost').pathname
    const described = !['/ok', '/ready', '/openapi.json'].includes(pathOnly)
    // A path or a method that there is not has its answer from the application, not from a route.
    if (described && ![405].includes(seen.status) && !isUnknownPath(seen) && !['HEAD', 'OPTIONS'].includes(method)) {
      description.check({ method, path: pathOnly, status: seen.status, contentType: seen.headers.get('Content-Type'), body: seen.body })
    }
    return seen
  }
  return { app, secretBox, ask, as: (key) => (request) => ask({ ...request, key }) }
}

const SECRET_KEY = Buffer.alloc(32, 7)

/** The cluster that answers instead of the application in this process. Its queue processes leave the revisions of these tests alone. */
async function addressOf(db: Database, { offering, dialect }: { offering: Offering; dialect: Dialect }): Promise<string> {
  const { cluster } = await clusterOn(db, {
    secretKey: SECRET_KEY.toString('base64'),
    args: ['--offering', offering, '--dialect', dialect],
    environment: { PLATFORM_PUBLIC_URL: 'http://localhost' },
    settings: { builds: 0, starts: 0 },
    killed: ['api', 'queue'],
  })
  return cluster.url
}

function isUnknownPath({ status, body }: { status: number; body: unknown }): boolean {
  return status === 404 && (body as { detail?: string } | undefined)?.detail === 'Not Found'
}

/** A create request for a git source. */
export function gitDeployment(name: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    name,
    source: 'git_host',
    source_config: { repo_url: 'https://git.example.com/team/agent.git', build_on_push: false },
    source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' },
    secrets: [],
    ...changes,
  }
}

/** A create request for a container image. */
export function imageDeployment(name: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    name,
    source: 'external_docker',
    source_config: {},
    source_revision_config: { image_uri: 'registry.example.com/team/agent:1' },
    secrets: [],
    ...changes,
  }
}

/** Creates a deployment, and fails where that does not work. */
export async function create(ask: (request: Omit<Ask, 'key'>) => Promise<Seen>, body: Record<string, unknown>): Promise<Deployment> {
  const seen = await ask({ method: 'POST', path: '/v2/deployments', body })
  if (seen.status !== 201) throw new Error(`the deployment was not created: ${seen.status} ${JSON.stringify(seen.body)}`)
  return seen.body as Deployment
}
