import { sql } from 'kysely'
import type { Database, DatabaseTransaction } from '../../database/schema.ts'
import type { Log } from '../../log.ts'

/** The revisions that have ended in transactions that are not committed yet. */
const ENDED = new WeakMap<DatabaseTransaction, string[]>()

/** Notes that a revision ends in this transaction, for {@link tellingEnds}. */
export function noteEnd(trx: DatabaseTransaction, revisionId: string): void {
  ENDED.get(trx)?.push(revisionId)
}

/** Runs a transaction, and tells the platform's log of each revision that ended in it: one line, once it is committed. */
export async function tellingEnds<T>(
  db: Database,
  log: Log | undefined,
  work: (trx: DatabaseTransaction) => Promise<T>,
): Promise<T> {
  const { result, ends } = await db.transaction().execute(async (trx) => {
    const ended: string[] = []
    ENDED.set(trx, ended)
    const result = await work(trx)
    return { result, ends: log === undefined || ended.length === 0 ? [] : await describeEnds(trx, ended) }
  })
  // What is in a field is escaped.
  for (const end of ends) log?.info(end, 'revision ended')
  return result
}

interface RevisionEnd {
  readonly deployment: string
  readonly revisionId: string
  readonly status: string
  /** Since it was made. */
  readonly seconds: number
}

async function describeEnds(trx: DatabaseTransaction, ids: readonly string[]): Promise<RevisionEnd[]> {
  return trx
    .selectFrom('revisions')
    .innerJoin('deployments', 'deployments.id', 'revisions.deployment_id')
    .select(['deployments.name as deployment', 'revisions.id as revisionId', 'revisions.status'])
    .select(sql<number>`round(extract(epoch from clock_timestamp() - revisions.created_at), 1)::float8`.as('seconds'))
    .where('revisions.id', 'in', ids)
    .orderBy('revisions.number')
    .execute()
}
