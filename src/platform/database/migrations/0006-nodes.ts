import { type Kysely, sql } from 'kysely'

/** The processes that share the database, on which of them a build lies, and what code the schema still works with. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table nodes (
    id text primary key,
    role text not null,
    url text,
    key_names jsonb not null default '[]',
    started_at timestamptz not null default now(),
    seen_at timestamptz not null default now(),
    leads_since timestamptz
  )`,
  // Null: not known, as of builds that older code made.
  'alter table revisions add column built_on text',
  // The last migration that code must at least know to work with this schema. Null: any, since migrations only add.
  'alter table installation add column oldest_code text',
]
