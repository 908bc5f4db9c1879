import { randomUUID } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import { DEFAULT_PROJECT_NAME } from '../../contract/run.ts'
import { type ProjectCreate, type ProjectPatch, projectNotFound, type TracingProject } from '../../contract/tracing-project.ts'
import type { Database, DatabaseTransaction } from '../database/schema.ts'
import { HttpProblem } from '../http/problem.ts'
import { IngestRefusal } from './ingest/refusal.ts'
import { cleanText, toJsonText } from './ingest/json-text.ts'

/** What a run says of its tracing project. */
interface ProjectMention {
  readonly session_id: string | null
  readonly session_name: string | null
  readonly trace_id: string | null
  readonly posted: boolean
}

/**
 * The tracing project of each row: by its id, by its name (made when it is new), by that of its trace, else the default one. A
 * patch that names none and whose trace is unknown stays without, until its post comes.
 * @throws {IngestRefusal} 404 for an id that the workspace does not have.
 */
export async function resolveProjects(
  trx: DatabaseTransaction,
  { workspaceId, rows }: { workspaceId: string; rows: readonly ProjectMention[] },
): Promise<(row: ProjectMention) => string | null> {
  const ids = new Set(rows.flatMap((row) => row.session_id ?? []))
  const silent = rows.filter((row) => row.session_id === null && row.session_name === null)
  const traces = silent.length === 0 ? new Map<string, string>() : await projectsOfTraces(trx, { workspaceId, rows: silent })
  for (const row of rows) {
    if (row.trace_id === null || row.session_id === null) continue
    traces.set(row.trace_id, row.session_id)
  }
  const names = new Set(rows.flatMap((row) => (row.session_id === null ? (row.session_name ?? []) : [])))
  const homeless = (row: ProjectMention) => row.posted && !traces.has(row.trace_id ?? '')
  const spoken = new Map(
    rows.flatMap((row) => (row.trace_id !== null && row.session_name !== null ? [[row.trace_id, row.session_name]] : [])),
  )
  if (silent.some((row) => homeless(row) && !spoken.has(row.trace_id ?? ''))) names.add(DEFAULT_PROJECT_NAME)

  const held = await holdProjects(trx, { workspaceId, ids: new Set([...ids, ...traces.values()]), names })
  const there = new Set(held.map((project) => project.id))
  for (const id of ids) if (!there.has(id)) throw new IngestRefusal(404, projectNotFound(id))
  const named = await ensureProjects(trx, { workspaceId, names, held })
  return ({ session_id, session_name, trace_id, posted }) => {
    if (session_id !== null) return session_id
    const name = session_name ?? spoken.get(trace_id ?? '')
    if (name !== undefined && named.has(name)) return named.get(name) as string
    return traces.get(trace_id ?? '') ?? (posted ? (named.get(DEFAULT_PROJECT_NAME) ?? null) : null)
  }
}

async function projectsOfTraces(
  trx: DatabaseTransaction,
  { workspaceId, rows }: { workspaceId: string; rows: readonly ProjectMention[] },
): Promise<Map<string, string>> {
  const traces = rows.flatMap((row) => row.trace_id ?? [])
  const found = await sql<{ trace_id: string; session_id: string }>`
    select distinct on (trace_id) trace_id, session_id from runs
    where workspace_id = ${workspaceId} and trace_id = any(${traces}::uuid[]) and session_id is not null
    order by trace_id, ingested_seq`.execute(trx)
  return new Map(found.rows.map((row) => [row.trace_id, row.session_id]))
}

interface HeldProject {
  readonly id: string
  readonly name: string
}

/**
 * Those of the projects that are there, held as the references of their runs hold them, but before a name is made and a run is written:
 * whoever renames or deletes a project takes its row first too.
 */
async function holdProjects(
  trx: DatabaseTransaction,
  { workspaceId, ids, names }: { workspaceId: string; ids: ReadonlySet<string>; names: ReadonlySet<string> },
): Promise<readonly HeldProject[]> {
  if (ids.size === 0 && names.size === 0) return []
  const { rows } = await sql<HeldProject>`
    select id, name from tracing_projects
    where workspace_id = ${workspaceId} and (id = any(${[...ids]}::uuid[]) or name = any(${[...names]}::text[]))
    order by id for key share`.execute(trx)
  return rows
}

