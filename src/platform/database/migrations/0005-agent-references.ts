import { type Kysely, sql } from 'kysely'

/**
 * An agent may be a container as well as a process: what names it is one text that its runtime understands. The columns of processes
 * stay, for a platform of the version before that runs meanwhile. The installation gets a name, by which it knows its containers.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table agents add column reference text`.execute(db)
  await sql`
    update agents set reference = 'process:' || pid || ':' || process_started_at
    where pid is not null and process_started_at is not null`.execute(db)
  await sql`alter table installation add column id uuid not null default gen_random_uuid()`.execute(db)
}
