import type { ColumnType, Generated, GeneratedAlways, Kysely, Selectable, Transaction } from 'kysely'
import type { Compression, FormatVersion } from '../../contract/bulk-export.ts'
import type { SourceConfig } from '../../contract/deployment.ts'
import type { DestinationConfig } from '../../contract/destination.ts'
import type { ExportRunStatus, ExportStatus } from '../../contract/export-status.ts'
import type { ExportableField } from '../../contract/exportable-fields.ts'
import type { LogLevel, LogType } from '../../contract/log.ts'
import type { Source } from '../../contract/revision.ts'
import type { RunStatus } from '../../contract/run.ts'
import type { DeploymentStatus, RevisionStatus } from '../../contract/status.ts'
import type { BuiltAgent } from '../control-plane/sources/build.ts'

type Timestamp = ColumnType<Date, Date | string | undefined, Date | string>
type NullableTimestamp = ColumnType<Date | null, Date | string | null | undefined, Date | string | null>
/** A JSON column: read as a value, written as text. */
type Json<T> = ColumnType<T, string, string>

export interface WorkspaceTable {
  id: string
  name: string
  plan: string
  created_at: Timestamp
}

export interface InstallationTable {
  id: Generated<string>
  singleton: Generated<boolean>
  key_check: Buffer
  oldest_code: ColumnType<string | null, string | null | undefined, string | null>
}

/** A process that shares the database. Its row is there from its start until others take it for gone. */
export interface NodeTable {
  id: string
  role: 'all' | 'api' | 'queue'
  /** Where other nodes reach the agents that it runs. */
  url: string | null
  /** Names of the master keys that it opens secrets with, the one that it seals with first. */
  key_names: ColumnType<string[], string | undefined, string>
  started_at: Timestamp
  seen_at: Timestamp
  /** Since when it does what only one process does; null: it does not. */
  leads_since: NullableTimestamp
}

export interface ApiKeyTable {
  id: string
  workspace_id: string
  key_hash: Buffer
  scope: Generated<'full' | 'ingest'>
  /** The agent that it was made for; it goes with it. */
  agent_id: ColumnType<string | null, string | null | undefined, string | null>
  created_at: Timestamp
}

export interface TracingProjectTable {
  id: string
  workspace_id: string
  name: string
  created_at: Timestamp
  description: string | null
  /** JSON, as text. */
  extra: string | null
  reference_dataset_id: string | null
  end_time: NullableTimestamp
}

export interface DeploymentTable {
  id: string
  workspace_id: string
  name: string
  display_name: string | null
  slug: string
  status: DeploymentStatus
  source: Source
  source_config: Json<SourceConfig>
  tracing_project_id: string | null
  latest_revision_id: string | null
  active_revision_id: string | null
  delete_tracing_project: Generated<boolean>
  created_at: Timestamp
  updated_at: Timestamp
}

export interface RevisionTable {
  id: string
  /** Grows with every revision made: the order of creation, without the ties that a clock has. */
  number: Generated<string>
  deployment_id: string
  status: RevisionStatus
  status_message: string | null
  status_since: Timestamp
  source: Source
  repo_ref: string | null
  graph_config_path: string | null
  image_uri: string | null
  repo_commit_sha: string | null
  /** The environment of the agent, encrypted; a copy of its own, so that an older revision starts again as it was. */
  secrets: Buffer | null
  secret_names: ColumnType<string[], string | undefined, string>
  /** Set once the build is done. */
  built: Json<BuiltAgent> | null
  /** The node whose disk holds it; null: not known. */
  built_on: ColumnType<string | null, string | null | undefined, string | null>
  remote_reconciled: Generated<boolean>
  interrupt_requested_at: NullableTimestamp
  /** How often a worker was lost with this revision in hand. */
  losses: Generated<number>
  lease_owner: string | null
  lease_token: string | null
  lease_expires_at: NullableTimestamp
  created_at: Timestamp
  updated_at: Timestamp
}

export interface RevisionTransitionTable {
  id: Generated<string>
  revision_id: string
  from_status: RevisionStatus | null
  to_status: RevisionStatus
  reason: string
  at: Timestamp
}

export interface RevisionLogTable {
  id: Generated<string>
  revision_id: string
  type: LogType
  level: LogLevel
  message: string
  at: Timestamp
}

/** One agent server: a process, a container, a pod. `serving`: requests go there; `draining`: what is in flight finishes. */
export interface AgentTable {
  id: string
  deployment_id: string
  revision_id: string
  node_id: string
  state: 'starting' | 'serving' | 'draining'
  host: string | null
  port: number | null
  /** What its runtime knows it by (`AgentProcess.reference`). */
  reference: string | null
  seen_at: Timestamp
  created_at: Timestamp
}

/** A deployment with `build_on_push`: the head of its branch at the last look, and when the next one is due. */
export interface BranchWatchTable {
  deployment_id: string
  branch: string | null
  head: string | null
  /** Looks in a row that failed. */
  failures: Generated<number>
  next_look_at: Timestamp
}

