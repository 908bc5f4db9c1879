import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  DOUBLE_COMMIT, FINAL, FIXED_FIELDS, HAPPY_SCRIPT, invalid, latest, newRevision, NO_SOURCE_CONFIG, now, paging, record, refused,
  REVISION_FIELDS, UUID, withoutNulls, type Answer, type Call, type ControlPlaneDouble, type DoubleDeployment, type DoubleOptions,
  type DoubleRevision, type RecordedRequest, type ScriptProgress, type ScriptStep,
} from './control-plane-model.ts'
import { readBody, startServer } from './http-server.ts'

/**
 * A small stateful double of the control plane, for situations that a real one cannot be brought into on demand. It speaks one
 * dialect strictly: names of the other are refused as unknown fields.
 */

export async function startControlPlaneDouble(options: DoubleOptions = {}): Promise<ControlPlaneDouble> {
  const vendor = options.dialect === 'vendor'
  const gitSource = vendor ? 'github' : 'git_host'
  const pathField = vendor ? 'langgraph_config_path' : 'graph_config_path'
  const prefix = options.prefix ?? ''
  const apiKey = `lsv2_pt_${randomUUID().replaceAll('-', '')}_double`
  const workspaceId: string = randomUUID()
  const workspaces = new Map<string, string>([[apiKey, workspaceId]])
  const deployments: DoubleDeployment[] = []
  const requests: RecordedRequest[] = []
  const progress = new Map<string, ScriptProgress>()
  const scripted: { script: readonly ScriptStep[]; logs: DoubleRevision['logs'] }[] = []
  const without = new Set(options.without ?? [])

  const server = await startServer((request, response) => void handle(request, response).catch(() => response.destroy()))

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://double')
    const method = request.method ?? 'GET'
    const recorded: RecordedRequest = {
      method, path: url.pathname, query: Object.fromEntries(url.searchParams), at: Date.now(), status: 0, body: null,
      headers: Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)])),
    }
    requests.push(recorded)
    const text = (await readBody(request)).toString()
    let answer: Answer
    try {
      recorded.body = text === '' ? null : JSON.parse(text)
      answer = authorise(request) ?? route({ method, path: url.pathname, query: url.searchParams, body: recorded.body,
        tenantId: workspaces.get(String(request.headers['x-api-key'])) ?? '' })
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      answer = invalid(['body'], 'JSON decode error', 'json_invalid')
    }
    recorded.status = answer.status
    const body = options.rewrite === undefined || answer.body === undefined
      ? answer.body
      : options.rewrite(answer.body, { method, path: url.pathname })
    const payload = body === undefined ? '' : JSON.stringify(body)
    response.writeHead(answer.status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) })
    response.end(payload)
  }

  function authorise(request: IncomingMessage): Answer | undefined {
    const key = request.headers['x-api-key']
    const owner = typeof key === 'string' ? workspaces.get(key) : undefined
    if (owner === undefined) return refused(401, 'Invalid token')
    const tenant = request.headers['x-tenant-id']
    if (tenant !== undefined && tenant !== owner) return refused(403, 'Forbidden: no access to this workspace')
    return undefined
  }

  function route(call: Call): Answer {
    if (!call.path.startsWith(`${prefix}/v2/deployments`)) return refused(404, 'Not Found')
    const [id, collection, revisionId, verb, ...rest] = call.path.slice(`${prefix}/v2/deployments`.length).split('/').slice(1)
    const { method } = call
    if (rest.length > 0) return refused(404, 'Not Found')
    if (id === undefined || id === '') {
      if (method === 'POST') return create(call)
      if (method === 'GET' && !without.has('list')) return list(call)
      return refused(405, 'Method Not Allowed')
    }
    if (!UUID.test(id)) return invalid(['path', 'deployment_id'], 'Input should be a valid UUID', 'uuid_parsing')
    const deployment = deployments.find((candidate) => candidate.id === id && candidate.tenantId === call.tenantId)
    if (deployment === undefined) return refused(404, `Deployment ID ${id} not found.`)
    if (collection === undefined) {
      if (method === 'GET') return { status: 200, body: deploymentBody(deployment) }
      if (method === 'PATCH') return patch(deployment, call)
      if (method === 'DELETE' && !without.has('delete')) return remove(deployment)
      return refused(405, 'Method Not Allowed')
    }
    if (collection !== 'revisions') return refused(404, 'Not Found')
    if (revisionId === undefined) return method === 'GET' ? listRevisions(deployment, call) : refused(405, 'Method Not Allowed')
    if (!UUID.test(revisionId)) return invalid(['path', 'revision_id'], 'Input should be a valid UUID', 'uuid_parsing')
    const revision = deployment.revisions.find((candidate) => candidate.id === revisionId)
    if (revision === undefined) return refused(404, `Revision ID ${revisionId} not found.`)
    if (verb === undefined && method === 'GET') {
      advance(deployment, revision, true)
      return { status: 200, body: revisionBody(deployment, revision) }
    }
    if (verb === 'logs' && method === 'GET' && !without.has('logs')) return readLogs(revision, call)
    if (verb === 'interruption' && method === 'POST' && !without.has('interruption')) {
      if (!FINAL.has(revision.status)) setStatus(revision, 'INTERRUPTED')
      return { status: 202, body: revisionBody(deployment, revision) }
    }
    if (verb === 'redeploy' && method === 'POST' && !without.has('redeploy')) {
      if (revision.status !== 'DEPLOYED') return refused(400, `Revision ID ${revision.id} is ${revision.status}.`)
      startRevision(deployment, { ...revision.config })
      return { status: 200, body: deploymentBody(deployment) }
    }
    return refused(404, 'Not Found')
  }

  function create({ body, tenantId }: Call): Answer {
    const fields = record(body)
    const needed = ['name', 'source', 'source_config', 'source_revision_config', 'secrets']
    const refusal = checkFields(fields, [...needed, 'secret_references']) ?? checkConfig(fields)
    if (refusal !== undefined) return refusal
    for (const name of needed) {
      if (fields[name] === undefined) return invalid(['body', name], 'Field required', 'missing')
    }
    if (fields['source'] !== gitSource && fields['source'] !== 'external_docker') {
      return invalid(['body', 'source'], `Input should be '${gitSource}' or 'external_docker'`, 'enum')
    }
    const name = String(fields['name'])
    if (deployments.some((deployment) => deployment.name === name && deployment.tenantId === tenantId)) {
      const detail = 'Deployments create a tracing project in LangSmith with the same name as the deployment. '
        + `There already exists a project in LangSmith named: ${name}.`
      return refused(409, detail)
    }
    const deployment: DoubleDeployment = {
      id: randomUUID(), tenantId, name, source: String(fields['source']),
      sourceConfig: { ...NO_SOURCE_CONFIG, ...record(fields['source_config']) },
      secrets: fields['secrets'] as DoubleDeployment['secrets'],
      activeRevisionId: null, createdAt: now(), revisions: [],
    }
    deployments.push(deployment)
    startRevision(deployment, record(fields['source_revision_config']))
    return { status: 201, body: deploymentBody(deployment) }
  }

  function patch(deployment: DoubleDeployment, { body }: Call): Answer {
    const fields = record(body)
    const allowed = ['source_config', 'source_revision_config', 'secrets', 'secret_references', 'revision_source', 'display_name']
    const refusal = checkFields(fields, allowed) ?? checkConfig(fields)
    if (refusal !== undefined) return refusal
    const sourceConfig = withoutNulls(record(fields['source_config']))
    const config = withoutNulls(record(fields['source_revision_config']))
    for (const name of FIXED_FIELDS) {
      const loc = ['body', 'source_config', name]
      if (name in sourceConfig) return invalid(loc, 'Field cannot be changed after creation', 'value_error')
    }
    const ref = config['repo_ref'] ?? latest(deployment).config['repo_ref']
    const buildOnPush = sourceConfig['build_on_push'] ?? deployment.sourceConfig['build_on_push']
    if (buildOnPush === true && String(ref).startsWith('refs/tags/')) {
      return refused(400, "'source_config.build_on_push' must be false when 'repo_ref' is a tag")
    }
    Object.assign(deployment.sourceConfig, sourceConfig)
    const secrets = Array.isArray(fields['secrets']) ? (fields['secrets'] as DoubleDeployment['secrets']) : []
    if (secrets.length > 0) deployment.secrets = secrets
    const makesRevision = REVISION_FIELDS.some((name) => name in config) || secrets.length > 0 || 'resource_spec' in sourceConfig
    if (makesRevision) {
      const { repo_commit_sha: _, ...previous } = latest(deployment).config
      startRevision(deployment, { ...previous, ...config })
    }
    return { status: 200, body: deploymentBody(deployment) }
  }

  function checkConfig(fields: Record<string, unknown>): Answer | undefined {
    const known = new Set(['repo_ref', pathField, 'image_uri', 'source_tarball_path'])
    const unknown = Object.keys(record(fields['source_revision_config'])).find((name) => !known.has(name))
    if (unknown !== undefined) {
      return invalid(['body', 'source_revision_config', unknown], 'Extra inputs are not permitted', 'extra_forbidden')
    }
    const odd = Object.keys(record(fields['source_config'])).find((name) => !(name in NO_SOURCE_CONFIG))
    if (odd === undefined) return undefined
    return invalid(['body', 'source_config', odd], 'Extra inputs are not permitted', 'extra_forbidden')
  }

  function list({ query, tenantId }: Call): Answer {
    const page = paging(query)
    if ('status' in page) return page
    const part = query.get('name_contains') ?? ''
    const matching = deployments.filter((deployment) => deployment.tenantId === tenantId && deployment.name.includes(part))
    const first = options.pages === undefined ? page.offset : 0
    const resources = matching.slice(first, first + page.limit)
    const offset = (options.pages === 'stuck' ? 0 : page.offset) + resources.length
    return { status: 200, body: { resources: resources.map(deploymentBody), offset } }
  }

  function listRevisions(deployment: DoubleDeployment, { query }: Call): Answer {
    const page = paging(query)
    if ('status' in page) return page
    const statuses = query.get('status')?.split(',')
    for (const revision of deployment.revisions) advance(deployment, revision, false)
    const newestFirst = deployment.revisions.toReversed().filter((revision) => statuses?.includes(revision.status) ?? true)
    const resources = newestFirst.slice(page.offset, page.offset + page.limit)
    const bodies = resources.map((revision) => revisionBody(deployment, revision))
    return { status: 200, body: { resources: bodies, offset: page.offset + bodies.length } }
  }

  function remove(deployment: DoubleDeployment): Answer {
    deployments.splice(deployments.indexOf(deployment), 1)
    return { status: 204 }
  }

  function startRevision(deployment: DoubleDeployment, config: Record<string, unknown>): DoubleRevision {
    const next = scripted.shift()
    const script = next?.script ?? options.script ?? HAPPY_SCRIPT
    const first = script[0] ?? ['UNKNOWN']
    const revision = newRevision(deployment, first[0], config)
    revision.statusMessage = first[1]?.message ?? null
    if (next !== undefined) revision.logs = next.logs
    if (isDeployed(first[0])) deployment.activeRevisionId = revision.id
    progress.set(revision.id, { script, index: 0, polls: 0, since: Date.now() })
    return revision
  }

  /** Takes the steps of the revision's script that are due. Only a read of the revision itself counts as a poll. */
  function advance(deployment: DoubleDeployment, revision: DoubleRevision, polled: boolean): void {
    const state = progress.get(revision.id)
    if (state === undefined) return
    if (polled) state.polls += 1
    for (let step = state.script[state.index + 1]; step !== undefined; step = state.script[state.index + 1]) {
      const { polls, ms, message } = step[1] ?? {}
      const due = ms === undefined ? state.polls >= (polls ?? 1) : Date.now() - state.since >= ms
      if (!due) return
      Object.assign(state, { index: state.index + 1, polls: 0, since: Date.now() })
      setStatus(revision, step[0], message)
      if (isDeployed(step[0])) deployment.activeRevisionId = revision.id
      // One step a poll, so that a reader sees each of them.
      if (ms === undefined && polls !== 0) return
    }
  }

  /** As some control planes write it too. */
  function isDeployed(status: string): boolean {
    return status.toUpperCase() === 'DEPLOYED'
  }

  function setStatus(revision: DoubleRevision, status: string, message?: string): void {
    revision.status = status
    revision.statusMessage = message ?? null
    revision.updatedAt = now()
    if (FINAL.has(status)) progress.delete(revision.id)
    const built = ['BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED'].includes(status)
    if (built && typeof revision.config['repo_ref'] === 'string') revision.config['repo_commit_sha'] ??= DOUBLE_COMMIT
  }

  function deploymentBody(deployment: DoubleDeployment) {
    const address = `${server.url}/agents/${deployment.name}`
    const kind = options.address ?? 'url'
    return {
      id: deployment.id, tenant_id: deployment.tenantId, name: deployment.name, display_name: null, source: deployment.source,
      status: deployment.activeRevisionId === null ? 'AWAITING_DATABASE' : 'READY',
      source_config: { ...deployment.sourceConfig, custom_url: kind === 'custom_url' ? address : null },
      source_revision_config: configBody(latest(deployment).config),
      secrets: options.echoSecrets === true ? deployment.secrets : deployment.secrets.map(({ name }) => ({ name, value: '' })),
      secret_references: null, latest_revision_id: latest(deployment).id, active_revision_id: deployment.activeRevisionId,
      url: kind === 'url' ? address : null, image_version: null, created_at: deployment.createdAt,
      updated_at: latest(deployment).updatedAt,
    }
  }

  function revisionBody(deployment: DoubleDeployment, revision: DoubleRevision) {
    return { id: revision.id, created_at: revision.createdAt, updated_at: revision.updatedAt, status: revision.status,
      status_message: revision.statusMessage, source: deployment.source, source_revision_config: configBody(revision.config) }
  }

  function configBody(config: Record<string, unknown>) {
    return { repo_ref: null, [pathField]: null, image_uri: null, repo_commit_sha: null, ...config }
  }

  return {
    url: `${server.url}${prefix}`, apiKey, workspaceId, requests, deployments,
    requestsOf: (method, path) => requests.filter((request) => request.method === method && (path?.test(request.path) ?? true)),
    addWorkspace: (key, id) => void workspaces.set(key, id),
    addDeployment: ({ config, ...fields }) => {
      const deployment: DoubleDeployment = {
        id: randomUUID(), tenantId: workspaceId, source: gitSource, secrets: [], activeRevisionId: null, createdAt: now(),
        revisions: [], ...fields, sourceConfig: { ...NO_SOURCE_CONFIG, ...fields.sourceConfig },
      }
      deployments.push(deployment)
      if (deployment.revisions.length === 0) deployment.activeRevisionId = newRevision(deployment, 'DEPLOYED', { ...config }).id
      return deployment
    },
    addRevision: (deployment, status, config) => {
      const revision = newRevision(deployment, status, { ...latest(deployment).config, ...config })
      if (status === 'DEPLOYED') deployment.activeRevisionId = revision.id
      return revision
    },
    setStatus,
    removeDeployment: (id) => void deployments.splice(deployments.findIndex((deployment) => deployment.id === id), 1),
    scriptNext: (script, logs) => void scripted.push({ script, logs: { build: logs?.build ?? [], deploy: logs?.deploy ?? [] } }),
    down: server.down, up: server.up, stop: server.stop,
  }
}

function checkFields(fields: Record<string, unknown>, allowed: readonly string[]): Answer | undefined {
  const unknown = Object.keys(fields).find((name) => !allowed.includes(name))
  return unknown === undefined ? undefined : invalid(['body', unknown], 'Extra inputs are not permitted', 'extra_forbidden')
}

function readLogs(revision: DoubleRevision, { query }: Call): Answer {
  const type = query.get('type')
  if (type !== 'build' && type !== 'deploy') return invalid(['query', 'type'], "Input should be 'build' or 'deploy'", 'enum')
  const limit = Number(query.get('limit') ?? 50)
  if (!(limit >= 1 && limit <= 1000)) {
    return invalid(['query', 'limit'], 'Input should be less than or equal to 1000', 'less_than_equal')
  }
  const defaults = { timestamp: revision.createdAt, level: 'INFO' }
  const stored = revision.logs[type].map((entry, index) => ({ ...defaults, id: `${type}-${index}`, ...entry }))
  const ordered = query.get('order') === 'desc' ? stored.toReversed() : stored
  const offset = Number(query.get('offset') ?? 0)
  const end = offset + limit
  return { status: 200, body: { logs: ordered.slice(offset, end), next_offset: end < ordered.length ? String(end) : null } }
}
