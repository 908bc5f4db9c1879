import { createWriteStream } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { DuckDBInstance } from '@duckdb/node-api'
import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { CODECS, targetColumn } from './target-columns.ts'
import type { PartRequest, Place, RowCounts, WriterAnswer, WriterRequest, WriterSetup, WrittenPart } from './messages.ts'

/**
 * A process of its own that turns runs into Parquet: PostgreSQL copies the rows into a file, DuckDB reads that file and writes the other.
 * No row ever becomes a JavaScript object. The memory goes with the process, and the platform's own thread stays free for requests.
 */

/** Bytes that do not occur in JSON text: almost no field has to be quoted, or searched for quotes. */
const DELIMITER = '\u0002'
const QUOTE = '\u0001'
const NULL = '\\N'

const MIB = 1024 * 1024
/** The engine's own smallest line bound and read buffer. */
const LINE_MIN = 2 * MIB
const BUFFER_MIN = 32 * MIB
/** With rows above the first, a file holds no more text than the second. */
const LARGE_ROW = 4 * MIB
const LARGE_ROWS_TEXT = 64 * MIB

class LineTooLong extends Error {}

async function openWriter(setup: WriterSetup) {
  const client = new pg.Client({
    connectionString: setup.databaseUrl,
    application_name: 'deploy-agent-server export',
    statement_timeout: setup.statementLimitMs,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  })
  client.on('error', () => undefined)
  await client.connect()
  await client.query("set timezone = 'UTC'; set datestyle = 'ISO'; set extra_float_digits = 1; set default_transaction_read_only = on")

  const rangeOf = (after: Place | null, upTo: Place | null) => {
    return [
      setup.among,
      ...(after === null ? [] : [`(r.start_time, r.id) > ${rowOf(after)}`]),
      ...(upTo === null ? [] : [`(r.start_time, r.id) <= ${rowOf(upTo)}`]),
    ].join(' and ')
  }

  /** Where a part ends that has at most so much text, and its longest row. Null: there are no rows. */
  const planPart = async ({ after, upTo }: PartRequest, textBytes: number) => {
    const { rows } = await client.query<{ time: string; id: string; n: string; longest: string; total: string }>(`
      with page as (
        select r.start_time, r.id, (${setup.weight})::bigint as weight from runs r where ${rangeOf(after, upTo)}
        order by r.start_time, r.id ${upTo === null ? `limit ${setup.fileRows}` : ''}
      ), weighed as (
        select start_time, id, weight, sum(weight) over place as total, row_number() over place as n from page window place as (order by start_time, id)
      ), part as (
        select * from weighed ${upTo === null ? `where total <= ${textBytes} or n = 1` : ''}
      )
      select to_char(start_time at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as time, id, n, total,
        (select max(weight) from part) as longest
      from part order by n desc limit 1`)
    const [row] = rows
    if (row === undefined) return null
    return { last: { time: row.time, id: row.id }, longest: Number(row.longest), text: Number(row.total) }
  }

  const spool = async (file: string, after: Place | null, upTo: Place): Promise<{ rows: number; bytes: number }> => {
    const statement = `copy (select 1 as line, ${setup.columns} from runs r where ${rangeOf(after, upTo)} order by r.start_time, r.id)
      to stdout with (format csv, delimiter ${quoted(DELIMITER)}, quote ${quoted(QUOTE)}, escape ${quoted(QUOTE)}, null ${quoted(NULL)})`
    const copy = client.query(copyTo(statement))
    let bytes = 0
    const counted = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length
        done(null, chunk)
      },
    })
    await pipeline(copy, counted, createWriteStream(file, { highWaterMark: MIB }))
    // The last row comes before the number of rows: that is known once PostgreSQL has answered something else.
    await client.query('select 1')
    if (bytes > 0 && copy.rowCount === 0) throw new Error('PostgreSQL copied rows out, and did not say how many')
    return { rows: copy.rowCount, bytes }
  }

  const convert = async ({ from, to, rows, text, longest }: { from: string; to: string; rows: number; text: number; longest: number }) => {
    for (let line = Math.max(LINE_MIN, Math.ceil(longest * 1.2) + 65_536); ; line *= 4) {
      try {
        return await convertOnce({ from, to, rows, text, line })
      } catch (error) {
        // A line can be longer than its weight: what is derived has not been weighed, and a field full of quotes is twice as long.
        if (!(error instanceof LineTooLong) || line > 512 * MIB) throw error
      }
    }
  }
  const convertOnce = async ({ from, to, rows, text, line }: { from: string; to: string; rows: number; text: number; line: number }) => {
    const memory = Math.max(setup.memoryBytes, line * 9)
    const instance = await DuckDBInstance.create(':memory:', {
      memory_limit: `${Math.ceil(memory / MIB)}MiB`,
      threads: '1',
      preserve_insertion_order: 'true',
      temp_directory: path.join(setup.directory, 'engine'),
      autoinstall_known_extensions: 'false',
    })
    const connection = await instance.connect()
    try {
      await connection.run("set TimeZone = 'UTC'")
      const names = ['line', ...setup.fields]
      const group = Math.max(1, Math.min(setup.groupRows, Math.floor(setup.groupTextBytes / Math.max(1, text / rows))))
      const result = await connection.run(`copy (
          select ${setup.fields.map((field) => `${targetColumn(field, setup.formatVersion)} as ${field}`).join(', ')}
          from read_csv(${quoted(from)}, auto_detect = false, header = false, columns = {${names.map((name) => `'${name}': 'VARCHAR'`).join(', ')}},
            delim = ${quoted(DELIMITER)}, quote = ${quoted(QUOTE)}, escape = ${quoted(QUOTE)}, nullstr = ${quoted(NULL)}, allow_quoted_nulls = false,
            new_line = '\\n', parallel = false, max_line_size = ${line}, buffer_size = ${Math.max(BUFFER_MIN, line * 2)})
        ) to ${quoted(to)} (format parquet, compression ${CODECS[setup.compression]}, row_group_size ${group})`)
      const written = Number((await result.getRows())[0]?.[0])
      if (written !== rows) throw new Error(`PostgreSQL copied ${rows} rows out, and ${written} arrived in the file`)
    } catch (error) {
      if (/maximum line size/i.test((error as Error).message)) throw new LineTooLong((error as Error).message)
      throw error
    } finally {
      connection.closeSync()
      instance.closeSync()
    }
  }

  /** A part whose rows lie in the spool file. Null: there are no rows. */
  const fetchPart = async (part: PartRequest) => {
    const began = performance.now()
    let plan = await planPart(part, setup.fileTextBytes)
    // An end that is given is kept, also when its last run has been deleted since.
    if (plan === null && part.upTo === null) return null
    if (plan !== null && part.upTo === null && plan.longest > LARGE_ROW) {
      plan = (await planPart(part, Math.min(setup.fileTextBytes, LARGE_ROWS_TEXT))) ?? plan
    }
    const last = part.upTo ?? (plan as NonNullable<typeof plan>).last
    const planned = performance.now()
    const csv = `${part.file}.csv`
    const { rows, bytes } = plan === null ? { rows: 0, bytes: 0 } : await spool(csv, part.after, last)
    const seconds = { planning: (planned - began) / 1000, copying: (performance.now() - planned) / 1000 }
    return { last, csv, rows, bytes, text: plan?.text ?? 0, longest: plan?.longest ?? 0, seconds }
  }

  /** What is being fetched ahead: the part that will be asked for next, if all goes well. */
  let ahead: { readonly after: Place; readonly fetching: ReturnType<typeof fetchPart> } | null = null
  const fetchAhead = (after: Place) => {
    ahead = { after, fetching: fetchPart({ after, upTo: null, file: path.join(setup.directory, `ahead-${after.id}`) }) }
    ahead.fetching.catch(() => undefined)
  }
  const takeAhead = (part: PartRequest) => {
    const fits = ahead !== null && part.upTo === null && part.after?.time === ahead.after.time && part.after.id === ahead.after.id
    const fetching = fits ? ahead?.fetching : undefined
    ahead = null
    return fetching
  }

  const writePart = async (part: PartRequest): Promise<WrittenPart | null> => {
    const fetched = await (takeAhead(part) ?? fetchPart(part))
    if (fetched === null) return null
    const { last, csv, rows, bytes: textBytes, text, longest } = fetched
    // PostgreSQL copies the next rows out while the engine works on these.
    fetchAhead(last)
    if (rows === 0) return { last, rows: 0, bytes: 0, textBytes, seconds: { ...fetched.seconds, converting: 0 } }
    const began = performance.now()
    try {
      await convert({ from: csv, to: part.file, rows, text, longest })
    } finally {
      await rm(csv, { force: true })
    }
    const seconds = { ...fetched.seconds, converting: (performance.now() - began) / 1000 }
    return { last, rows, bytes: (await stat(part.file)).size, textBytes, seconds }
  }

  const countRows = async (): Promise<RowCounts> => {
    const { rows } = await client.query<{ present: string; late: string }>(`
      select (select count(*) from runs r where ${setup.among}) as present, (select count(*) from runs r where ${setup.late}) as late`)
    return { present: Number(rows[0]?.present), late: Number(rows[0]?.late) }
  }
  return { writePart, countRows }
}