/** A run. Its JSON is text; ids are unique within a workspace. Written by `traces/ingest/store.ts` alone. */
export interface RunTable {
  workspace_id: string
  id: string
  session_id: string | null
  trace_id: string | null
  parent_run_id: string | null
  dotted_order: string | null
  /** True when `dotted_order` was not sent: then it follows from the parents that are known. */
  order_derived: Generated<boolean>
  name: string | null
  run_type: string | null
  start_time: NullableTimestamp
  end_time: NullableTimestamp
  first_token_time: NullableTimestamp
  error: string | null
  inputs: string | null
  outputs: string | null
  extra: string | null
  events: string | null
  serialized: string | null
  tags: string[] | null
  reference_example_id: string | null
  total_tokens: string | null
  prompt_tokens: string | null
  completion_tokens: string | null
  total_cost: string | null
  prompt_cost: string | null
  completion_cost: string | null
  usage_details: string | null
  posted: boolean
  patched: boolean
  /** Grows with every run that becomes complete: see `traces/ingested-sequence.ts`. */
  ingested_seq: Generated<string>
  received_at: Timestamp
  /** Lists and exports show complete runs only: those with a name, a tracing project and a start. */
  complete: GeneratedAlways<boolean>
  status: GeneratedAlways<RunStatus>
}

export interface RunAttachmentTable {
  workspace_id: string
  run_id: string
  name: string
  content_type: string
  size_bytes: string
}

export interface FeedbackTable {
  workspace_id: string
  id: string
  run_id: string | null
  trace_id: string | null
  session_id: string | null
  key: string
  score: number | null
  value: ColumnType<unknown, string | null, string | null>
  comment: string | null
  correction: ColumnType<unknown, string | null, string | null>
  source: ColumnType<unknown, string | null, string | null>
  created_at: Timestamp
  modified_at: Timestamp
}

export interface ExportDestinationTable {
  id: string
  number: Generated<string>
  workspace_id: string
  destination_type: 's3'
  display_name: string
  config: Json<DestinationConfig>
  /** Encrypted; null: the storage client's environment chain is used. */
  credentials: Buffer | null
  credentials_keys: ColumnType<string[], string, string>
  created_at: Timestamp
  updated_at: Timestamp
}

/** An export, or a schedule: then `interval_hours` is set, and `next_slot` is the number of the next window to spawn. */
export interface BulkExportTable {
  id: string
  /** The order of creation, without the ties that a clock has. */
  number: Generated<string>
  workspace_id: string
  destination_id: string
  session_id: string
  start_time: ColumnType<Date, string, string>
  end_time: ColumnType<Date | null, string | null, string | null>
  filter: string | null
  format_version: FormatVersion
  compression: Compression
  interval_hours: number | null
  export_fields: ColumnType<ExportableField[] | null, string | null, string | null>
  source_export_id: string | null
  slot: number | null
  next_slot: Generated<number>
  next_due_at: NullableTimestamp
  status: ExportStatus
  status_message: string | null
  run_count: number
  started_at: NullableTimestamp
  finished_at: NullableTimestamp
  created_at: Timestamp
  updated_at: Timestamp
}

/** The file that an export run is about to write: made known before the bucket hears of it. */
export interface PendingPart {
  /** Place of the last run in it. */
  readonly cursor: { readonly time: string; readonly id: string }
  readonly key: string
  readonly rows: number
  readonly uploadId: string | null
}

export interface ExportedFile {
  readonly key: string
  readonly rows: number
  readonly bytes: number
}

/** One UTC day of an export: its lease, and its checkpoint. */
export interface BulkExportRunTable {
  id: string
  export_id: string
  number: number
  status: ExportRunStatus
  window_start: ColumnType<Date, string, string>
  window_end: ColumnType<Date, string, string>
  /** How many attempts have failed; `errors` has one entry for each, `retry_0` the first. */
  retry_number: Generated<number>
  errors: ColumnType<Record<string, string> | null, string | null | undefined, string | null>
  not_before: Timestamp
  attempt_started_at: NullableTimestamp
  started_at: NullableTimestamp
  finished_at: NullableTimestamp
  /** Workers lost in a row, without a checkpoint in between. */
  losses: Generated<number>
  /** The set of runs is fixed by this ingest number. */
  upper_seq: ColumnType<string | null, string | null | undefined, string | null>
  cursor_time: ColumnType<Date | null, string | null | undefined, string | null>
  cursor_id: ColumnType<string | null, string | null | undefined, string | null>
  parts: Generated<number>
  rows_written: ColumnType<string, number | undefined, number>
  bytes_written: ColumnType<string, number | undefined, number>
  late_rows: ColumnType<string, number | undefined, number>
  files: ColumnType<ExportedFile[], string | undefined, string>
  pending: ColumnType<PendingPart | null, string | null | undefined, string | null>
  lease_owner: ColumnType<string | null, string | null | undefined, string | null>
  lease_token: ColumnType<string | null, string | null | undefined, string | null>
  lease_expires_at: NullableTimestamp
  created_at: Timestamp
  updated_at: Timestamp
}

export interface Schema {
  workspaces: WorkspaceTable
  installation: InstallationTable
  nodes: NodeTable
  api_keys: ApiKeyTable
  tracing_projects: TracingProjectTable
  deployments: DeploymentTable
  revisions: RevisionTable
  revision_transitions: RevisionTransitionTable
  revision_logs: RevisionLogTable
  agents: AgentTable
  runs: RunTable
  run_attachments: RunAttachmentTable
  feedback: FeedbackTable
  branch_watches: BranchWatchTable
  export_destinations: ExportDestinationTable
  bulk_exports: BulkExportTable
  bulk_export_runs: BulkExportRunTable
}

export type Database = Kysely<Schema>
export type DatabaseTransaction = Transaction<Schema>
export type DeploymentRow = Selectable<DeploymentTable>
export type RevisionRow = Selectable<RevisionTable>
export type ExportDestinationRow = Selectable<ExportDestinationTable>
export type BulkExportRow = Selectable<BulkExportTable>
export type BulkExportRunRow = Selectable<BulkExportRunTable>
