import { sql } from 'kysely'
import type { LogEntry, LogLevel, LogType } from '../../contract/log.ts'
import type { Database } from '../database/schema.ts'
import type { Log } from '../log.ts'
import type { BuildLog } from './build-log.ts'

/** Longest line that is kept, in characters, and how many lines a revision keeps of each type: the newest. */
export const LOG_LINE_MAX = 8192
export const LOG_LINES_KEPT = 10_000

const FLUSH_MS = 150
/** More than this between two flushes is a flood: the oldest of it are dropped and counted. */
const BUFFER_MAX = 2000
/** Shorter values are no secrets: replacing them would blot out ordinary words. */
const SECRET_MIN = 4

/** A log that stores what it is given. `close` writes what is left; a writer that is done must call it. */
export interface StoredLog extends BuildLog {
  close(): Promise<void>
}

interface Line {
  readonly level: LogLevel
  readonly message: string
  readonly at: Date
}

/**
 * Opens the build or deploy log of a revision. Lines lose their control characters and the values of `secrets`, and go to the database in
 * batches. A database that is away costs lines, never the build: the log says how many.
 */
export function openRevisionLog(
  db: Database,
  { revisionId, type, secrets, log }: { revisionId: string; type: LogType; secrets: readonly string[]; log: Log },
): StoredLog {
  const redact = createRedactor(secrets)
  let buffer: Line[] = []
  let dropped = 0
  let written = 0
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> = Promise.resolve()

  const flush = async () => {
    timer = undefined
    const lines = buffer
    const lost = dropped
    buffer = []
    dropped = 0
    if (lost > 0) lines.unshift({ level: 'WARNING', message: `${lost} lines were dropped: they came too fast`, at: lines[0]?.at ?? new Date() })
    if (lines.length === 0) return
    try {
      await db
        .insertInto('revision_logs')
        .values(lines.map((line) => ({ revision_id: revisionId, type, ...line })))
        .execute()
      written += lines.length
      if (written > LOG_LINES_KEPT / 2) {
        written = 0
        await trimLog(db, { revisionId, type })
      }
    } catch (error) {
      dropped += lines.length
      log.warn({ revisionId, error: (error as Error).message }, 'log lines could not be stored')
    }
  }
  const schedule = () => {
    timer ??= setTimeout(() => {
      flushing = flushing.then(flush)
    }, FLUSH_MS)
  }

  return {
    write: (level, message) => {
      for (const line of message.split('\n')) {
        buffer.push({ level, message: clean(redact(line)), at: new Date() })
      }
      if (buffer.length > BUFFER_MAX) {
        dropped += buffer.length - BUFFER_MAX
        buffer = buffer.slice(-BUFFER_MAX)
      }
      schedule()
    },
    close: async () => {
      clearTimeout(timer)
      flushing = flushing.then(flush)
      await flushing
    },
  }
}

/** Keeps the newest `LOG_LINES_KEPT` lines. The others are locked in one order: whoever sweeps logs may delete them too. */
async function trimLog(db: Database, { revisionId, type }: { revisionId: string; type: LogType }): Promise<void> {
  await sql`
    delete from revision_logs where id in (
      select id from revision_logs where revision_id = ${revisionId} and type = ${type} and id <= (
        select id from revision_logs where revision_id = ${revisionId} and type = ${type} order by id desc offset ${LOG_LINES_KEPT} limit 1
      ) order by id for update
    )`.execute(db)
}

/** Replaces every secret value, the longest first, so that one that contains another goes whole. */
export function createRedactor(secrets: readonly string[]): (text: string) => string {
  const values = secrets
    .flatMap((secret) => [secret, ...secret.split(/\r?\n/)])
    .filter((value) => value.trim().length >= SECRET_MIN)
    .toSorted((a, b) => b.length - a.length)
  return (text) => values.reduce((redacted, value) => redacted.replaceAll(value, '***'), text)
}

/** Terminal sequences and control characters out (a tab stays); too long a line is cut. */
function clean(line: string): string {
  const plain = line
    .replace(/\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g, '')
    .replace(/[\x00-\x08\x0a-\x1f\x7f-\x9f]/g, '')
  return plain.length > LOG_LINE_MAX ? `${plain.slice(0, LOG_LINE_MAX)}…` : plain
}

export interface LogQuery {
  readonly revisionId: string
  readonly type: LogType
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** The `next_offset` of the page before; null for the first page. */
  readonly offset: string | null
  readonly level: LogLevel | null
  /** Text that a line must contain. */
  readonly contains: string | null
  readonly from: Date | null
  readonly to: Date | null
}

/** One page of a revision's log. `next_offset` names the last line shown, so lines that arrive meanwhile move nothing. */
export async function readRevisionLog(db: Database, query: LogQuery): Promise<{ logs: LogEntry[]; next_offset: string | null }> {
  let select = db
    .selectFrom('revision_logs')
    .select(['id', 'at', 'level', 'message'])
    .where('revision_id', '=', query.revisionId)
    .where('type', '=', query.type)
  if (query.offset !== null) select = select.where('id', query.order === 'asc' ? '>' : '<', query.offset)
  if (query.level !== null) select = select.where('level', '=', query.level)
  if (query.contains !== null) select = select.where(sql<boolean>`position(lower(${query.contains}) in lower(message)) > 0`)
  if (query.from !== null) select = select.where('at', '>=', query.from)
  if (query.to !== null) select = select.where('at', '<', query.to)
  const rows = await select
    .orderBy('id', query.order)
    .limit(query.limit + 1)
    .execute()
  const page = rows.slice(0, query.limit)
  return {
    logs: page.map((row) => ({ id: row.id, timestamp: row.at.toISOString(), level: row.level, message: row.message })),
    next_offset: rows.length > query.limit ? (page.at(-1)?.id ?? null) : null,
  }
}
