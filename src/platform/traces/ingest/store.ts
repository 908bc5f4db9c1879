import { type RawBuilder, sql } from 'kysely'
import type { Database, DatabaseTransaction } from '../../database/schema.ts'
import { type FeedbackWrite, holdProjectsOfFeedback, insertFeedback } from '../feedback.ts'
import { joinIngestedSequence } from '../ingested-sequence.ts'
import { resolveProjects } from '../projects.ts'
import { deriveDottedOrders, lockTraces } from './derive-order.ts'
import { mergeWrites, type RunRow } from './merge.ts'
import { IngestRefusal } from './refusal.ts'
import type { RunWrite } from './run-write.ts'

/** What is kept of an attachment: its content is not. */
export interface AttachmentWrite {
  readonly runId: string
  readonly name: string
  readonly contentType: string
  readonly bytes: number
}

export interface IngestedBatch {
  readonly runs: readonly RunWrite[]
  readonly feedback?: readonly FeedbackWrite[]
  readonly attachments?: readonly AttachmentWrite[]
}

/** Columns that place a run. Once known they stay: exports and trees rely on them. */
const PLACE_COLUMNS = {
  session_id: 'uuid',
  trace_id: 'uuid',
  parent_run_id: 'uuid',
  dotted_order: 'text',
  start_time: 'timestamptz',
} as const
const CONTENT_COLUMNS = {
  name: 'text',
  run_type: 'text',
  end_time: 'timestamptz',
  first_token_time: 'timestamptz',
  error: 'text',
  inputs: 'text',
  outputs: 'text',
  extra: 'text',
  events: 'text',
  serialized: 'text',
  tags: 'text[]',
  reference_example_id: 'uuid',
  total_tokens: 'bigint',
  prompt_tokens: 'bigint',
  completion_tokens: 'bigint',
  total_cost: 'numeric',
  prompt_cost: 'numeric',
  completion_cost: 'numeric',
  usage_details: 'text',
} as const
const COLUMNS = { id: 'uuid', ...PLACE_COLUMNS, ...CONTENT_COLUMNS, posted: 'boolean', patched: 'boolean' } as const

const UPSERT = buildUpsert()

/**
 * Stores a request's runs, feedback and attachments in one transaction: when it returns they are durable, when it throws nothing
 * is there. A batch that comes again changes nothing; a patch may come before its post.
 * @throws {IngestRefusal} 404 for a tracing project of another workspace, 409 for a run that is in another trace already.
 */
export async function storeBatch(db: Database, workspaceId: string, batch: IngestedBatch): Promise<void> {
  const rows = mergeWrites(batch.runs)
  for (let attempt = 1; ; attempt += 1) {
    try {
      await storeOnce(db, { workspaceId, rows, batch })
      return
    } catch (error) {
      const { code } = error as { code?: string }
      if (attempt === ATTEMPTS || code === undefined || !PASSING.has(code)) throw error
    }
  }
}

/** A tracing project that was deleted or renamed in between (it is made anew), and what PostgreSQL cuts short so that others get on. */
const PASSING = new Set(['23503', '40P01', '40001'])
const ATTEMPTS = 5

async function storeOnce(
  db: Database,
  { workspaceId, rows, batch }: { workspaceId: string; rows: readonly RunRow[]; batch: IngestedBatch },
): Promise<void> {
  const { feedback = [] } = batch
  await db.transaction().execute(async (trx) => {
    if (feedback.length > 0) await holdProjectsOfFeedback(trx, { workspaceId, feedback })
    if (rows.length > 0) await storeRuns(trx, workspaceId, rows)
    if (feedback.length > 0) await insertFeedback(trx, { workspaceId, feedback })
    if (batch.attachments !== undefined && batch.attachments.length > 0)
      await storeAttachments(trx, workspaceId, batch.attachments)
    // Last: what it locks is in no order, so nothing may be waited for after it.
    if (rows.length > 0 && (await isFeedbackWaiting(trx, workspaceId))) await fillTracesOfFeedback(trx, workspaceId)
  })
}

async function storeRuns(trx: DatabaseTransaction, workspaceId: string, given: readonly RunRow[]): Promise<void> {
  const rows = await placeRows(trx, workspaceId, given)
  const projects = await resolveProjects(trx, { workspaceId, rows })
  const written = rows.map((row) => ({ ...row, session_id: projects(row) }))
  const derived = rows.flatMap((row) => (row.dotted_order === null && row.trace_id !== null ? [row.trace_id] : []))
  const traces = [...new Set(derived)].toSorted()
  if (traces.length > 0) await lockTraces(trx, traces)
  // Not before: while this waited for a project that is deleted, an export that begins would wait for it, and all other ingests for that.
  await joinIngestedSequence(trx)
  await sql`${UPSERT.head(workspaceId)} json_to_recordset(${JSON.stringify(written)}::json) ${UPSERT.tail}`.execute(trx)
  if (traces.length > 0) await deriveDottedOrders(trx, workspaceId, traces)
}

async function isFeedbackWaiting(trx: DatabaseTransaction, workspaceId: string): Promise<boolean> {
  const waiting = trx.selectFrom('feedback').select('id').where('workspace_id', '=', workspaceId).where('trace_id', 'is', null)
  return (await waiting.where('run_id', 'is not', null).limit(1).executeTakeFirst()) !== undefined
}

interface Stored {
  id: string
  trace_id: string | null
  parent_run_id: string | null
}

