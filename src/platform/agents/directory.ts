import type { Database } from '../database/schema.ts'
import type { AgentRoutes } from './routes.ts'

/**
 * Brings the routes of this process into line with the database: which deployments there are, and which agent serves each. The returned
 * function is run at every change and at intervals; its rounds follow one another, so that an older look never undoes a newer one.
 */
export function createRefresh(db: Database, routes: AgentRoutes): () => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  return () => {
    const next = last.catch(() => undefined).then(() => refreshRoutes(db, routes))
    last = next
    return next
  }
}

async function refreshRoutes(db: Database, routes: AgentRoutes): Promise<void> {
  const rows = await db
    .selectFrom('deployments')
    .leftJoin('agents', (join) => join.onRef('agents.deployment_id', '=', 'deployments.id').on('agents.state', '=', 'serving'))
    .select(['deployments.slug', 'deployments.workspace_id', 'agents.host', 'agents.port', 'agents.revision_id'])
    .where('deployments.status', '!=', 'AWAITING_DELETE')
    .execute()
  const slugs = new Set(rows.map((row) => row.slug))
  for (const slug of routes.slugs()) if (!slugs.has(slug)) routes.remove(slug)
  for (const { slug, workspace_id: workspaceId, host, port, revision_id: revisionId } of rows) {
    if (host === null || port === null || revisionId === null) {
      routes.announce(slug, workspaceId)
      if (routes.lookup(slug)?.target) routes.suspend(slug)
      continue
    }
    const now = routes.lookup(slug)?.target
    if (now?.host !== host || now.port !== port || now.revisionId !== revisionId) routes.serve(slug, { host, port, revisionId, workspaceId })
  }
}
