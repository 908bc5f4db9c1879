import { type Kysely, sql } from 'kysely'

/** Workspaces and keys, deployments, revisions with their history and logs, and the agent servers that run. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table workspaces (
    id uuid primary key,
    name text not null,
    plan text not null,
    created_at timestamptz not null default now()
  )`,
  // What only the right key opens: one row, so that every process on this database can tell whether it has that key.
  `create table installation (
    singleton boolean primary key default true check (singleton),
    key_check bytea not null
  )`,
  `create table api_keys (
    id uuid primary key,
    workspace_id uuid not null references workspaces on delete cascade,
    key_hash bytea not null unique,
    scope text not null default 'full',
    created_at timestamptz not null default now()
  )`,
  `create table tracing_projects (
    id uuid primary key,
    workspace_id uuid not null references workspaces on delete cascade,
    name text not null,
    created_at timestamptz not null default now(),
    unique (workspace_id, name)
  )`,
  `create table deployments (
    id uuid primary key,
    workspace_id uuid not null references workspaces on delete cascade,
    name text not null,
    display_name text,
    slug text not null unique,
    status text not null,
    source text not null,
    source_config jsonb not null,
    tracing_project_id uuid references tracing_projects on delete set null,
    latest_revision_id uuid,
    active_revision_id uuid,
    delete_tracing_project boolean not null default false,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    unique (workspace_id, name)
  )`,
  'create index deployments_by_age on deployments (workspace_id, created_at desc, id)',
  `create index deployments_watched on deployments (id)
    where source = 'git_host' and (source_config->>'build_on_push') = 'true' and status <> 'AWAITING_DELETE'`,
  `create table branch_watches (
    deployment_id uuid primary key references deployments on delete cascade,
    branch text,
    head text,
    failures integer not null default 0,
    next_look_at timestamptz not null default now()
  )`,
  `create table revisions (
    id uuid primary key,
    number bigint generated always as identity unique,
    deployment_id uuid not null references deployments on delete cascade,
    status text not null,
    status_message text,
    status_since timestamptz not null default now(),
    source text not null,
    repo_ref text,
    graph_config_path text,
    image_uri text,
    repo_commit_sha text,
    secrets bytea,
    secret_names jsonb not null default '[]',
    built jsonb,
    remote_reconciled boolean not null default false,
    interrupt_requested_at timestamptz,
    losses integer not null default 0,
    lease_owner text,
    lease_token uuid,
    lease_expires_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  'create index revisions_newest_first on revisions (deployment_id, number desc)',
  `create index revisions_unfinished on revisions (number)
    where status not in ('DEPLOYED', 'CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED', 'SKIPPED', 'INTERRUPTED')`,
  // The rule of the queue, held by the database as well: one revision of a deployment is worked on at a time.
  `create unique index revisions_one_worked_on on revisions (deployment_id)
    where status in ('AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING')`,
  `create table revision_transitions (
    id bigint generated always as identity primary key,
    revision_id uuid not null references revisions on delete cascade,
    from_status text,
    to_status text not null,
    reason text not null,
    at timestamptz not null default clock_timestamp()
  )`,
  'create index revision_transitions_of on revision_transitions (revision_id, id)',
  `create table revision_logs (
    id bigint generated always as identity primary key,
    revision_id uuid not null references revisions on delete cascade,
    type text not null,
    level text not null,
    message text not null,
    at timestamptz not null
  )`,
  'create index revision_logs_of on revision_logs (revision_id, type, id)',
  `create table agents (
    id uuid primary key,
    deployment_id uuid not null references deployments on delete cascade,
    revision_id uuid not null,
    node_id text not null,
    state text not null,
    host text,
    port integer,
    pid integer,
    process_started_at text,
    seen_at timestamptz not null default now(),
    created_at timestamptz not null default now()
  )`,
  // One process a revision: two nodes that want to start the same one cannot both.
  `create unique index agents_one_a_revision on agents (revision_id) where state in ('starting', 'serving')`,
  // A key that a deployed agent traces with ends with the agent.
  'alter table api_keys add column agent_id uuid references agents on delete cascade',
]
