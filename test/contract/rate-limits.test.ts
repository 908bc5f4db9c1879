import { expect, test } from 'vitest'
import { isRateLimited, matchRateLimitRule, RATE_LIMIT_RULES, type RateLimitedRequest } from '../../src/contract/rate-limits.ts'

const UUID = '01a1fb32-851a-740b-a3a5-bd284276ca0a'
const key = { hasKey: true, hasUser: false }
const user = { hasKey: false, hasUser: true }
const nobody = { hasKey: false, hasUser: false }

/** Specification 8.3: for each row of the table requests that it counts, and near ones that it does not. */
const ROWS: [id: string, request: RateLimitedRequest][] = [
  ['on-address', { method: 'OPTIONS', path: '/runs/query', ...key }],
  ['on-address', { method: 'OPTIONS', path: '/info', ...nobody }],
  ['on-address', { method: 'GET', path: '/info', ...key }],
  ['on-address', { method: 'GET', path: '/api/v1/info', ...nobody }],
  ['default-key', { method: 'GET', path: '/info/x', ...key }],
  ['default-key', { method: 'GET', path: '/information', ...key }],
  ['on-address', { method: 'POST', path: '/x/v1/metadata/submit', ...key }],
  ['on-address', { method: 'POST', path: '/v1/metadata/submit', ...nobody }],
  ['auth-key', { method: 'POST', path: '/auth', ...key }],
  ['auth-key', { method: 'GET', path: '/api/v1/auth/verify', hasKey: true, hasUser: true }],
  ['auth-user', { method: 'GET', path: '/auth', ...user }],
  ['catch-all', { method: 'GET', path: '/auth', ...nobody }],
  ['default-key', { method: 'GET', path: '/authors', ...key }],
  ['beacon', { method: 'POST', path: '/v1/beacon', ...key }],
  ['repos-key', { method: 'GET', path: '/repos/a/b', ...key }],
  ['repos-user', { method: 'GET', path: '/api/v1/repos', ...user }],
  ['run-lookup', { method: 'HEAD', path: `/runs/${UUID}`, ...key }],
  ['examples', { method: 'head', path: '/examples', ...key }],
  ['runs-batch', { method: 'POST', path: '/runs/batch', ...key }],
  ['runs-batch', { method: 'post', path: '/api/v1/runs/batch', ...key }],
  ['default-key', { method: 'GET', path: '/runs/batch', ...key }],
  ['default-key', { method: 'POST', path: '/runs/api/v1/batch', ...key }],
  ['default-key', { method: 'POST', path: '/api/v1runs/batch', ...key }],
  ['default-key', { method: 'GET', path: '/api/v1', ...key }],
  ['otel-traces', { method: 'POST', path: '/otel/v1/traces', ...key }],
  ['charts-key', { method: 'POST', path: '/api/v1/charts/preview', ...key }],
  ['charts-user', { method: 'POST', path: '/x/charts', ...user }],
  ['runs-multipart', { method: 'POST', path: '/runs/multipart', ...key }],
  ['runs-query-key', { method: 'POST', path: '/api/v1/runs/query', ...key }],
  ['runs-query-user', { method: 'POST', path: '/runs/query', ...user }],
  ['default-key', { method: 'GET', path: '/runs/query', ...key }],
  ['runs-stats', { method: 'POST', path: '/runs/stats', ...key }],
  ['runs-stats', { method: 'GET', path: '/api/v1/runs/stats', ...key }],
  ['default-user', { method: 'GET', path: '/runs/stats', ...user }],
  ['generate-key', { method: 'POST', path: '/generate', ...key }],
  ['generate-user', { method: 'POST', path: '/generate/text', ...user }],
  ['commits-key', { method: 'GET', path: '/commits/a/b', ...key }],
  ['commits-user', { method: 'GET', path: '/commits', ...user }],
  ['deletion-key', { method: 'DELETE', path: `/sessions/${UUID}`, ...key }],
  ['deletion-user', { method: 'DELETE', path: '/api/v1/sessions', ...user }],
  ['default-key', { method: 'GET', path: '/sessions', ...key }],
  ['deletion-key', { method: 'POST', path: '/api/v1/rules/1/trigger', ...key }],
  ['deletion-user', { method: 'POST', path: '/rules/1/trigger', ...user }],
  ['default-key', { method: 'POST', path: '/triggers', ...key }],
  ['runs-post', { method: 'POST', path: '/runs', ...key }],
  ['runs-post', { method: 'POST', path: '/runs/', ...key }],
  ['default-key', { method: 'POST', path: '/runs/other', ...key }],
  ['runs-patch', { method: 'PATCH', path: `/runs/${UUID}`, ...key }],
  ['runs-patch', { method: 'PATCH', path: `/api/v1/runs/${UUID}`, ...key }],
  ['feedback', { method: 'POST', path: '/feedback', ...key }],
  ['run-lookup', { method: 'GET', path: `/runs/${UUID}`, ...key }],
  ['run-lookup', { method: 'GET', path: `/api/v1/runs/${UUID}`, ...key }],
  ['default-key', { method: 'GET', path: '/runs/abc', ...key }],
  ['examples', { method: 'GET', path: '/api/v1/datasets/1/examples', ...key }],
  ['public-download', { method: 'GET', path: '/public/download/x', ...key }],
  ['default-key', { method: 'GET', path: '/anything', hasKey: true, hasUser: true }],
  ['default-user', { method: 'GET', path: '/anything', ...user }],
  ['catch-all', { method: 'POST', path: '/runs', ...nobody }],
  ['catch-all', { method: 'GET', path: '/', ...nobody }],
]