/**
 * A run stays in its trace. One that came without a trace finds it through what is stored of itself, or through its parent.
 * @throws {IngestRefusal} 409, 422 for a run with a parent that is in no trace that is known.
 */
async function placeRows(trx: DatabaseTransaction, workspaceId: string, rows: readonly RunRow[]): Promise<RunRow[]> {
  const lost = rows.filter((row) => row.trace_id === null)
  const wanted = [...rows.map((row) => row.id), ...lost.flatMap((row) => row.parent_run_id ?? [])]
  const { rows: stored } = await sql<Stored>`
    select id, trace_id, parent_run_id from runs where workspace_id = ${workspaceId} and id = any(${wanted}::uuid[])`.execute(trx)
  const known = new Map(stored.map((run) => [run.id, run]))
  const traces = new Map([...stored, ...rows].flatMap((run) => (run.trace_id === null ? [] : [[run.id, run.trace_id]])))
  return rows.map((row) => {
    const before = known.get(row.id)
    if (before?.trace_id && row.trace_id !== null && before.trace_id !== row.trace_id) {
      throw new IngestRefusal(
        409,
        `run ${row.id} is in the trace ${before.trace_id} already, and cannot be in ${row.trace_id} too`,
      )
    }
    if (row.trace_id !== null || before?.trace_id) return row
    const trace = row.parent_run_id === null ? null : traces.get(row.parent_run_id)
    if (trace === undefined && row.posted) {
      throw new IngestRefusal(
        422,
        `run ${row.id}: it has neither trace_id nor dotted_order, and its parent ${row.parent_run_id} is not known`,
      )
    }
    return { ...row, trace_id: trace ?? null }
  })
}

async function storeAttachments(
  trx: DatabaseTransaction,
  workspaceId: string,
  attachments: readonly AttachmentWrite[],
): Promise<void> {
  const rows = new Map(
    attachments.map(({ runId, name, contentType, bytes }) => [
      `${runId} ${name}`,
      { workspace_id: workspaceId, run_id: runId, name, content_type: contentType, size_bytes: String(bytes) },
    ]),
  )
  await trx
    .insertInto('run_attachments')
    .values([...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row))
    .onConflict((conflict) =>
      conflict.columns(['workspace_id', 'run_id', 'name']).doUpdateSet((excluded) => ({
        content_type: excluded.ref('excluded.content_type'),
        size_bytes: excluded.ref('excluded.size_bytes'),
      })),
    )
    .execute()
}

/**
 * Feedback that came before its run learns its trace, so that the whole trace is kept longer. Rows that others hold are theirs to
 * fill.
 */
async function fillTracesOfFeedback(trx: DatabaseTransaction, workspaceId: string): Promise<void> {
  await sql`
    update feedback set trace_id = found.trace_id from (
      select f.id, r.trace_id from feedback f join runs r on r.workspace_id = f.workspace_id and r.id = f.run_id
      where f.workspace_id = ${workspaceId} and f.trace_id is null and f.run_id is not null and r.trace_id is not null
      limit 1000 for update of f skip locked
    ) found
    where feedback.workspace_id = ${workspaceId} and feedback.id = found.id`.execute(trx)
}

/**
 * The statement that merges rows into the store. Between a stored value and a new one: for what places the run the stored one
 * stays; else the new one wins, unless it comes from a post and a patch was here before. Null never wins. A row that would not
 * change is not touched.
 */
function buildUpsert(): { head: (workspaceId: string) => RawBuilder<unknown>; tail: RawBuilder<unknown> } {
  const names = Object.keys(COLUMNS)
  const merged = new Map<string, string>()
  for (const name of Object.keys(PLACE_COLUMNS)) merged.set(name, `coalesce(r.${name}, excluded.${name})`)
  for (const name of Object.keys(CONTENT_COLUMNS)) {
    merged.set(
      name,
      `case when excluded.patched or not r.patched then coalesce(excluded.${name}, r.${name})
        else coalesce(r.${name}, excluded.${name}) end`,
    )
  }
  for (const name of ['posted', 'patched']) merged.set(name, `r.${name} or excluded.${name}`)
  // A derived order gives way to one that was sent.
  merged.set(
    'dotted_order',
    'case when r.order_derived then coalesce(excluded.dotted_order, r.dotted_order) else r.dotted_order end',
  )
  merged.set('order_derived', 'r.order_derived and excluded.dotted_order is null')
  const sets = [...merged, ['ingested_seq', 'case when r.complete then r.ingested_seq else excluded.ingested_seq end']]
  const selected = names.map((name) => {
    if (name === 'total_cost')
      return 'coalesce(x.total_cost, x.prompt_cost + x.completion_cost, x.prompt_cost, x.completion_cost)'
    return `x.${name}`
  })
  const types = Object.entries(COLUMNS).map(([name, type]) => `${name} ${type}`)
  return {
    head: (workspaceId) => sql`
      insert into runs as r (workspace_id, ${sql.raw(names.join(', '))}, order_derived)
      select ${workspaceId}::uuid, ${sql.raw(selected.join(', '))}, x.dotted_order is null from`,
    tail: sql.raw(`as x (${types.join(', ')})
      on conflict (workspace_id, id) do update set ${sets.map(([name, value]) => `${name} = ${value}`).join(', ')}
      where (${[...merged.keys()].map((name) => `r.${name}`).join(', ')}) is distinct from (${[...merged.values()].join(', ')})`),
  }
}
