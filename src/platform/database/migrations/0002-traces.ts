import { type Kysely, sql } from 'kysely'
import { JSON_KEY_DEPTH_MAX } from '../../../contract/filter/fields.ts'

/** Runs, the feedback on them, what is known of their attachments, and the functions that derive their other fields. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `alter table tracing_projects
    add column description text,
    add column extra text,
    add column reference_dataset_id uuid,
    add column end_time timestamptz`,
  'create sequence runs_ingested_seq',
  // JSON is kept as its text: it is written and exported more often than it is looked into. Ids are unique in a workspace only,
  // so that nobody can tell, or touch, the runs of another one.
  `create table runs (
    workspace_id uuid not null,
    id uuid not null,
    session_id uuid references tracing_projects on delete cascade,
    trace_id uuid,
    parent_run_id uuid,
    dotted_order text,
    order_derived boolean not null default false,
    name text,
    run_type text,
    start_time timestamptz,
    end_time timestamptz,
    first_token_time timestamptz,
    error text,
    inputs text,
    outputs text,
    extra text,
    events text,
    serialized text,
    tags text[],
    reference_example_id uuid,
    total_tokens bigint,
    prompt_tokens bigint,
    completion_tokens bigint,
    total_cost numeric,
    prompt_cost numeric,
    completion_cost numeric,
    usage_details text,
    posted boolean not null,
    patched boolean not null,
    ingested_seq bigint not null default nextval('runs_ingested_seq'),
    received_at timestamptz not null default now(),
    complete boolean not null generated always as (name is not null and session_id is not null and start_time is not null) stored,
    status text not null generated always as
      (case when error is not null then 'error'
        when end_time is not null and name is not null then 'success' else 'pending' end) stored,
    primary key (workspace_id, id)
  )`,
  // LZ4 is several times faster than PostgreSQL's own method; a server that was built without it keeps its own.
  `do $$ begin
    alter table runs
      alter column inputs set compression lz4,
      alter column outputs set compression lz4,
      alter column extra set compression lz4,
      alter column events set compression lz4,
      alter column serialized set compression lz4;
  exception when feature_not_supported then null;
  end $$`,
  'create index runs_by_start on runs (session_id, start_time, id) where complete',
  'create index runs_by_trace on runs (trace_id)',
  'create index runs_by_parent on runs (parent_run_id) where parent_run_id is not null',
  'create index runs_by_example on runs (reference_example_id) where reference_example_id is not null',
  `create table run_attachments (
    workspace_id uuid not null,
    run_id uuid not null,
    name text not null,
    content_type text not null,
    size_bytes bigint not null,
    primary key (workspace_id, run_id, name)
  )`,
  // No reference to the run: feedback may arrive before it.
  `create table feedback (
    workspace_id uuid not null references workspaces on delete cascade,
    id uuid not null,
    run_id uuid,
    trace_id uuid,
    session_id uuid references tracing_projects on delete cascade,
    key text not null,
    score double precision,
    value jsonb,
    comment text,
    correction jsonb,
    source jsonb,
    created_at timestamptz not null default now(),
    modified_at timestamptz not null default now(),
    primary key (workspace_id, id)
  )`,
  'create index feedback_by_run on feedback (run_id)',
  'create index feedback_by_trace on feedback (trace_id)',
  'create index feedback_by_project on feedback (session_id)',
  'create index feedback_newest_first on feedback (workspace_id, created_at desc, id)',
  'create index feedback_without_trace on feedback (workspace_id) where trace_id is null and run_id is not null',
  // What goes with a run when it is deleted, in whatever way.
  `create function delete_what_belongs_to_runs() returns trigger language plpgsql as $$ begin
    delete from feedback f using deleted d where f.run_id = d.id and f.workspace_id = d.workspace_id;
    delete from run_attachments a using deleted d where a.run_id = d.id and a.workspace_id = d.workspace_id;
    return null;
  end $$`,
  `create trigger runs_deleted after delete on runs
    referencing old table as deleted for each statement execute function delete_what_belongs_to_runs()`,
  // JSON that PostgreSQL cannot read, such as one nested too deeply, has no keys rather than breaking the query that looked.
  `create function run_json(document text) returns jsonb language plpgsql immutable parallel safe as $$ begin
    return document::jsonb;
  exception when others then return null;
  end $$`,
  // Every key of a JSON document as a path, with its value as text where it is not an object or a list. Lists add no step.
  `create function run_json_pairs(document jsonb) returns table (key text, value text) language sql immutable parallel safe as $$
    with recursive nodes as (
      select null::text as path, document as node, 0 as depth
      union all
      select case when child.key is null then parent.path
          when parent.path is null then child.key else parent.path || '.' || child.key end,
        child.node, parent.depth + (child.key is not null)::integer
      from nodes parent cross join lateral (
        select o.key, o.value as node
          from jsonb_each(case when jsonb_typeof(parent.node) = 'object' and parent.depth < ${JSON_KEY_DEPTH_MAX}
            then parent.node else '{}' end) o
        union all
        select null, a.value
          from jsonb_array_elements(case when jsonb_typeof(parent.node) = 'array' then parent.node else '[]' end) a
      ) child
    )
    select path, case when jsonb_typeof(node) in ('object', 'array') then null else node #>> '{}' end
    from nodes where path is not null
  $$`,
  `create function run_parent_ids(dotted_order text) returns uuid[] language sql immutable parallel safe as $$
    select coalesce(array_agg(right(segment, 36)::uuid order by place), '{}')
    from unnest(string_to_array(dotted_order, '.')) with ordinality as segments (segment, place)
    where place < array_length(string_to_array(dotted_order, '.'), 1)
  $$`,
  // Null for a run without feedback. The values of feedback that are texts are counted.
  `create function run_feedback_stats(workspace uuid, run uuid) returns json language sql stable parallel safe as $$
    select json_object_agg(keys.key, json_build_object('n', keys.n, 'avg', keys.average, 'stdev', keys.deviation,
      'values', coalesce((
        select json_object_agg(texts.value, texts.n order by texts.value) from (
          select f.value #>> '{}' as value, count(*) as n from feedback f
          where f.run_id = run and f.workspace_id = workspace and f.key = keys.key and jsonb_typeof(f.value) = 'string'
          group by 1
        ) texts), '{}'::json)) order by keys.key)
    from (
      select f.key, count(*) as n, avg(f.score) as average, stddev_samp(f.score) as deviation
      from feedback f where f.run_id = run and f.workspace_id = workspace group by f.key
    ) keys
  $$`,
  // The conversation that the run belongs to, by the names that clients use for it.
  `create function run_thread_id(extra text) returns text language sql immutable parallel safe as $$
    select coalesce(metadata ->> 'session_id', metadata ->> 'thread_id', metadata ->> 'conversation_id')
    from (select run_json(extra) -> 'metadata' as metadata) as of_run where jsonb_typeof(metadata) = 'object'
  $$`,
  `create function run_trace_tier(workspace uuid, run uuid, trace uuid) returns text language sql stable parallel safe as $$
    select case when exists (select 1 from feedback f where f.run_id = run and f.workspace_id = workspace)
      or exists (select 1 from feedback f where f.trace_id = trace and f.workspace_id = workspace)
      then 'longlived' else 'shortlived' end
  $$`,
]
