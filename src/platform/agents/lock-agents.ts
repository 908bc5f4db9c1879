import type { Database, DatabaseTransaction } from '../database/schema.ts'

/**
 * The ids of the agents that a statement is about to change, to be narrowed by a `where`, with their rows locked. Whatever changes several of
 * them locks them in this one order: a node's beat and the swap of an agent would otherwise wait for each other, and PostgreSQL would end one.
 */
export const lockAgents = (db: Database | DatabaseTransaction) => db.selectFrom('agents').select('id').orderBy('id').forUpdate()