function rowOf({ time, id }: Place): string {
  return `(${quoted(time)}::timestamptz, ${quoted(id)}::uuid)`
}

/** A text of ours as a literal of either engine: it has neither quotation marks nor backslashes that mean anything. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

let opened: ReturnType<typeof openWriter> | undefined
// One thing at a time: there is one connection, and one engine's memory.
let queue: Promise<void> = Promise.resolve()

async function handle(request: Exclude<WriterRequest, { kind: 'setup' }>): Promise<void> {
  let answer: WriterAnswer
  try {
    const writer = await (opened as ReturnType<typeof openWriter>)
    const value = request.kind === 'part' ? await writer.writePart(request.part) : await writer.countRows()
    answer = { id: request.id, ok: true, value }
  } catch (error) {
    const { message, code } = error as { message: string; code?: unknown }
    answer = { id: request.id, ok: false, message, code: typeof code === 'string' ? code : null }
  }
  process.send?.(answer)
}

process.on('message', (request: WriterRequest) => {
  if (request.kind === 'setup') {
    opened = openWriter(request.setup)
    opened.catch(() => undefined)
  } else {
    queue = queue.then(() => handle(request))
  }
})
// Whoever asked for it is gone: nobody will take what it writes.
process.on('disconnect', () => process.exit(0))
// Ctrl-C in a terminal reaches the whole group; the platform hands its work back first.
process.on('SIGINT', () => undefined)