/** A project that was there when its name was to be made, and is deleted or renamed since: what was read is to be read anew. */
class ProjectGone extends Error {
  /** As PostgreSQL says it of what it cuts short. */
  readonly code = '40001'

  constructor() {
    super('a tracing project was deleted or renamed while a run of it was stored')
  }
}

/**
 * Names become projects in their alphabetical order, so that two requests that make the same ones wait for each other one way
 * only.
 */
async function ensureProjects(
  trx: DatabaseTransaction,
  { workspaceId, names, held }: { workspaceId: string; names: ReadonlySet<string>; held: readonly HeldProject[] },
): Promise<Map<string, string>> {
  const known = new Map(held.flatMap(({ id, name }) => (names.has(name) ? [[name, id]] : [])))
  const fresh = [...names].filter((name) => !known.has(name)).toSorted()
  if (fresh.length === 0) return known
  await trx
    .insertInto('tracing_projects')
    .values(fresh.map((name) => newProject({ workspaceId, name })))
    .onConflict((conflict) => conflict.columns(['workspace_id', 'name']).doNothing())
    .execute()
  const made = await holdProjects(trx, { workspaceId, ids: new Set(), names: new Set(fresh) })
  if (made.length < fresh.length) throw new ProjectGone()
  return new Map([...known, ...made.map(({ id, name }) => [name, id] as const)])
}

function newProject({ workspaceId, name, id = randomUUID() }: { workspaceId: string; name: string; id?: string }) {
  return { id, workspace_id: workspaceId, name, description: null, extra: null, reference_dataset_id: null }
}

/** A row as the API shows it; the numbers only when they were asked for. */
interface ProjectRow {
  id: string
  workspace_id: string
  name: string
  description: string | null
  extra: string | null
  reference_dataset_id: string | null
  created: string
  ended: string | null
  run_count: string | null
  last_run_start_time: string | null
}

function projectColumns(stats: boolean) {
  const ofRuns = (value: RawBuilder<unknown>) =>
    stats ? sql`(select ${value} from runs r where r.session_id = p.id and r.complete)` : sql`null`
  return sql`p.id, p.workspace_id, p.name, p.description, p.extra, p.reference_dataset_id,
    ${time(sql.ref('p.created_at'))} as created, ${time(sql.ref('p.end_time'))} as ended,
    ${ofRuns(sql`count(*)`)} as run_count, ${ofRuns(time(sql`max(r.start_time)`))} as last_run_start_time`
}

function time(value: RawBuilder<unknown>): RawBuilder<string | null> {
  return sql`to_char(${value} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US')`
}

function toProject(row: ProjectRow): TracingProject {
  return {
    id: row.id,
    tenant_id: row.workspace_id,
    name: row.name,
    description: row.description,
    extra: row.extra === null ? null : (JSON.parse(row.extra) as Record<string, unknown>),
    start_time: row.created,
    end_time: row.ended,
    reference_dataset_id: row.reference_dataset_id,
    run_count: row.run_count === null ? null : Number(row.run_count),
    last_run_start_time: row.last_run_start_time,
  }
}

export interface ProjectFilter {
  readonly ids: readonly string[]
  readonly name: string | undefined
  readonly nameContains: string | undefined
  readonly limit: number
  readonly offset: number
  readonly stats: boolean
}

/** Newest first. */
export async function listProjects(db: Database, workspaceId: string, filter: ProjectFilter): Promise<TracingProject[]> {
  const conditions = [sql`p.workspace_id = ${workspaceId}`]
  if (filter.ids.length > 0) conditions.push(sql`p.id = any(${filter.ids}::uuid[])`)
  if (filter.name !== undefined) conditions.push(sql`p.name = ${filter.name}`)
  if (filter.nameContains !== undefined) conditions.push(sql`position(lower(${filter.nameContains}::text) in lower(p.name)) > 0`)
  const { rows } = await sql<ProjectRow>`
    select ${projectColumns(filter.stats)} from tracing_projects p where ${sql.join(conditions, sql` and `)}
    order by p.created_at desc, p.id limit ${filter.limit} offset ${filter.offset}`.execute(db)
  return rows.map(toProject)
}

/** @throws {HttpProblem} 404 when the workspace has no such project. */
export async function readProject(
  db: Database | DatabaseTransaction,
  { workspaceId, projectId, stats = false }: { workspaceId: string; projectId: string; stats?: boolean },
): Promise<TracingProject> {
  const { rows } = await sql<ProjectRow>`
    select ${projectColumns(stats)} from tracing_projects p
    where p.workspace_id = ${workspaceId} and p.id = ${projectId}`.execute(db)
  const [row] = rows
  if (row === undefined) throw new HttpProblem(404, projectNotFound(projectId))
  return toProject(row)
}

