import { randomUUID } from 'node:crypto'

/** The state and the words of the control-plane double. */

/** One status of a script, reached after so many reads of the revision, or so many milliseconds, in the one before. */
export type ScriptStep = readonly [status: string, after?: { polls?: number; ms?: number; message?: string }]

export const HAPPY_SCRIPT: readonly ScriptStep[] = [
  ['CREATING'], ['QUEUED'], ['AWAITING_BUILD'], ['BUILDING'], ['AWAITING_DEPLOY'], ['DEPLOYING'], ['DEPLOYED'],
]

export type LogRecord = { id?: string; timestamp?: string | number; level?: string; message: string }

export type DoubleRevision = {
  id: string
  deploymentId: string
  status: string
  statusMessage: string | null
  createdAt: string
  updatedAt: string
  config: Record<string, unknown>
  logs: { build: LogRecord[]; deploy: LogRecord[] }
}

export type DoubleDeployment = {
  id: string
  tenantId: string
  name: string
  source: string
  sourceConfig: Record<string, unknown>
  secrets: { name: string; value: string }[]
  activeRevisionId: string | null
  createdAt: string
  /** Newest last. */
  revisions: DoubleRevision[]
}

export type RecordedRequest = {
  method: string
  path: string
  query: Record<string, string>
  headers: Record<string, string>
  /** Parsed JSON; null when there was none. */
  body: unknown
  at: number
  status: number
}

export type DoubleOptions = {
  dialect?: 'spec' | 'vendor'
  /** Path in front of every route, `/api-host` for instance. */
  prefix?: string
  /** Routes that the hosted service has and the specification has not. Default: all there but `createRevision`. */
  without?: readonly ('logs' | 'interruption' | 'delete' | 'list' | 'redeploy')[]
  /** What a new revision goes through, unless `scriptNext` says otherwise. */
  script?: readonly ScriptStep[]
  /** Answers the values of secrets, as older services do. */
  echoSecrets?: boolean
  /** Where the address is answered: the top-level `url`, or only `source_config.custom_url`, or nowhere. */
  address?: 'url' | 'custom_url' | 'none'
  /** The list of deployments repeats its first page for ever: with the same `offset` each time, or with a growing one. */
  pages?: 'stuck' | 'endless'
  /** Changes each JSON body before it goes out. */
  rewrite?: (body: unknown, request: { method: string; path: string }) => unknown
}

export type ControlPlaneDouble = {
  url: string
  apiKey: string
  workspaceId: string
  requests: RecordedRequest[]
  /** Requests of a method whose path matches. */
  requestsOf: (method: string, path?: RegExp) => RecordedRequest[]
  deployments: DoubleDeployment[]
  addWorkspace: (key: string, workspaceId: string) => void
  /** A deployment that was there before, with one DEPLOYED revision; fields by choice. */
  addDeployment: (fields: Partial<DoubleDeployment> & { name: string; config?: Record<string, unknown> }) => DoubleDeployment
  /** Another client's new revision. */
  addRevision: (deployment: DoubleDeployment, status: string, config?: Record<string, unknown>) => DoubleRevision
  setStatus: (revision: DoubleRevision, status: string, message?: string) => void
  removeDeployment: (id: string) => void
  /** The script of the next revision that a request makes. */
  scriptNext: (script: readonly ScriptStep[], logs?: { build?: LogRecord[]; deploy?: LogRecord[] }) => void
  down: () => Promise<void>
  up: () => Promise<void>
  stop: () => Promise<void>
}

export type ScriptProgress = { script: readonly ScriptStep[]; index: number; polls: number; since: number }
export type Answer = { status: number; body?: unknown }
export type Call = { method: string; path: string; query: URLSearchParams; body: unknown; tenantId: string }

/** The commit that every built revision claims. */
export const DOUBLE_COMMIT = 'c0ffee0000000000000000000000000000000000'

export const FINAL = new Set(['DEPLOYED', 'CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED', 'SKIPPED', 'INTERRUPTED'])
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
export const FIXED_FIELDS = ['integration_id', 'repo_url', 'deployment_type', 'listener_id', 'listener_config']
export const REVISION_FIELDS = ['repo_ref', 'graph_config_path', 'langgraph_config_path', 'image_uri']
export const NO_SOURCE_CONFIG: Readonly<Record<string, unknown>> = {
  integration_id: null, repo_url: null, deployment_type: null, build_on_push: null, custom_url: null,
  resource_spec: null, listener_id: null, listener_config: null, install_command: null, build_command: null,
}

/** Newest revision; a deployment always has one. */
export function latest(deployment: DoubleDeployment): DoubleRevision {
  const revision = deployment.revisions.at(-1)
  if (revision === undefined) throw new Error(`deployment '${deployment.name}' has no revision`)
  return revision
}

export function paging(query: URLSearchParams): { limit: number; offset: number } | Answer {
  const limit = Number(query.get('limit') ?? 20)
  const offset = Number(query.get('offset') ?? 0)
  if (!(limit >= 1 && limit <= 100)) {
    return invalid(['query', 'limit'], 'Input should be less than or equal to 100', 'less_than_equal')
  }
  if (!(offset >= 0)) return invalid(['query', 'offset'], 'Input should be greater than or equal to 0', 'greater_than_equal')
  return { limit, offset }
}

/** Adds a revision to a deployment as its newest. */
export function newRevision(deployment: DoubleDeployment, status: string, config: Record<string, unknown>): DoubleRevision {
  const revision: DoubleRevision = {
    id: randomUUID(), deploymentId: deployment.id, status, statusMessage: null, createdAt: now(), updatedAt: now(), config,
    logs: { build: [], deploy: [] },
  }
  deployment.revisions.push(revision)
  return revision
}

export function refused(status: number, detail: string): Answer {
  return { status, body: { detail } }
}

export function invalid(loc: (string | number)[], msg: string, type: string): Answer {
  return { status: 422, body: { detail: [{ loc, msg, type }] } }
}

export function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

export function withoutNulls(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined))
}

export function now(): string {
  return new Date().toISOString()
}
