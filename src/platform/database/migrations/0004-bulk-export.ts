import { type Kysely, sql } from 'kysely'

/** Destinations, exports (schedules among them) and their runs with lease and checkpoint. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table export_destinations (
    id uuid primary key,
    number bigint generated always as identity unique,
    workspace_id uuid not null references workspaces on delete cascade,
    destination_type text not null,
    display_name text not null,
    config jsonb not null,
    credentials bytea,
    credentials_keys jsonb not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  'create index export_destinations_newest_first on export_destinations (workspace_id, number desc)',
  // No reference to the destination or the tracing project: an export is a record of what was done, also when those are gone.
  `create table bulk_exports (
    id uuid primary key,
    number bigint generated always as identity unique,
    workspace_id uuid not null references workspaces on delete cascade,
    destination_id uuid not null,
    session_id uuid not null,
    start_time timestamptz not null,
    end_time timestamptz,
    filter text,
    format_version text not null,
    compression text not null,
    interval_hours integer,
    export_fields jsonb,
    source_export_id uuid references bulk_exports on delete cascade,
    slot integer,
    next_slot integer not null default 0,
    next_due_at timestamptz,
    status text not null,
    status_message text,
    run_count integer not null,
    started_at timestamptz,
    finished_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  'create index bulk_exports_newest_first on bulk_exports (workspace_id, number desc)',
  "create index bulk_exports_unfinished on bulk_exports (workspace_id, status) where status in ('CREATED', 'RUNNING')",
  "create index bulk_exports_schedules on bulk_exports (next_due_at) where status = 'INTERVAL_SCHEDULED'",
  // A slot of a schedule is spawned once, whoever does it and however often it is tried.
  'create unique index bulk_exports_one_a_slot on bulk_exports (source_export_id, slot) where source_export_id is not null',
  `create table bulk_export_runs (
    id uuid primary key,
    export_id uuid not null references bulk_exports on delete cascade,
    number integer not null,
    status text not null,
    window_start timestamptz not null,
    window_end timestamptz not null,
    retry_number integer not null default 0,
    errors jsonb,
    not_before timestamptz not null,
    attempt_started_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    losses integer not null default 0,
    upper_seq bigint,
    cursor_time timestamptz,
    cursor_id uuid,
    parts integer not null default 0,
    rows_written bigint not null default 0,
    bytes_written bigint not null default 0,
    late_rows bigint not null default 0,
    files jsonb not null default '[]',
    pending jsonb,
    lease_owner text,
    lease_token uuid,
    lease_expires_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    unique (export_id, number)
  )`,
  "create index bulk_export_runs_waiting on bulk_export_runs (not_before) where status = 'CREATED'",
  "create index bulk_export_runs_leased on bulk_export_runs (lease_expires_at) where status = 'RUNNING'",
]
