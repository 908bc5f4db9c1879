import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { type Feedback, type FeedbackCreate, feedbackNotFound, type FeedbackPatch } from '../../contract/feedback.ts'
import { projectNotFound } from '../../contract/tracing-project.ts'
import type { Database, DatabaseTransaction } from '../database/schema.ts'
import { HttpProblem } from '../http/problem.ts'
import { cleanText, toJsonText } from './ingest/json-text.ts'
import { IngestRefusal } from './ingest/refusal.ts'

/** One piece of feedback in the form of the store; JSON is text. */
export interface FeedbackWrite {
  readonly id: string
  readonly run_id: string | null
  readonly trace_id: string | null
  readonly session_id: string | null
  readonly key: string
  readonly score: number | null
  readonly value: string | null
  readonly comment: string | null
  readonly correction: string | null
  readonly source: string | null
}

/** Feedback as it was sent, in the form of the store. A score that is true or false counts 1 or 0. */
export function readFeedback(body: FeedbackCreate): FeedbackWrite {
  return {
    id: body.id?.toLowerCase() ?? randomUUID(),
    run_id: body.run_id?.toLowerCase() ?? null,
    trace_id: body.trace_id?.toLowerCase() ?? null,
    session_id: body.session_id?.toLowerCase() ?? null,
    key: cleanText(body.key),
    score: toScore(body.score),
    value: toJson(body.value),
    comment: typeof body.comment === 'string' ? cleanText(body.comment) : null,
    correction: toJson(body.correction),
    source: toJson(body.feedback_source),
  }
}

function toScore(score: number | boolean | null | undefined): number | null {
  return score === null || score === undefined ? null : Number(score)
}

function toJson(value: unknown): string | null {
  return value === undefined || value === null ? null : toJsonText(value).text
}

/**
 * Holds the tracing projects of feedback, its own and those of its runs, in their order. To be called before anything is written: whoever
 * deletes a project takes its row first too.
 * @throws {IngestRefusal} 404 for a tracing project that the workspace does not have.
 */
export async function holdProjectsOfFeedback(
  trx: DatabaseTransaction,
  { workspaceId, feedback }: { workspaceId: string; feedback: readonly FeedbackWrite[] },
): Promise<void> {
  const projects = new Set(feedback.flatMap((write) => write.session_id ?? []))
  const runs = [...new Set(feedback.flatMap((write) => write.run_id ?? []))]
  const { rows } = await sql<{ id: string }>`
    select id from tracing_projects
    where workspace_id = ${workspaceId} and (id = any(${[...projects]}::uuid[])
      or id in (select session_id from runs where workspace_id = ${workspaceId} and id = any(${runs}::uuid[])))
    order by id for key share`.execute(trx)
  const held = new Set(rows.map(({ id }) => id))
  for (const id of projects) if (!held.has(id)) throw new IngestRefusal(404, projectNotFound(id))
}

/**
 * Stores feedback, whose projects are held. The same id again puts what it says over what is there. The trace is looked up where it was
 * not sent.
 * @throws {IngestRefusal} 409 for an id that is feedback on another run.
 */
