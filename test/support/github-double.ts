import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Call, describe } from './github-double/description.ts'
import { type Answer, refusal, refused, ROUTES } from './github-double/routes.ts'
import {
  type Account,
  ACTIONS_BOT,
  ALL_PERMISSIONS,
  type GithubState,
  type Level,
  type PermissionName,
  type PullRequestState,
} from './github-double/state.ts'
import { HTML_PAGE } from './fault-server.ts'
import { readBody, startServer } from './http-server.ts'
import { GITHUB_TOKEN } from './runner/job-environment.ts'

/**
 * A stateful double of GitHub's API for one repository. Every request that it gets and every answer that it gives is compared with
 * GitHub's own OpenAPI description; what does not conform is a violation, and `stop` fails.
 */

export { ACTIONS_BOT, stateOf } from './github-double/state.ts'

/** What goes wrong with one request. Answers with a status are GitHub's own; the rest comes from the network. */
export type GithubFault =
  | { kind: 'answer'; status: number; message: string; headers?: Record<string, string> }
  /** A page in place of GitHub's answer. */
  | { kind: 'html'; status: number }
  | { kind: 'reset'; when: 'before' | 'after' }
  /** The headers and the beginning of the answer, then silence. */
  | { kind: 'stall' }
  | { kind: 'silence' }
  | { kind: 'delay'; ms: number }

export const githubFaults = {
  refused: (accepted?: string): GithubFault => ({
    kind: 'answer',
    status: 403,
    message: 'Resource not accessible by integration',
    headers: accepted === undefined ? {} : { 'x-accepted-github-permissions': accepted },
  }),
  notFound: { kind: 'answer', status: 404, message: 'Not Found' } as GithubFault,
  badCredentials: { kind: 'answer', status: 401, message: 'Bad credentials' } as GithubFault,
  /** `retryAfter`: seconds; absent: GitHub does not say how long. */
  secondaryLimit: (retryAfter?: number): GithubFault => ({
    kind: 'answer',
    status: 403,
    message: 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
    headers: retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) },
  }),
  /** `resetAt`: epoch milliseconds. */
  primaryLimit: (resetAt: number): GithubFault => ({
    kind: 'answer',
    status: 403,
    message: 'API rate limit exceeded for installation.',
    headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(Math.ceil(resetAt / 1000)) },
  }),
  tooMany: (retryAfter: number): GithubFault => ({
    kind: 'answer',
    status: 429,
    message: 'Too Many Requests',
    headers: { 'retry-after': String(retryAfter) },
  }),
  badGateway: { kind: 'answer', status: 502, message: 'Server Error' } as GithubFault,
}

export type GithubRule = { method?: string; path?: RegExp; times?: number }

export type GithubRequestSeen = {
  method: string
  /** Without the prefix. */
  path: string
  query: Record<string, string>
  body: unknown
  headers: Record<string, string>
  /** As GitHub's description calls it: `repos/create-deployment`. */
  operation: string
  status: number
  at: number
}

export type GithubDoubleOptions = {
  /** `/api/v3` for a GitHub Enterprise Server. */
  prefix?: string
  repository?: string
  /** The runner double's `github.token`, unless another one is named. */
  token?: string
  /** Whose token it is. */
  account?: Account
  /** What the token may not, or more than it usually may. */
  permissions?: Partial<Record<PermissionName, Level>>
}

export type GithubDouble = {
  /** For GITHUB_API_URL. */
  url: string
  /** What a step needs to find it: its `env`. */
  env: Record<string, string>
  state: GithubState
  requests: GithubRequestSeen[]
  /** Requests of an operation, `repos/create-deployment`. */
  requestsOf: (operation: string) => GithubRequestSeen[]
  on: (rule: GithubRule, fault: GithubFault) => void
  /** Changes what the token may, from now on. */
  permit: (permissions: Partial<Record<PermissionName, Level>>) => void
  addPullRequest: (pull: Partial<PullRequestState> & { number: number }) => PullRequestState
  addComment: (comment: { pullRequest: number; author: Account; body: string }) => number
  /** A tag of a commit; `annotated`: with an object of its own in between. */
  addTag: (name: string, commit: string, options?: { annotated?: boolean }) => void
  violations: string[]
  /** Also fails when there were violations. */
  stop: () => Promise<void>
}

const VIEWER_QUERY = 'query { viewer { login } }'

