import { Agent } from 'node:http'
import { createInFlight, type Exchange, type InFlight } from './drain.ts'

/** Streams of agents last minutes: a target that was replaced keeps them this long. */
export const DRAIN_LIMIT_MS = 15 * 60_000

/** The process that serves a deployment. */
export interface AgentTarget {
  readonly host: string
  readonly port: number
  readonly revisionId: string
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
  /** How many exchanges the target has in flight. */
  inFlight(target: AgentTarget): number
}

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

  const backendOf = (target: AgentTarget): Backend => {
    const key = keyOf(target)
    const known = backends.get(key)
    if (known !== undefined) return known
    const { host, port, revisionId } = target
    const connections = new Agent({ keepAlive: true, maxFreeSockets: 64 })
    const backend = { target: { host, port, revisionId }, connections, inFlight: createInFlight() }
    backends.set(key, backend)
    return backend
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
      if (backend === undefined) return { cut: 0 }
      for (const [slug, entry] of entries) if (entry.backend === backend) suspend(slug)
      const outcome = await backend.inFlight.drained(limitMs)
      // Served again meanwhile (a rollback to it): then it is not ours to close.
      if ([...entries.values()].some((entry) => entry.backend === backend)) return outcome
      backend.connections.destroy()
      backends.delete(keyOf(target))
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
    inFlight: (target) => backends.get(keyOf(target))?.inFlight.size ?? 0,
  }
}

function keyOf({ host, port, revisionId }: AgentTarget): string {
  return `${revisionId}@${host}:${port}`
}
