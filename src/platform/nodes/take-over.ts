import { sql } from 'kysely'
import { lockAgents } from '../agents/lock-agents.ts'
import { reclaimRuns } from '../bulk-export/work/lease.ts'
import type { ExportSettings } from '../bulk-export/settings.ts'
import type { Clock } from '../clock.ts'
import { reclaimRevisions } from '../control-plane/lifecycle/lease.ts'
import { announce } from '../database/notifications.ts'
import type { Database } from '../database/schema.ts'
import type { Log } from '../log.ts'
import type { Membership } from './membership.ts'

export interface TakeOverOptions {
  readonly db: Database
  readonly membership: Membership
  readonly clock: Clock
  readonly exportSettings: ExportSettings
  readonly log: Log
}

/**
 * Takes away what nodes that are gone had in hand: revisions, export runs, agents. All of it waits for another node from then on. A node that
 * is there after all finds its leases taken, and ends what it has in hand. @returns how many nodes there were.
 */
export async function takeOver({ db, membership, clock, exportSettings, log }: TakeOverOptions): Promise<number> {
  const gone = await membership.gone()
  for (const nodeId of gone) {
    const revisions = await reclaimRevisions(db, { deadOwner: nodeId, log })
    const exportRuns = await reclaimRuns({ db, clock, settings: exportSettings, deadOwner: nodeId })
    const agents = await db
      .deleteFrom('agents')
      .where('id', 'in', lockAgents(db).where('node_id', '=', nodeId))
      .returning('id')
      .execute()
    // Last: until then the next leader would begin again.
    await db.deleteFrom('nodes').where('id', '=', nodeId).execute()
    log.warn(
      { nodeId, revisions, exportRuns, agents: agents.length },
      'a node is gone: what it had in hand is taken up by others',
    )
    await announce(db, 'agents')
    await announce(db, 'work')
  }
  return gone.length
}

/** Notes in the database which node leads, for whoever looks. In one order: two nodes may do it at once. */
export async function noteLeader(db: Database, nodeId: string): Promise<void> {
  await sql`
    update nodes set leads_since = case when id = ${nodeId} then clock_timestamp() end
    where id in (select id from nodes where id = ${nodeId} or leads_since is not null order by id for update)`.execute(db)
}
