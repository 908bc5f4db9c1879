/**
 * The request rate limits of the main API (specification 8.3) as data: one line a row of the table. They do not apply to the control plane
 * (8.1: not shown) nor to the agents' own traffic.
 *
 * The matching rule: the rows are tried from top to bottom, and the first that fits the request's method and path AND whose identity the
 * request carries is the one that counts it. One request counts against one row. The rows of a path stand before the two "any request"
 * rows, and those before the catch-all; a longer path stands before a shorter one that it contains.
 */

/** Who a row counts: the key, the user together with the client's IP address, or the address alone (specification 5.4). */
export type RateLimitIdentity = 'key' | 'user' | 'ip'

/** `count` requests in any `seconds` seconds. */
export interface RateLimit {
  readonly count: number
  readonly seconds: number
}

/**
 * A method and a path. Without a method: every method; without a path: every path. A plain path is that path; with `**` behind it also all
 * below, with `**` on both sides every path that contains it, with `**` before it every path that ends so. `{uuid}` is one segment that is
 * a UUID. A leading `/api/v1` or `/api/v2` of the request's path is passed over.
 */
export interface RateLimitMatch {
  readonly method?: string
  readonly path?: string
}

export interface RateLimitRule {
  /** Names the row in answers: `RateLimit: "<id>";r=…`. */
  readonly id: string
  /** A request that fits any of these; they share the row's one count. */
  readonly match: readonly RateLimitMatch[]
  readonly identity: RateLimitIdentity
  readonly us: RateLimit
  readonly eu: RateLimit
  readonly category: string
}

const of = (count: number, seconds: number) => ({ us: { count, seconds }, eu: { count, seconds } })
const byRegion = (us: [number, number], eu: [number, number]) => ({
  us: { count: us[0], seconds: us[1] },
  eu: { count: eu[0], seconds: eu[1] },
})

const ON_ADDRESS = [{ method: 'OPTIONS' }, { path: '/info' }, { path: '**/v1/metadata/submit' }]

export const RATE_LIMIT_RULES: readonly RateLimitRule[] = [
  { id: 'on-address', match: ON_ADDRESS, identity: 'ip', ...of(2000, 10), category: 'High throughput' },
  { id: 'auth-key', match: [{ path: '/auth/**' }], identity: 'key', ...of(2000, 10), category: 'High throughput' },
  { id: 'auth-user', match: [{ path: '/auth/**' }], identity: 'user', ...of(2000, 10), category: 'High throughput' },
  { id: 'beacon', match: [{ path: '/v1/beacon/**' }], identity: 'ip', ...of(2000, 10), category: 'High throughput' },
  { id: 'repos-key', match: [{ path: '/repos/**' }], identity: 'key', ...of(100, 60), category: 'Repository' },
  { id: 'repos-user', match: [{ path: '/repos/**' }], identity: 'user', ...of(100, 60), category: 'Repository' },
  { id: 'runs-batch', match: [{ method: 'POST', path: '/runs/batch' }], identity: 'key', ...of(2000, 10), category: 'High throughput' },
  { id: 'otel-traces', match: [{ method: 'POST', path: '/otel/v1/traces' }], identity: 'key', ...of(2000, 10), category: 'Run ingest' },
  { id: 'charts-key', match: [{ method: 'POST', path: '**/charts**' }], identity: 'key', ...of(750, 600), category: 'Charts' },
  { id: 'charts-user', match: [{ method: 'POST', path: '**/charts**' }], identity: 'user', ...of(750, 600), category: 'Charts' },
  { id: 'runs-multipart', match: [{ method: 'POST', path: '/runs/multipart' }], identity: 'key', ...of(6000, 10), category: 'Multipart ingest' },
  { id: 'runs-query-key', match: [{ method: 'POST', path: '/runs/query' }], identity: 'key', ...of(15, 10), category: 'Run query (API)' },
  { id: 'runs-query-user', match: [{ method: 'POST', path: '/runs/query' }], identity: 'user', ...of(300, 10), category: 'Run query (User)' },
  { id: 'runs-stats', match: [{ path: '/runs/stats' }], identity: 'key', ...byRegion([1, 10], [20, 10]), category: 'Stats' },
  { id: 'generate-key', match: [{ path: '/generate/**' }], identity: 'key', ...of(30, 3600), category: 'Generation' },
  { id: 'generate-user', match: [{ path: '/generate/**' }], identity: 'user', ...of(30, 3600), category: 'Generation' },
  { id: 'commits-key', match: [{ path: '/commits/**' }], identity: 'key', ...byRegion([10_000, 60], [2000, 60]), category: 'Commits' },
  { id: 'commits-user', match: [{ path: '/commits/**' }], identity: 'user', ...byRegion([10_000, 60], [2000, 60]), category: 'Commits' },
  { id: 'deletion-key', match: [{ method: 'DELETE', path: '/sessions/**' }, { path: '**/trigger' }], identity: 'key', ...of(10, 60), category: 'Deletion' },
  { id: 'deletion-user', match: [{ method: 'DELETE', path: '/sessions/**' }, { path: '**/trigger' }], identity: 'user', ...of(30, 60), category: 'Deletion' },
  { id: 'runs-post', match: [{ method: 'POST', path: '/runs' }], identity: 'key', ...of(2000, 10), category: 'Run ingest' },
  { id: 'runs-patch', match: [{ method: 'PATCH', path: '**/runs**' }], identity: 'key', ...of(2000, 10), category: 'Run ingest' },
  { id: 'feedback', match: [{ method: 'POST', path: '/feedback' }], identity: 'key', ...of(2000, 10), category: 'High throughput' },
  { id: 'run-lookup', match: [{ method: 'GET', path: '/runs/{uuid}' }], identity: 'key', ...of(30, 60), category: 'Run lookup' },
  { id: 'examples', match: [{ method: 'GET', path: '**/examples**' }], identity: 'key', ...of(5000, 60), category: 'Examples' },
  { id: 'public-download', match: [{ path: '/public/download/**' }], identity: 'ip', ...of(5000, 60), category: 'Public download' },
  { id: 'default-key', match: [{}], identity: 'key', ...of(1000, 10), category: 'Default (API key)' },
  { id: 'default-user', match: [{}], identity: 'user', ...of(1000, 10), category: 'Default (User)' },
  { id: 'catch-all', match: [{}], identity: 'ip', ...of(100, 60), category: 'Public (catch-all)' },
]

