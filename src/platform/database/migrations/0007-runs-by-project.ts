import { type Kysely, sql } from 'kysely'

/**
 * All runs of a tracing project: those of a project that is deleted, and the reference to it that PostgreSQL looks up itself. The index of 0002
 * has the complete ones only.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index runs_by_project on runs (session_id)`.execute(db)
}
