import { sql } from 'kysely'
import { lockAgents } from '../agents/lock-agents.ts'
import { boundIdle, reclaimRuns } from '../bulk-export/work/lease.ts'
import type { ExportSettings } from '../bulk-export/settings.ts'
import type { Clock } from '../clock.ts'
import { reclaimRevisions } from '../control-plane/lifecycle/lease.ts'
import { LEASED } from '../control-plane/lifecycle/states.ts'
import { announce } from '../database/notifications.ts'
import type { Database } from '../database/schema.ts'
import type { Log } from '../log.ts'
import type { Membership } from './membership.ts'

export interface TakeOverOptions {
  readonly db: Database
  readonly membership: Pick<Membership, 'gone'>
  readonly clock: Clock
  readonly exportSettings: ExportSettings
  readonly log: Log
}

/**
 * Takes away what nodes that are gone had in hand: revisions, export runs, agents. All of it waits for another node from then
 * on. A node that is there after all finds its leases taken, and ends what it has in hand. @returns how many nodes there were.
 */
export async function takeOver({ db, membership, clock, exportSettings, log }: TakeOverOptions): Promise<number> {
  let count = 0
  for (const nodeId of await membership.gone()) {
    const taken = await takeFrom(nodeId, { db, membership })
    if (taken === null) continue
    count += 1
    log.warn({ nodeId, ...taken }, 'a node is gone: what it had in hand is taken up by others')
    // At once: should this process end here, whoever looks for leases that ran out takes them back.
    await reclaimRevisions(db, { log })
    await reclaimRuns({ db, clock, settings: exportSettings })
    await announce(db, 'agents')
    await announce(db, 'work')
  }
  return count
}

interface Taken {
  readonly revisions: number
  readonly exportRuns: number
  readonly agents: number
}

/**
 * Ends the leases of a node, so that it can neither use nor renew them, and forgets its agents and the node: all or nothing. A
 * node says that it is there by writing its row, which is locked here: one that came back before loses nothing (null), one that
 * comes back after is new.
 */
async function takeFrom(nodeId: string, { db, membership }: Pick<TakeOverOptions, 'db' | 'membership'>): Promise<Taken | null> {
  return db.transaction().execute(async (trx) => {
    // This process may be stopped here while the other comes back.
    await boundIdle(trx)
    await trx.selectFrom('nodes').select('id').where('id', '=', nodeId).forUpdate().execute()
    if (!(await membership.gone()).includes(nodeId)) return null
    const lost = { lease_token: sql<string>`gen_random_uuid()`, lease_expires_at: sql<Date>`clock_timestamp()` }
    const inHand = trx.selectFrom('revisions').where('lease_owner', '=', nodeId).where('status', 'in', LEASED)
    const runsInHand = trx.selectFrom('bulk_export_runs').where('lease_owner', '=', nodeId).where('status', '=', 'RUNNING')
    // In the order of all others.
    await trx
      .selectFrom('deployments')
      .select('id')
      .where('id', 'in', inHand.select('deployment_id'))
      .orderBy('id')
      .forUpdate()
      .execute()
    const revisions = await trx
      .updateTable('revisions')
      .set(lost)
      .where('id', 'in', inHand.select('id').orderBy('id').forUpdate())
      .executeTakeFirst()
    const agents = await trx
      .deleteFrom('agents')
      .where('id', 'in', lockAgents(trx).where('node_id', '=', nodeId))
      .executeTakeFirst()
    await trx
      .selectFrom('bulk_exports')
      .select('id')
      .where('id', 'in', runsInHand.select('export_id'))
      .orderBy('id')
      .forUpdate()
      .execute()
    const exportRuns = await trx
      .updateTable('bulk_export_runs')
      .set(lost)
      .where('id', 'in', runsInHand.select('id').orderBy('id').forUpdate())
      .executeTakeFirst()
    await trx.deleteFrom('nodes').where('id', '=', nodeId).execute()
    return {
      revisions: Number(revisions.numUpdatedRows),
      exportRuns: Number(exportRuns.numUpdatedRows),
      agents: Number(agents.numDeletedRows),
    }
  })
}

/** Notes in the database which node leads, for whoever looks. In one order: two nodes may do it at once. */
export async function noteLeader(db: Database, nodeId: string): Promise<void> {
  await sql`
    update nodes set leads_since = case when id = ${nodeId} then clock_timestamp() end
    where id in (select id from nodes where id = ${nodeId} or leads_since is not null order by id for update)`.execute(db)
}
