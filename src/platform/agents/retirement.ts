import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../database/schema.ts'
import type { Log } from '../log.ts'
import type { AgentHost, HostedAgent } from './host.ts'
import type { AgentRoutes } from './routes.ts'

/** Other processes hear of a swap within this time; what they send later is told to go elsewhere. Milliseconds. */
const NEWS_MS = 2000

/** What an agent has at least, after its last answer, to finish and to write its state. Milliseconds. */
const STOP_GRACE_MS = 5000

export interface RetirementOptions {
  readonly db: Database
  readonly host: AgentHost
  readonly routes: AgentRoutes
  /** How long streams in flight may go on; those of a deleted deployment get `deletedLimitMs`. */
  readonly drainLimitMs: number
  readonly deletedLimitMs: number
  readonly log: Log
}

/** Lets replaced agents of this node finish what they have in flight, then ends them. */
export function createRetirement({ db, host, routes, drainLimitMs, deletedLimitMs, log }: RetirementOptions): {
  round(): Promise<void>
} {
  const retiring = new Set<string>()

  const retire = async (agent: HostedAgent, limitMs: number) => {
    try {
      const deadline = Date.now() + limitMs
      const target = { ...agent.process.address, revisionId: agent.revisionId, agentId: agent.id }
      // Other nodes that have not heard yet are told at the door.
      routes.close(target)
      await sleep(Math.min(NEWS_MS, limitMs))
      const { cut } = await routes.drain(target, { limitMs })
      if (cut > 0) log.info({ revisionId: agent.revisionId, cut }, 'streams were cut at the drain limit')
      // It ends as soon as it is idle: until the limit it may still run in the background.
      await host.end(agent, { graceMs: Math.max(STOP_GRACE_MS, deadline - Date.now()) })
    } catch (error) {
      log.warn(
        { revisionId: agent.revisionId, error: (error as Error).message },
        'a replaced agent server could not be ended; trying again',
      )
    } finally {
      retiring.delete(agent.id)
    }
  }

  return {
    round: async () => {
      const rows = await db
        .selectFrom('agents')
        .innerJoin('deployments', 'deployments.id', 'agents.deployment_id')
        .select(['agents.id', 'deployments.status'])
        .where('agents.state', '=', 'draining')
        .execute()
      for (const { id, status } of rows) {
        const agent = host.find(id)
        if (agent === undefined || retiring.has(id)) continue
        retiring.add(id)
        void retire(agent, status === 'AWAITING_DELETE' ? deletedLimitMs : drainLimitMs)
      }
    },
  }
}
