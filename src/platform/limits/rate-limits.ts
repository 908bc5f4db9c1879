import { createHash } from 'node:crypto'
import { matchRateLimitRule, type RateLimit, type RateLimitRule } from '../../contract/rate-limits.ts'
import { networkOf } from './client-address.ts'
import type { RateCounter } from './counter.ts'
import type { Admission } from './sliding-window.ts'

/** The parts of a request that decide. `path` without the query; `address` the client's. */
export interface CountedRequest {
  readonly method: string
  readonly path: string
  readonly apiKey: string | null
  readonly userId: string | null
  readonly address: string
}

/** What a limit says to a request: the row, and headers that every answer may carry (IETF draft RateLimit fields). */
export interface Verdict extends Admission {
  readonly rule: RateLimitRule
  readonly limit: RateLimit
  readonly headers: Readonly<Record<string, string>>
}

/** Judges one request against the table of specification 8.3. */
export type RateLimiter = (request: CountedRequest) => Promise<Verdict>

/** How many users one address may speak for, in which time: nothing proves a user's id, and each has a count of its own. */
const USERS_OF_ADDRESS: RateLimit = { count: 100, seconds: 60 }
/** How many pairs of a user and an address this process remembers as admitted. */
const USERS_MAX = 10_000

/**
 * `isKnownKey` says whether a key is one of the service's: what carries another counts as if it had none. A user id beyond those that its
 * address may speak for counts by the address, too. So nobody gets a new count by making up a name.
 */
export function createRateLimiter({ region, counter, isKnownKey = async () => true, now = () => performance.now() }: {
  region: 'us' | 'eu'
  counter: RateCounter
  isKnownKey?: (key: string) => Promise<boolean>
  now?: () => number
}): RateLimiter {
  const users = new Map<string, { until: number; admitted: Promise<boolean> }>()

  const mayBeUser = async (userId: string, network: string) => {
    const user = hash(`${userId}\n${network}`)
    const remembered = users.get(user)
    if (remembered !== undefined && remembered.until > now()) return remembered.admitted
    users.delete(user)
    const [oldest] = users.size >= USERS_MAX ? users.keys() : []
    if (oldest !== undefined) users.delete(oldest)
    // Kept before it is known: requests of one new user that come together are one.
    const admitted = Promise.resolve(counter.take(`users ${network}`, USERS_OF_ADDRESS)).then((admission) => admission.admitted)
    users.set(user, { until: now() + USERS_OF_ADDRESS.seconds * 1000, admitted })
    if (!(await admitted.catch(() => false))) users.delete(user)
    return admitted
  }
  return async (asked) => {
    const request = { ...asked, address: networkOf(asked.address) }
    const { method, path, apiKey, userId } = request
    const hasKey = apiKey !== null && (await isKnownKey(apiKey))
    let rule = matchRateLimitRule({ method, path, hasKey, hasUser: userId !== null })
    if (rule.identity === 'user' && userId !== null && !(await mayBeUser(userId, request.address))) {
      rule = matchRateLimitRule({ method, path, hasKey, hasUser: false })
    }
    const limit = rule[region]
    const admission = await counter.take(`${rule.id} ${identityOf(rule, request)}`, limit)
    return { ...admission, rule, limit, headers: headersOf(rule, limit, admission) }
  }
}

/** Keys and user ids are counted by their hash: they must not lie about in memory or in a table. */
function identityOf({ identity }: RateLimitRule, { apiKey, userId, address }: CountedRequest): string {
  if (identity === 'key') return hash(apiKey ?? '')
  return identity === 'user' ? hash(`${userId ?? ''}\n${address}`) : address
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

function headersOf({ id }: RateLimitRule, { count, seconds }: RateLimit, { admitted, remaining, retryAfterMs }: Admission): Record<string, string> {
  const wait = String(Math.max(1, Math.ceil(retryAfterMs / 1000)))
  return {
    'RateLimit-Policy': `"${id}";q=${count};w=${seconds}`,
    RateLimit: `"${id}";r=${remaining};t=${remaining > 0 ? seconds : wait}`,
    ...(admitted ? {} : { 'Retry-After': wait }),
  }
}

/** The body of a 429. `error` and `details` as ingest clients read them, `detail` as the others do (hosted service). */
export function refusalBody({ rule, limit, retryAfterMs }: Verdict): Record<string, unknown> {
  const wait = Math.max(1, Math.ceil(retryAfterMs / 1000))
  const sentence =
    `Rate limit '${rule.id}' (${rule.category}) exceeded: ${limit.count} requests in ${limit.seconds} s. ` +
    `Wait ${wait} s before the next request.`
  return {
    error: 'Rate limit exceeded',
    details: sentence,
    detail: sentence,
    rule: { id: rule.id, category: rule.category, identity: rule.identity, count: limit.count, seconds: limit.seconds },
    retry_after_seconds: wait,
  }
}