/** Paths of the control plane and of the service's own health: the table does not speak of them. */
const OUTSIDE = /^\/(?:v2(?:\/|$)|v1\/(?:projects|integrations)(?:\/|$)|(?:ok|ready|openapi\.json|metrics)\/?$)/

/** True for a path of the main API, whose requests the table counts. `path` as `RateLimitedRequest` has it. */
export function isRateLimited(path: string): boolean {
  return !OUTSIDE.test(path)
}

/** What of a request decides which row counts it. `path` without the query, decoded and without dot segments: as it is routed. */
export interface RateLimitedRequest {
  readonly method: string
  readonly path: string
  readonly hasKey: boolean
  readonly hasUser: boolean
}

/** The row that counts a request; the catch-all when no other does. A HEAD is answered as a GET is, and counts as one. */
export function matchRateLimitRule(request: RateLimitedRequest): RateLimitRule {
  const path = request.path.replace(/^\/api\/v[12](?=\/)/, '')
  const asked = request.method.toUpperCase()
  const method = asked === 'HEAD' ? 'GET' : asked
  for (const { rule, match } of COMPILED) {
    if (rule.identity === 'key' && !request.hasKey) continue
    if (rule.identity === 'user' && !request.hasUser) continue
    if (match.some((one) => (one.method === undefined || one.method === method) && one.path.test(path))) return rule
  }
  throw new Error('the catch-all row fits every request')
}

const UUID = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}'
const COMPILED = RATE_LIMIT_RULES.map((rule) => ({ rule, match: rule.match.map(({ method, path }) => ({ method, path: compile(path) })) }))

function compile(path: string | undefined): RegExp {
  if (path === undefined) return /^/
  if (path.startsWith('**') && path.endsWith('**')) return new RegExp(path.slice(2, -2))
  if (path.startsWith('**')) return new RegExp(`${path.slice(2)}/?$`)
  if (path.endsWith('/**')) return new RegExp(`^${path.slice(0, -3)}(?:/|$)`)
  return new RegExp(`^${path.replace('{uuid}', UUID)}/?$`)
}
