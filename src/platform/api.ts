import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Hono } from 'hono'
import { sql } from 'kysely'
import { faultLog } from './agents/fault-log.ts'
import { createAgentProxy } from './agents/proxy.ts'
import type { AgentRoutes } from './agents/routes.ts'
import { createAgentUpgrade } from './agents/upgrade.ts'
import type { ExportContext } from './bulk-export/context.ts'
import { bulkExportRoutes } from './bulk-export/routes/routes.ts'
import { controlPlaneRoutes } from './control-plane/routes/routes.ts'
import { createApp } from './http/app.ts'
import { describeApi } from './http/openapi.ts'
import { HttpProblem } from './http/problem.ts'
import { createClientAddress } from './limits/client-address.ts'
import type { RateCounter } from './limits/counter.ts'
import { createRateLimitMetrics } from './limits/metrics.ts'
import { rateLimits } from './limits/middleware.ts'
import { createRateLimiter } from './limits/rate-limits.ts'
import type { Log } from './log.ts'
import type { NodeSignature } from './nodes/signature.ts'
import type { Options } from './options.ts'
import { traceRoutes } from './traces/routes.ts'
import { createAuthenticate, isKnownKey, requireFullKey } from './workspaces/authenticate.ts'

/** Everything that answers requests, to be tied to one address. */
export interface Api {
  readonly app: Hono
  readonly agents: (request: IncomingMessage, response: ServerResponse) => void
  readonly agentUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

export interface ApiOptions extends ExportContext {
  readonly options: Options
  readonly agentRoutes: AgentRoutes
  /** Counts requests for the rate limits; null: they are off. */
  readonly counter: RateCounter | null
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly string[]
  readonly renderMetrics: () => string
  /** Where clients reach the platform; absent: where their requests say. */
  readonly publicUrl?: string | undefined
  /** Brings the agents' routes into line with the database. */
  readonly refreshRoutes?: () => Promise<void>
  /** Proves requests to the nodes that run agents; absent: all agents run here. */
  readonly signature?: NodeSignature
  readonly log: Log
}

/** Ties the control plane, the main API and the agents together. */
export function createApi({
  options,
  agentRoutes,
  counter,
  trustedProxies,
  renderMetrics,
  publicUrl,
  refreshRoutes,
  signature,
  log,
  ...context
}: ApiOptions): Api {
  const { db } = context
  const authenticate = createAuthenticate(db)
  const anyKey = (request: Request) => authenticate((name) => request.headers.get(name))
  const traces = traceRoutes({ db, log, authenticate: anyKey })
  const exports = bulkExportRoutes(context)
  const controlPlane = controlPlaneRoutes({ ...context, log })
  const limitMetrics = createRateLimitMetrics()
  const limits =
    counter === null
      ? null
      : rateLimits({
          limiter: createRateLimiter({ region: options.region, counter, isKnownKey: (key) => isKnownKey(authenticate, key) }),
          clientAddress: createClientAddress(trustedProxies),
          metrics: limitMetrics,
          log,
        })
  const app = createApp({
    // A process of the role `queue` answers for its health, and takes the traces of its agents.
    ...(options.role === 'queue'
      ? { routes: [], mounted: [traces.ingest] }
      : { routes: [...controlPlane, ...traces.routes, ...exports], mounted: [traces.ingest] }),
    limits,
    authenticate: async (request) => requireFullKey(await anyKey(request)),
    dialect: options.dialect,
    publicUrl,
    ready: () =>
      sql`select 1`.execute(db).then(
        () => true,
        () => false,
      ),
    openapi: () => describeApi([...controlPlane, ...traces.described, ...exports], options.dialect, publicUrl),
    metrics: () => renderMetrics() + (limits === null ? '' : limitMetrics.render()),
    log,
  })
  const proxy = {
    routes: agentRoutes,
    refresh: refreshRoutes,
    signature,
    onFault: faultLog(log),
    authorise: async ({ headers }: { headers: Record<string, string | string[] | undefined> }) => {
      try {
        const first = (name: string) => [headers[name.toLowerCase()]].flat()[0]
        return requireFullKey(await authenticate(first)).workspaceId
      } catch (error) {
        if (error instanceof HttpProblem) return null
        throw error
      }
    },
  }
  return { app, agents: createAgentProxy(proxy), agentUpgrade: createAgentUpgrade(proxy) }
}
