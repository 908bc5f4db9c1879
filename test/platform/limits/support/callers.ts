import type { RateLimitRule } from '../../../../src/contract/rate-limits.ts'
import type { CountedRequest } from '../../../../src/platform/limits/rate-limits.ts'

/** A request that each row counts. */
const EXAMPLES: Record<string, { method: string; path: string }> = {
  'on-address': { method: 'GET', path: '/info' },
  'auth-key': { method: 'POST', path: '/auth' },
  'auth-user': { method: 'POST', path: '/auth' },
  beacon: { method: 'POST', path: '/v1/beacon' },
  'repos-key': { method: 'GET', path: '/repos/a' },
  'repos-user': { method: 'GET', path: '/repos/a' },
  'runs-batch': { method: 'POST', path: '/runs/batch' },
  'otel-traces': { method: 'POST', path: '/otel/v1/traces' },
  'charts-key': { method: 'POST', path: '/api/v1/charts' },
  'charts-user': { method: 'POST', path: '/api/v1/charts' },
  'runs-multipart': { method: 'POST', path: '/runs/multipart' },
  'runs-query-key': { method: 'POST', path: '/runs/query' },
  'runs-query-user': { method: 'POST', path: '/runs/query' },
  'runs-stats': { method: 'POST', path: '/runs/stats' },
  'generate-key': { method: 'POST', path: '/generate' },
  'generate-user': { method: 'POST', path: '/generate' },
  'commits-key': { method: 'GET', path: '/commits/a' },
  'commits-user': { method: 'GET', path: '/commits/a' },
  'deletion-key': { method: 'DELETE', path: '/sessions/1' },
  'deletion-user': { method: 'DELETE', path: '/sessions/1' },
  'runs-post': { method: 'POST', path: '/runs' },
  'runs-patch': { method: 'PATCH', path: '/runs/1' },
  feedback: { method: 'POST', path: '/feedback' },
  'run-lookup': { method: 'GET', path: '/runs/01a1fb32-851a-740b-a3a5-bd284276ca0a' },
  examples: { method: 'GET', path: '/examples' },
  'public-download': { method: 'GET', path: '/public/download/1' },
  'default-key': { method: 'GET', path: '/other' },
  'default-user': { method: 'GET', path: '/other' },
  'catch-all': { method: 'GET', path: '/other' },
}

/** One caller of the kind that the row counts; callers with other numbers are others. */
export function callerOf({ id, identity }: RateLimitRule, caller: number): CountedRequest {
  return {
    ...(EXAMPLES[id] as { method: string; path: string }),
    apiKey: identity === 'key' ? `key-${caller}` : null,
    userId: identity === 'user' ? `user-${caller}` : null,
    address: identity === 'key' ? '10.0.0.1' : `10.0.1.${caller}`,
  }
}