/**
 * Makes a tracing project. With `upsert` the one of that name is answered, with what the body says put on it.
 * @throws {HttpProblem} 409 for a name or an id that is taken.
 */
export async function createProject(
  db: Database,
  { workspaceId, body, upsert }: { workspaceId: string; body: ProjectCreate; upsert: boolean },
): Promise<TracingProject> {
  return db.transaction().execute(async (trx) => {
    const name = cleanText(body.name)
    const row = {
      ...newProject({ workspaceId, name, ...(body.id ? { id: body.id.toLowerCase() } : {}) }),
      description: body.description ?? null,
      extra: body.extra ? toJsonText(body.extra).text : null,
      reference_dataset_id: body.reference_dataset_id ?? null,
    }
    const made = await trx
      .insertInto('tracing_projects')
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .returning('id')
      .executeTakeFirst()
    if (made !== undefined) return readProject(trx, { workspaceId, projectId: made.id })
    const existing = await trx
      .selectFrom('tracing_projects')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .where('name', '=', name)
      .executeTakeFirst()
    if (existing === undefined) throw new HttpProblem(409, `The session id ${row.id} is taken.`)
    if (!upsert) throw new HttpProblem(409, `There already exists a project named ${name} (${existing.id}).`)
    return patchProject(trx, { workspaceId, projectId: existing.id, body: { description: body.description, extra: body.extra } })
  })
}

/** @throws {HttpProblem} 404; 409 for a name that another project has. */
export async function patchProject(
  db: Database | DatabaseTransaction,
  { workspaceId, projectId, body }: { workspaceId: string; projectId: string; body: ProjectPatch & { ended?: string | null } },
): Promise<TracingProject> {
  const change = {
    ...(body.name ? { name: cleanText(body.name) } : {}),
    ...(typeof body.description === 'string' ? { description: body.description } : {}),
    ...(body.extra ? { extra: toJsonText(body.extra).text } : {}),
    ...(body.ended ? { end_time: body.ended } : {}),
  }
  if (Object.keys(change).length > 0) {
    await db
      .updateTable('tracing_projects')
      .set(change)
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', projectId)
      .execute()
      .catch((error: { code?: string }) => {
        if (error.code === '23505') throw new HttpProblem(409, `There already exists a project named ${String(body.name)}.`)
        throw error
      })
  }
  return readProject(db, { workspaceId, projectId })
}

/** Runs that go with one statement when a tracing project is deleted. */
const DELETE_BATCH = 10_000

/**
 * Deletes a tracing project with its runs and their feedback, in steps that no statement limit cuts short; the project goes last,
 * so that an interrupted deletion can be asked for again.
 * @throws {HttpProblem} 404 when the workspace has no such project.
 */
export async function deleteProject(
  db: Database,
  { workspaceId, projectId }: { workspaceId: string; projectId: string },
): Promise<void> {
  await readProject(db, { workspaceId, projectId })
  while (await deleteRuns(db, { workspaceId, projectId }));
}

/** Deletes a batch of the project's runs; with the last of them the project. @returns whether there may be more. */
async function deleteRuns(
  db: Database,
  { workspaceId, projectId }: { workspaceId: string; projectId: string },
): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const project = { workspace_id: workspaceId, id: projectId }
    // First the project, as an ingest does, and then its runs in the order in which an ingest writes them.
    await trx
      .selectFrom('tracing_projects')
      .select('id')
      .where((where) => where.and(project))
      .forUpdate()
      .execute()
    const { numAffectedRows = 0n } = await sql`
      with chosen as materialized (
        select workspace_id, id from runs
        where session_id = ${projectId} and workspace_id = ${workspaceId}
        limit ${DELETE_BATCH}
      ), held as (
        select runs.workspace_id, runs.id from runs join chosen using (workspace_id, id) order by runs.id for update of runs
      )
      delete from runs where (workspace_id, id) in (select workspace_id, id from held)`.execute(trx)
    if (numAffectedRows >= DELETE_BATCH) return true
    await trx
      .deleteFrom('tracing_projects')
      .where((where) => where.and(project))
      .execute()
    return false
  })
}
