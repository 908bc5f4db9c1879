import type { IncomingMessage } from 'node:http'
import type { NodeSignature } from '../nodes/signature.ts'
import type { AgentFault } from './fault-log.ts'
import type { Refusal } from './refusal.ts'
import type { AgentRoutes } from './routes.ts'

export const AGENTS_PREFIX = '/agents/'

export interface AgentProxyOptions {
  readonly routes: AgentRoutes
  /** The workspace that the request's key opens, or null. A rejection is answered with 503. */
  readonly authorise: (request: IncomingMessage) => Promise<string | null>
  /** Brings the routes into line with the database, when a target turns out to be gone. */
  readonly refresh?: (() => Promise<void>) | undefined
  /** Proves requests to other nodes. */
  readonly signature?: NodeSignature | undefined
  /** Told of what went wrong between the proxy and an agent. */
  readonly onFault?: (fault: AgentFault) => void
}

/** An address under `/agents/`: the deployment's slug, and the path and query that its agent sees. */
export interface AgentAddress {
  readonly slug: string
  readonly path: string
}

/** Reads `/agents/{slug}/rest?query`; null for any other address. */
export function parseAgentAddress(url: string | undefined): AgentAddress | null {
  const match = /^\/agents\/([a-z0-9-]+)((?:\/[^?]*)?)(\?.*)?$/.exec(url ?? '')
  if (match === null) return null
  return { slug: match[1] ?? '', path: (match[2] || '/') + (match[3] ?? '') }
}

export type Admission = { address: AgentAddress } | { refusal: Refusal }

/** Lets a request through to its slug, or tells why not: no key 401; no such slug, or another workspace's, 404. */
export async function admit(request: IncomingMessage, { routes, authorise, refresh }: AgentProxyOptions): Promise<Admission> {
  const workspaceId = await authorise(request)
  if (workspaceId === null) return { refusal: { status: 401, detail: 'A valid API key is required in the X-Api-Key header.' } }
  const address = parseAgentAddress(request.url)
  let route = address === null ? undefined : routes.lookup(address.slug)
  if (address !== null && !route?.target) {
    // Another process may have made or deployed it a moment ago: who reads DEPLOYED there finds it here.
    await refresh?.()
    route = routes.lookup(address.slug)
  }
  if (address === null || route === undefined || route.workspaceId !== workspaceId) {
    return { refusal: { status: 404, detail: `No deployment at ${AGENTS_PREFIX}${address?.slug ?? ''}.` } }
  }
  return { address }
}
