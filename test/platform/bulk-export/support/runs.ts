import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { Database } from '../../../../src/platform/database/schema.ts'

/** The day that tests export. */
export const DAY = '2026-08-19'
export const DAY_START = `${DAY}T00:00:00Z`
export const DAY_END = '2026-08-20T00:00:00Z'

export async function createProject(db: Database, workspaceId: string): Promise<string> {
  const id = randomUUID()
  await sql`insert into tracing_projects (id, workspace_id, name) values (${id}, ${workspaceId}, ${id})`.execute(db)
  return id
}

export interface FillOptions {
  readonly workspaceId: string
  readonly projectId: string
  readonly count: number
  /** The first run's start; the others follow evenly until `end`. */
  readonly start: string
  readonly end: string
  /** Length of the text in inputs. */
  readonly textBytes?: number | undefined
}

/** Many runs at once, put straight into the store: half of them children, some with errors, tags, costs; many share their start. */
export async function fillRuns(
  db: Database,
  { workspaceId, projectId, count, start, end, textBytes = 200 }: FillOptions,
): Promise<void> {
  await sql`
    insert into runs (workspace_id, id, session_id, trace_id, parent_run_id, dotted_order, name, run_type, start_time, end_time, first_token_time,
      error, inputs, outputs, extra, events, tags, total_tokens, prompt_tokens, completion_tokens, total_cost, posted, patched)
    select ${workspaceId}::uuid, id, ${projectId}::uuid, trace, case when n % 2 = 0 then null else trace end,
      case when n % 2 = 0 then stamp || id else stamp || trace || '.' || stamp || id end,
      'run ' || n, (array['chain', 'llm', 'tool'])[1 + n % 3], at, case when n % 7 = 0 then null else at + interval '1.234567 s' end,
      case when n % 5 = 0 then at + interval '0.5 s' end, case when n % 11 = 0 then 'it broke at ' || n end,
      '{"text": "' || repeat(md5(n::text), greatest(1, ${textBytes}::int / 32)) || '", "n": ' || n || '}',
      case when n % 13 = 0 then null else '{"answer": "ja \u00e4\u00f6 \U0001F600 ' || n || '"}' end, '{"metadata": {"k": "v"}}', '[]',
      case when n % 3 = 0 then array['production', 'a "quoted" tag'] end, n, n / 2, n - n / 2, case when n % 4 = 0 then n * 0.000001234567 end, true, true
    from (
      select n, gen_random_uuid() as id, gen_random_uuid() as trace, at, to_char(at at time zone 'utc', 'YYYYMMDD"T"HH24MISSUS"Z"') as stamp
      from (
        select n, ${start}::timestamptz + (${end}::timestamptz - ${start}::timestamptz) * ((n / 3) * 3.0 / ${count}::int) as at
        from generate_series(0, ${count}::int - 1) as n
      ) placed
    ) made`.execute(db)
}

/** Many runs of {@link DAY}, spread over the whole of it. */
export function fillDay(
  db: Database,
  { workspace, projectId }: { workspace: { id: string }; projectId: string },
  sizes: Pick<FillOptions, 'count' | 'textBytes'>,
): Promise<void> {
  return fillRuns(db, { workspaceId: workspace.id, projectId, start: DAY_START, end: DAY_END, ...sizes })
}

/** A run of its own making. */
export async function addRun(db: Database, columns: Readonly<Record<string, unknown>>): Promise<string> {
  const id = randomUUID()
  const row = {
    id,
    trace_id: id,
    name: 'one',
    run_type: 'chain',
    dotted_order: `20260819T000000000000Z${id}`,
    posted: true,
    patched: true,
    ...columns,
  }
  await db
    .insertInto('runs')
    .values(row as never)
    .execute()
  return String(row.id)
}

/** Ids of the runs in a range, as the store has them. */
export async function storedIds(db: Database, projectId: string, start: string, end: string): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from runs where session_id = ${projectId} and start_time >= ${start}::timestamptz and start_time < ${end}::timestamptz and complete`.execute(
    db,
  )
  return rows.map((row) => row.id).toSorted()
}
