import { Agent } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { createInFlight, type Exchange, type InFlight } from './drain.ts'

/** Streams of agents last minutes: a target that was replaced keeps them this long. */
export const DRAIN_LIMIT_MS = 15 * 60_000

/** The process that serves a deployment: where its own node reaches it. */
export interface AgentTarget {
  readonly host: string
  readonly port: number
  readonly revisionId: string
  /** Names this start of the revision. */
  readonly agentId?: string
  /** The address of the node that runs it, when that is another one: only that node reaches it. */
  readonly via?: string
}

/** What is known of a slug: whose it is, and what serves it (null: nothing yet, or nothing any more). */
export interface AgentRoute {
  readonly slug: string
  readonly workspaceId: string
  readonly target: AgentTarget | null
}

/** A target taken for one exchange: it is not let go before `finish` was called. */
export interface TargetUse {
  readonly target: AgentTarget
  /** Keep-alive connections to this target alone. */
  readonly connections: Agent
  finish(): void
}

/**
 * Which process answers which slug. Every change is one assignment: a request sees either the target before or the one after.
 * A target that was replaced or taken away stays alive for what it has in flight until it is drained.
 */
export interface AgentRoutes {
  /** Makes the slug known (404 before, 503 from now on until something serves it). Leaves a target that serves it alone. */
  announce(slug: string, workspaceId: string): void
  /** From now on new requests go to this target. The one before is left to be drained. */
  serve(slug: string, target: AgentTarget & { readonly workspaceId: string }): void
  /** Takes the target away and keeps the slug known: 503. */
  suspend(slug: string): void
  /** Forgets the slug: 404. */
  remove(slug: string): void
  /**
   * Waits until nothing is in flight on the target, then closes its connections; what is left after `limitMs` is cut.
   * A target that still serves is suspended first. Resolves at once for one that is not known.
   */
  drain(target: AgentTarget, options?: { limitMs?: number }): Promise<{ cut: number }>
  lookup(slug: string): AgentRoute | undefined
  slugs(): string[]
  /** Takes the slug's present target for one exchange; null when nothing serves it. */
  use(slug: string, exchange: Exchange): TargetUse | null
  /** From now on `take` refuses the target: what has begun goes on, what comes later goes elsewhere. */
  close(target: AgentTarget): void
  /** Takes a target for one exchange, whatever slug it serves or has served; null when it is closed or drained. */
  take(target: AgentTarget, exchange: Exchange): TargetUse | null
  /** Forgets targets on other nodes that serve nothing any more and have nothing in flight from here. */
  prune(): void
  /** How many exchanges the target has in flight. */
  inFlight(target: AgentTarget): number
}

/** How many closed targets are remembered, so that a request that comes late is told so. */
const CLOSED_KEPT = 1000

interface Backend {
  readonly target: AgentTarget
  readonly connections: Agent
  readonly inFlight: InFlight
}

interface Entry {
  readonly workspaceId: string
  backend: Backend | null
}

export function createAgentRoutes(): AgentRoutes {
  const entries = new Map<string, Entry>()
  /** Every target that may have something in flight, by address and revision. */
  const backends = new Map<string, Backend>()
  const closed = new Set<string>()

  const backendOf = (target: AgentTarget): Backend => {
    const key = keyOf(target)
    const known = backends.get(key)
    if (known !== undefined) return known
    const options = { keepAlive: true, maxFreeSockets: 64 }
    const connections = target.via?.startsWith('https:') ? new TlsAgent(options) : new Agent(options)
    const backend = { target: { ...target }, connections, inFlight: createInFlight() }
    backends.set(key, backend)
    return backend
  }

  const isServing = (backend: Backend) => [...entries.values()].some((entry) => entry.backend === backend)

  const letGo = (backend: Backend) => {
    backend.connections.destroy()
    backends.delete(keyOf(backend.target))
  }

  /** Only an agent's own start is remembered: an address alone may be another agent's tomorrow. */
  const remember = (target: AgentTarget) => {
    if (target.agentId === undefined) return
    closed.add(keyOf(target))
    const [oldest] = closed
    if (closed.size > CLOSED_KEPT && oldest !== undefined) closed.delete(oldest)
  }

  const suspend = (slug: string) => {
    const entry = entries.get(slug)
    if (entry !== undefined) entry.backend = null
  }

  return {
    announce(slug, workspaceId) {
      if (entries.get(slug)?.workspaceId !== workspaceId) entries.set(slug, { workspaceId, backend: null })
    },
    serve(slug, { workspaceId, ...target }) {
      entries.set(slug, { workspaceId, backend: backendOf(target) })
    },
    suspend,
    remove: (slug) => void entries.delete(slug),
    async drain(target, { limitMs = DRAIN_LIMIT_MS } = {}) {
      const backend = backends.get(keyOf(target))
      if (backend === undefined) {
        remember(target)
        return { cut: 0 }
      }
      for (const [slug, entry] of entries) if (entry.backend === backend) suspend(slug)
      const outcome = await backend.inFlight.drained(limitMs)
      // Served again meanwhile (a rollback to it): then it is not ours to close.
      if (isServing(backend)) return outcome
      remember(target)
      letGo(backend)
      return outcome
    },
    lookup(slug) {
      const entry = entries.get(slug)
      return entry === undefined ? undefined : { slug, workspaceId: entry.workspaceId, target: entry.backend?.target ?? null }
    },
    slugs: () => [...entries.keys()],
    use(slug, exchange) {
      const backend = entries.get(slug)?.backend
      if (backend === undefined || backend === null) return null
      return { target: backend.target, connections: backend.connections, finish: backend.inFlight.begin(exchange) }
    },
    close: remember,
    take(target, exchange) {
      if (closed.has(keyOf(target))) return null
      const backend = backendOf(target)
      return { target: backend.target, connections: backend.connections, finish: backend.inFlight.begin(exchange) }
    },
    prune() {
      for (const backend of backends.values()) {
        if (backend.target.via !== undefined && backend.inFlight.size === 0 && !isServing(backend)) letGo(backend)
      }
    },
    inFlight: (target) => backends.get(keyOf(target))?.inFlight.size ?? 0,
  }
}

function keyOf({ host, port, revisionId, agentId = '', via = '' }: AgentTarget): string {
  return `${revisionId}/${agentId}@${host}:${port}${via}`
}
