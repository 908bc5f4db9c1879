import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../database/schema.ts'
import type { AgentRoutes, AgentTarget } from './routes.ts'

/**
 * Brings the routes of this process into line with the database: which deployments there are, and which agent serves each. Agents of other
 * nodes than `nodeId` are reached through their node. The returned
 * function is run at every change and at intervals; its rounds follow one another, so that an older look never undoes a newer one.
 */
export function createRefresh(db: Database, routes: AgentRoutes, nodeId?: string): () => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  return () => {
    const next = last.catch(() => undefined).then(() => refreshRoutes(db, routes, nodeId))
    last = next
    return next
  }
}

/**
 * Lets many ask for a refresh at once: one round serves all who asked before it began, and rounds keep a distance, so that a flood of requests
 * for what is not there is none for the database.
 */
export function createFreshLook(refresh: () => Promise<void>, { distanceMs = 100 } = {}): () => Promise<void> {
  let next: Promise<void> | null = null
  let lastAt = -Infinity
  return () => {
    next ??= (async () => {
      await sleep(Math.max(0, lastAt + distanceMs - performance.now()))
      next = null
      lastAt = performance.now()
      await refresh()
    })()
    return next
  }
}

async function refreshRoutes(db: Database, routes: AgentRoutes, nodeId: string | undefined): Promise<void> {
  const rows = await db
    .selectFrom('deployments')
    .leftJoin('agents', (join) => join.onRef('agents.deployment_id', '=', 'deployments.id').on('agents.state', '=', 'serving'))
    .leftJoin('nodes', 'nodes.id', 'agents.node_id')
    .select(['deployments.slug', 'deployments.workspace_id', 'agents.id', 'agents.host', 'agents.port', 'agents.revision_id'])
    .select(['agents.node_id', 'nodes.url as node_url'])
    .where('deployments.status', '!=', 'AWAITING_DELETE')
    .execute()
  const slugs = new Set(rows.map((row) => row.slug))
  for (const slug of routes.slugs()) if (!slugs.has(slug)) routes.remove(slug)
  for (const { slug, workspace_id: workspaceId, id: agentId, host, port, revision_id: revisionId, node_id, node_url } of rows) {
    if (agentId === null || host === null || port === null || revisionId === null) {
      routes.announce(slug, workspaceId)
      if (routes.lookup(slug)?.target) routes.suspend(slug)
      continue
    }
    const via = node_id === nodeId || node_url === null ? {} : { via: node_url }
    const target: AgentTarget = { host, port, revisionId, agentId, ...via }
    const now = routes.lookup(slug)?.target
    if (now?.agentId !== agentId || now.via !== target.via || now.host !== host || now.port !== port)
      routes.serve(slug, { ...target, workspaceId })
  }
  routes.prune()
}