export async function insertFeedback(
  trx: DatabaseTransaction,
  { workspaceId, feedback }: { workspaceId: string; feedback: readonly FeedbackWrite[] },
): Promise<void> {
  const rows = [...new Map(feedback.map((write) => [write.id, write])).values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
  const { rows: stored } = await sql<{ id: string }>`
    insert into feedback as f (workspace_id, id, run_id, trace_id, session_id, key, score, value, comment, correction, source)
    select ${workspaceId}::uuid, x.id, x.run_id, coalesce(r.trace_id, x.trace_id), coalesce(x.session_id, r.session_id),
      x.key, x.score, x.value::jsonb, x.comment, x.correction::jsonb, x.source::jsonb
    from json_to_recordset(${JSON.stringify(rows)}::json) as x (id uuid, run_id uuid, trace_id uuid, session_id uuid, key text,
      score float8, value text, comment text, correction text, source text)
    left join runs r on r.workspace_id = ${workspaceId} and r.id = x.run_id
    on conflict (workspace_id, id) do update set
      key = excluded.key,
      score = coalesce(excluded.score, f.score),
      value = coalesce(excluded.value, f.value),
      comment = coalesce(excluded.comment, f.comment),
      correction = coalesce(excluded.correction, f.correction),
      source = coalesce(excluded.source, f.source),
      trace_id = coalesce(f.trace_id, excluded.trace_id),
      modified_at = now()
    where f.run_id is not distinct from excluded.run_id
    returning f.id`.execute(trx)
  if (stored.length === rows.length) return
  const missing = rows.find((row) => !stored.some(({ id }) => id === row.id))
  throw new IngestRefusal(409, `feedback ${missing?.id} is on another run already`)
}

const COLUMNS = sql`f.id, f.run_id, f.trace_id, f.session_id, f.key, f.score, f.value, f.comment, f.correction,
  f.source as feedback_source,
  to_char(f.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US') as created_at,
  to_char(f.modified_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US') as modified_at`

export interface FeedbackFilter {
  readonly run?: readonly string[] | undefined
  readonly session?: readonly string[] | undefined
  readonly key?: readonly string[] | undefined
  readonly source?: readonly string[] | undefined
  readonly limit: number
  readonly offset: number
}

/** Newest first. */
export async function listFeedback(db: Database, workspaceId: string, filter: FeedbackFilter): Promise<Feedback[]> {
  const conditions = [sql`f.workspace_id = ${workspaceId}`]
  if (filter.run !== undefined) conditions.push(sql`f.run_id = any(${filter.run}::uuid[])`)
  if (filter.session !== undefined) conditions.push(sql`f.session_id = any(${filter.session}::uuid[])`)
  if (filter.key !== undefined) conditions.push(sql`f.key = any(${filter.key}::text[])`)
  if (filter.source !== undefined) conditions.push(sql`f.source ->> 'type' = any(${filter.source}::text[])`)
  const { rows } = await sql<Feedback>`
    select ${COLUMNS} from feedback f where ${sql.join(conditions, sql` and `)}
    order by f.created_at desc, f.id limit ${filter.limit} offset ${filter.offset}`.execute(db)
  return rows
}

/** @throws {HttpProblem} 404 when the workspace has no such feedback. */
export async function readOneFeedback(
  db: Database,
  { workspaceId, feedbackId }: { workspaceId: string; feedbackId: string },
): Promise<Feedback> {
  const { rows } = await sql<Feedback>`
    select ${COLUMNS} from feedback f where f.workspace_id = ${workspaceId} and f.id = ${feedbackId}`.execute(db)
  const [row] = rows
  if (row === undefined) throw new HttpProblem(404, feedbackNotFound(feedbackId))
  return row
}

/** @throws {HttpProblem} 404 when the workspace has no such feedback. */
export async function patchFeedback(
  db: Database,
  { workspaceId, feedbackId, body }: { workspaceId: string; feedbackId: string; body: FeedbackPatch },
): Promise<Feedback> {
  await sql`
    update feedback f set
      score = coalesce(${toScore(body.score)}::float8, f.score),
      value = coalesce(${toJson(body.value)}::jsonb, f.value),
      comment = coalesce(${body.comment ?? null}::text, f.comment),
      correction = coalesce(${toJson(body.correction)}::jsonb, f.correction),
      modified_at = now()
    where f.workspace_id = ${workspaceId} and f.id = ${feedbackId}`.execute(db)
  return readOneFeedback(db, { workspaceId, feedbackId })
}

/** @throws {HttpProblem} 404 when the workspace has no such feedback. */
export async function deleteFeedback(
  db: Database,
  { workspaceId, feedbackId }: { workspaceId: string; feedbackId: string },
): Promise<void> {
  const gone = await db
    .deleteFrom('feedback')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', feedbackId)
    .executeTakeFirst()
  if (gone.numDeletedRows === 0n) throw new HttpProblem(404, feedbackNotFound(feedbackId))
}