test.each(ROWS)('the row %s counts %o', (id, request) => {
  expect(matchRateLimitRule(request).id).toBe(id)
})

test('every row of the table has a request above that it counts', () => {
  const counted = new Set(ROWS.map(([id]) => id))
  expect(RATE_LIMIT_RULES.map(({ id }) => id).filter((id) => !counted.has(id))).toEqual([])
})

test('the two "any request" rows and the catch-all come last, in this order', () => {
  expect(RATE_LIMIT_RULES.slice(-3).map(({ id }) => id)).toEqual(['default-key', 'default-user', 'catch-all'])
})

test('the limits are those of the specification, by region', () => {
  const table = RATE_LIMIT_RULES.map(({ id, us, eu }) => `${id} ${us.count}/${us.seconds} ${eu.count}/${eu.seconds}`)
  expect(table).toMatchInlineSnapshot(`
    [
      "on-address 2000/10 2000/10",
      "auth-key 2000/10 2000/10",
      "auth-user 2000/10 2000/10",
      "beacon 2000/10 2000/10",
      "repos-key 100/60 100/60",
      "repos-user 100/60 100/60",
      "runs-batch 2000/10 2000/10",
      "otel-traces 2000/10 2000/10",
      "charts-key 750/600 750/600",
      "charts-user 750/600 750/600",
      "runs-multipart 6000/10 6000/10",
      "runs-query-key 15/10 15/10",
      "runs-query-user 300/10 300/10",
      "runs-stats 1/10 20/10",
      "generate-key 30/3600 30/3600",
      "generate-user 30/3600 30/3600",
      "commits-key 10000/60 2000/60",
      "commits-user 10000/60 2000/60",
      "deletion-key 10/60 10/60",
      "deletion-user 30/60 30/60",
      "runs-post 2000/10 2000/10",
      "runs-patch 2000/10 2000/10",
      "feedback 2000/10 2000/10",
      "run-lookup 30/60 30/60",
      "examples 5000/60 5000/60",
      "public-download 5000/60 5000/60",
      "default-key 1000/10 1000/10",
      "default-user 1000/10 1000/10",
      "catch-all 100/60 100/60",
    ]
  `)
})

test.each(['/v2', '/v2/deployments', '/v1/projects/x', '/v1/integrations', '/ok', '/ready/', '/openapi.json', '/metrics'])(
  'the table does not speak of %s',
  (path) => {
    expect(isRateLimited(path)).toBe(false)
  },
)

test.each(['/', '/v2x', '/v1/beacon', '/v1/projectsx', '/runs', '/okay', '/ok/x', '/api/v1/bulk-exports', '//v2', '/api/v2/x'])(
  'the table speaks of %s',
  (path) => {
    expect(isRateLimited(path)).toBe(true)
  },
)