export async function startGithubDouble(options: GithubDoubleOptions = {}): Promise<GithubDouble> {
  const { prefix = '', repository = 'acme/agents', token = GITHUB_TOKEN, account = ACTIONS_BOT } = options
  const holder = { account, permissions: { ...ALL_PERMISSIONS, ...options.permissions } }
  const state: GithubState = {
    repository,
    tokens: new Map([[token, holder]]),
    pullRequests: new Map(),
    comments: [],
    deployments: [],
    tags: new Map(),
    tagObjects: new Map(),
    branches: new Map([['main', '7fd1a60b01f91b314f59955a4e4d4e80d8edf11d']]),
  }
  const requests: GithubRequestSeen[] = []
  const violations: string[] = []
  const queue: { rule: GithubRule; fault: GithubFault; left: number }[] = []
  let ids = 1000

  const server = await startServer((request, response) => {
    void handle(request, response).catch((error: unknown) => {
      if (!response.destroyed) violations.push(`the double failed: ${String(error)}`)
      response.destroy()
    })
  })
  const api = `${server.url}${prefix}`

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', server.url)
    const method = request.method ?? 'GET'
    const graphql = url.pathname === (prefix === '' ? '/graphql' : '/api/graphql')
    if (!graphql && !url.pathname.startsWith(`${prefix}/`)) {
      violations.push(`${method} ${url.pathname} is not below ${prefix}`)
      return send(response, refused(404, 'Not Found'))
    }
    const path = graphql ? '/graphql' : url.pathname.slice(prefix.length)
    const text = (await readBody(request)).toString()
    const call: Call = { method, path, query: url.searchParams, body: text === '' ? null : JSON.parse(text) }
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    const described = graphql ? undefined : describe(method, path)
    const seen: GithubRequestSeen = {
      method,
      path,
      headers,
      body: call.body,
      status: 0,
      at: Date.now(),
      query: Object.fromEntries(url.searchParams),
      operation: graphql ? 'graphql' : (described?.operationId ?? ''),
    }
    requests.push(seen)
    const fault = nextFault(method, path)
    if (fault?.kind === 'silence') return
    if (fault?.kind === 'reset' && fault.when === 'before') return void request.socket.resetAndDestroy()
    if (fault?.kind === 'html') return send(response, { status: fault.status, body: HTML_PAGE })
    if (fault?.kind === 'delay') await new Promise((resolve) => setTimeout(resolve, fault.ms))
    const answer = fault?.kind === 'answer' ? refused(fault.status, fault.message, fault.headers) : carryOut(call, headers)
    seen.status = answer.status
    const flaws = described?.flawsOfAnswer({ status: answer.status, body: answer.body }) ?? []
    violations.push(...flaws.map((flaw) => `the answer ${answer.status} to ${method} ${path}: ${flaw}`))
    if (fault?.kind === 'reset') return void request.socket.resetAndDestroy()
    send(response, answer, fault?.kind === 'stall')
  }

  function carryOut(call: Call, headers: Record<string, string>): Answer {
    const { method, path } = call
    if (headers['user-agent'] === undefined) violations.push(`${method} ${path} has no User-Agent, which GitHub requires`)
    const [, given = ''] = /^(?:token|bearer) (.+)$/i.exec(headers['authorization'] ?? '') ?? []
    const known = state.tokens.get(given)
    if (known === undefined) return refused(401, 'Bad credentials')
    if (path === '/graphql') return viewer(call, known.account)
    const described = describe(method, path)
    const route = described === undefined ? undefined : ROUTES[described.operationId]
    if (described === undefined || route === undefined) {
      violations.push(
        `${method} ${path} is ${described === undefined ? 'no operation of GitHub' : 'an operation that the double has not'}`,
      )
      return refused(404, 'Not Found')
    }
    const flaws = described.flawsOfRequest(call)
    violations.push(...flaws.map((flaw) => `${method} ${path}: ${flaw}`))
    const where = `${described.values['owner'] ?? ''}/${described.values['repo'] ?? ''}`
    if (where !== repository) return refused(404, 'Not Found')
    return (
      refusal(route, known) ?? route.run({ ...call, values: described.values, state, holder: known, api, nextId: () => ++ids })
    )
  }

  /** The one request that GitHub's REST description does not have. */
  function viewer({ method, body }: Call, { login }: Account): Answer {
    const query = (body as Record<string, unknown> | null)?.['query']
    if (method !== 'POST' || query !== VIEWER_QUERY) violations.push(`the double has no answer to the query ${String(query)}`)
    return { status: 200, body: { data: { viewer: { login } } } }
  }

  function nextFault(method: string, path: string): GithubFault | null {
    const fits = (rule: GithubRule): boolean => (rule.method ?? method) === method && (rule.path?.test(path) ?? true)
    const entry = queue.find(({ rule, left }) => left > 0 && fits(rule))
    if (entry === undefined) return null
    entry.left--
    return entry.fault
  }

  return {
    url: api,
    env: { GITHUB_API_URL: api },
    state,
    requests,
    requestsOf: (operation) => requests.filter((request) => request.operation === operation),
    on: (rule, fault) => void queue.push({ rule, fault, left: rule.times ?? 1 }),
    permit: (permissions) => void Object.assign(holder.permissions, permissions),
    addPullRequest: (pull) => {
      const full: PullRequestState = {
        state: 'open',
        title: `Pull request ${pull.number}`,
        headRef: 'feature/new-prompt',
        headSha: '9c2f6f1bd1a1d5e2f3a4b5c6d7e8f90112233445',
        headRepository: repository,
        ...pull,
      }
      state.pullRequests.set(pull.number, full)
      return full
    },
    addComment: (comment) => {
      const id = ++ids
      state.comments.push({ ...comment, id, createdAt: Date.now(), edits: 0 })
      return id
    },
    addTag: (name, commit, { annotated = false } = {}) => {
      const object = createHash('sha1').update(`tag ${name} ${commit}`).digest('hex')
      if (annotated) state.tagObjects.set(object, { type: 'commit', sha: commit, tag: name })
      state.tags.set(name, annotated ? { type: 'tag', sha: object } : { type: 'commit', sha: commit })
    },
    violations,
    stop: async () => {
      await server.stop()
      if (violations.length > 0) throw new Error(`GitHub's description is violated:\n${violations.join('\n')}`)
    },
  }
}

function send(response: ServerResponse, { status, body, headers = {} }: Answer, stall = false): void {
  const html = typeof body === 'string'
  const text = body === undefined ? '' : html ? body : JSON.stringify(body)
  const common = { 'x-github-request-id': 'C0DE:1234:5678', 'x-ratelimit-remaining': '4999', ...headers }
  const type = body === undefined ? {} : { 'content-type': html ? 'text/html' : 'application/json; charset=utf-8' }
  response.writeHead(status, { ...common, ...type, ...(status === 204 ? {} : { 'content-length': Buffer.byteLength(text) }) })
  if (!stall) return void response.end(text)
  response.write(text.slice(0, Math.floor(text.length / 2)))
}
