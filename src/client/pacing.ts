import type { IncomingHttpHeaders } from 'node:http'
import { isRateLimited, matchRateLimitRule, type RateLimit, type RateLimitRule } from '../contract/rate-limits.ts'
import { deadlineOf } from './deadline.ts'
import type { Effects } from './effects.ts'
import { RequestFailure } from './failure.ts'

type Asked = { method: string; path: string; signal: AbortSignal }

/** A wait that is about to begin; `limit` names the rate limit: "Run lookup". */
export type PaceEvent = { method: string; path: string; waitMs: number; limit: string }
export type OnPace = (event: PaceEvent) => void

/**
 * One budget of requests, shared by all transports of a step that use one key with one service (specification 8.3): what the table allows,
 * and what the service says is left.
 */
export type Pacer = {
  /**
   * Waits until one more request may be sent, and counts it. Gives the milliseconds that it waited.
   * @throws {RequestFailure} of status 429, not sent, when the wait would not fit into what is left of the time; the signal's reason.
   */
  ready(asked: Asked): Promise<number>
  /** Learns from `RateLimit` and `RateLimit-Policy` headers. */
  learn(options: { method: string; path: string; headers: IncomingHttpHeaders }): void
  /** Nobody sends a request of this kind for so long: a 429 asked for it. Gives the name of the limit. */
  hold(options: { method: string; path: string; waitMs: number }): string
  /** Names of the limits that were waited for. */
  waitedFor(): readonly string[]
}

/** The name of what the table does not have. */
const CONTROL_PLANE = 'the control plane'
/** A server that says "wait" for longer is not believed: its own 429 will tell. */
const LEARNT_MAX_MS = 3_600_000

/** `code` of a failure that is this side's own: the request was held back for good. */
const NOT_SENT = 'held-back'

export function isNotSent(failure: RequestFailure): boolean {
  return failure.code === NOT_SENT
}

type Budget = { readonly name: string; limit: RateLimit | null; sent: number[]; heldUntil: number }

export function createPacer({ effects, onPace }: { effects: Effects; onPace: OnPace }): Pacer {
  const budgets = new Map<string, Budget>()
  const waited = new Set<string>()

  const budgetOf = ({ method, path }: Pick<Asked, 'method' | 'path'>): Budget => {
    const rule = isRateLimited(path) ? matchRateLimitRule({ method, path, hasKey: true, hasUser: false }) : null
    const id = rule?.id ?? ''
    const known = budgets.get(id)
    if (known !== undefined) return known
    const budget: Budget = { name: rule?.category ?? CONTROL_PLANE, limit: rule === null ? null : smallerOf(rule), sent: [], heldUntil: 0 }
    budgets.set(id, budget)
    return budget
  }
  return {
    ready: async (asked) => {
      const budget = budgetOf(asked)
      const began = effects.now()
      const deadline = deadlineOf(asked.signal)
      // Again after each wait: meanwhile another request may have learnt something, or taken the place.
      for (;;) {
        const now = effects.now()
        const waitMs = waitOf(budget, now)
        if (waitMs <= 0) {
          if (budget.limit !== null) budget.sent.push(now)
          return now - began
        }
        if (deadline !== null && waitMs >= deadline - now) throw tooLate({ asked, budget, waitMs, leftMs: deadline - now })
        waited.add(budget.name)
        onPace({ method: asked.method, path: asked.path, waitMs, limit: budget.name })
        await effects.sleep(waitMs, asked.signal)
      }
    },
    learn: ({ method, path, headers }) => {
      const budget = budgetOf({ method, path })
      const holdMs = holdOf(headers)
      if (holdMs > 0) budget.heldUntil = Math.max(budget.heldUntil, effects.now() + Math.min(holdMs, LEARNT_MAX_MS))
    },
    hold: ({ method, path, waitMs }) => {
      const budget = budgetOf({ method, path })
      budget.heldUntil = Math.max(budget.heldUntil, effects.now() + waitMs)
      waited.add(budget.name)
      return budget.name
    },
    waitedFor: () => [...waited],
  }
}

/** A client does not know which column its service has. */
function smallerOf({ us, eu }: RateLimitRule): RateLimit {
  return us.count * eu.seconds <= eu.count * us.seconds ? us : eu
}

/** How long until one more request of the budget may be sent. Forgets what is outside the window. */
function waitOf(budget: Budget, now: number): number {
  const held = budget.heldUntil - now
  if (budget.limit === null) return held
  const { count, seconds } = budget.limit
  const windowMs = seconds * 1000
  budget.sent = budget.sent.filter((at) => at + windowMs > now)
  const place = budget.sent.at(-count)
  return place === undefined ? held : Math.max(held, place + windowMs - now)
}

/** How long nothing more is allowed, by `RateLimit: "name";r=0;t=12` (IETF draft); of several policies the longest. Milliseconds. */
function holdOf(headers: IncomingHttpHeaders): number {
  const value = [headers['ratelimit']].flat().join(', ')
  const items = value.split(',').filter((item) => /;\s*r=0(?!\d)/.test(item))
  return Math.max(0, ...items.map((item) => Number(/;\s*t=(\d{1,9})(?!\d)/.exec(item)?.[1] ?? 0) * 1000))
}

function tooLate({ asked, budget, waitMs, leftMs }: {
  asked: Asked
  budget: Budget
  waitMs: number
  leftMs: number
}): RequestFailure {
  const wait = `${Math.ceil(waitMs / 1000)} s`
  const left = `${Math.max(0, Math.floor(leftMs / 1000))} s`
  return new RequestFailure({
    kind: 'http',
    method: asked.method,
    path: asked.path,
    summary: `would have to wait ${wait} for the rate limit of ${budget.name}, but what is left of the time is ${left}`,
    status: 429,
    code: NOT_SENT,
    detail: null,
    excerpt: null,
    requestId: null,
    retryAfterMs: waitMs,
    attempts: 0,
    ambiguous: false,
  })
}
