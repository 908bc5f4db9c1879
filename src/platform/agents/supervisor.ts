import { sql } from 'kysely'
import { isReady } from '../control-plane/lifecycle/deploy-worker.ts'
import { isNotElsewhere } from '../control-plane/lifecycle/lease.ts'
import type { BuiltAgent } from '../control-plane/sources/build.ts'
import type { Database, DeploymentRow, RevisionRow } from '../database/schema.ts'
import type { Log } from '../log.ts'
import { AGENT_SILENT_MS, type AgentHost, AlreadyRunning, makeServing } from './host.ts'
import { lockAgents } from './lock-agents.ts'

const FIRST_BACKOFF_MS = 1000
const LAST_BACKOFF_MS = 60_000
/** An agent that ends sooner after its start has not come up for good: the next start waits longer. */
const STEADY_MS = 60_000

export interface SupervisorOptions {
  readonly db: Database
  readonly host: AgentHost
  readonly nodeId: string
  /** The folder of this node's builds; absent: any folder will do. */
  readonly builds?: string
  readonly startLimitMs: number
  readonly signal: AbortSignal
  /** Builds the recorded commit once more when what was built is gone. */
  readonly buildAgain: (work: { revision: RevisionRow; deployment: DeploymentRow; signal: AbortSignal }) => Promise<BuiltAgent>
  /** False while this node was away from the database itself: then silence says nothing about others. */
  readonly canJudge?: () => boolean
  readonly log: Log
}

/** Starts of a revision that did not last. */
interface Attempts {
  readonly count: number
  readonly nextAt: number
  readonly servedAt: number | null
}

/**
 * Keeps the active revision of every deployment running: after a restart of the platform, after an agent ended by itself, after a node was
 * lost, after its build was lost. Waits longer after each failure of the same revision. Several rounds may run at once.
 */
export function createSupervisor(options: SupervisorOptions): { round(): Promise<boolean> } {
  const { db, nodeId, signal, log } = options
  const attempts = new Map<string, Attempts>()
  const busy = new Set<string>()

  const attempt = async (revision: RevisionRow) => {
    const before = attempts.get(revision.id)
    const steady = before?.servedAt !== undefined && before.servedAt !== null && Date.now() - before.servedAt > STEADY_MS
    const count = steady ? 1 : (before?.count ?? 0) + 1
    const wait = Math.min(LAST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (count - 1))
    try {
      await serveAgain(options, revision)
      attempts.set(revision.id, { count, nextAt: Date.now() + wait, servedAt: Date.now() })
      log.info({ revisionId: revision.id }, 'an agent server serves again')
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof AlreadyRunning) {
        attempts.set(revision.id, { count: count - 1, nextAt: Date.now() + FIRST_BACKOFF_MS, servedAt: null })
        return
      }
      attempts.set(revision.id, { count, nextAt: Date.now() + wait, servedAt: null })
      log.warn(
        { revisionId: revision.id, error: (error as Error).message, retryInMs: wait },
        'an agent server could not be started again',
      )
    }
  }

  return {
    round: async () => {
      // Not this node's own: after a sleep of the machine they have been silent as well, and are there.
      if (options.canJudge?.() ?? true)
        await db
          .deleteFrom('agents')
          .where(
            'id',
            'in',
            lockAgents(db)
              .where('seen_at', '<', sql<Date>`now() - ${`${AGENT_SILENT_MS} milliseconds`}::interval`)
              .where('node_id', '!=', nodeId),
          )
          .execute()
      const missing = await findMissing(db, nodeId)
      for (const id of attempts.keys()) if (isOver(attempts.get(id), missing, id)) attempts.delete(id)
      const due = missing.filter(({ id }) => !busy.has(id) && (attempts.get(id)?.nextAt ?? 0) <= Date.now())
      const [revision] = due
      if (revision === undefined || signal.aborted) return false
      busy.add(revision.id)
      try {
        await attempt(revision)
      } finally {
        busy.delete(revision.id)
      }
      return due.length > 1
    },
  }
}

/** It has served for long enough, or is no longer the active one of a deployment. */
function isOver(attempts: Attempts | undefined, missing: readonly RevisionRow[], id: string): boolean {
  if (attempts === undefined || missing.some((revision) => revision.id === id)) return false
  return Date.now() - (attempts.servedAt ?? attempts.nextAt) > STEADY_MS
}

/** Active revisions that no process serves, and that no other node has built and will start again. */
async function findMissing(db: Database, nodeId: string): Promise<RevisionRow[]> {
  return db
    .selectFrom('revisions')
    .innerJoin('deployments', 'deployments.active_revision_id', 'revisions.id')
    .selectAll('revisions')
    .where('deployments.status', '!=', 'AWAITING_DELETE')
    .where((is) => is.or([is('revisions.built', 'is not', null), is('revisions.source', '=', 'external_docker')]))
    .where(isNotElsewhere(nodeId))
    .where((is) =>
      is.not(
        is.exists(
          is
            .selectFrom('agents')
            .select('agents.id')
            .whereRef('agents.revision_id', '=', 'revisions.id')
            .where('agents.state', 'in', ['starting', 'serving']),
        ),
      ),
    )
    .orderBy('revisions.number')
    .execute()
}

async function serveAgain(options: SupervisorOptions, revision: RevisionRow): Promise<void> {
  const { db, host, startLimitMs, signal } = options
  const deployment = await db.selectFrom('deployments').selectAll().where('id', '=', revision.deployment_id).executeTakeFirst()
  if (deployment === undefined) return
  const prepare = (await isReady(revision, options.builds))
    ? {}
    : { prepare: () => options.buildAgain({ revision, deployment, signal }) }
  const agent = await host.launch({ deployment, revision, signal, timeoutMs: startLimitMs, ...prepare })
  try {
    const serves = await db.transaction().execute(async (trx) => {
      const now = await trx.selectFrom('deployments').selectAll().where('id', '=', deployment.id).forUpdate().executeTakeFirst()
      if (!isStillActive(now, revision)) return false
      await makeServing(trx, agent)
      return true
    })
    if (!serves) await host.end(agent, { graceMs: 0 })
  } catch (error) {
    await host.end(agent, { graceMs: 0 })
    throw error
  }
}

/** A newer revision may have taken over while this one started. */
function isStillActive(deployment: DeploymentRow | undefined, revision: RevisionRow): boolean {
  return deployment !== undefined && deployment.status !== 'AWAITING_DELETE' && deployment.active_revision_id === revision.id
}
