import { createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import type { ExportableField } from '../../../contract/exportable-fields.ts'
import { convert, quoted, SPOOL_FORMAT } from './engine.ts'
import { type LargeField, largeFieldsOf, writeLargeFields } from './large-fields.ts'
import type { PartRequest, Place, RowCounts, WriterAnswer, WriterRequest, WriterSetup, WrittenPart } from './messages.ts'
import { type Cut, LARGE_ROW, planParts, planWhole } from './plan.ts'
import { type LargePage, splice } from './splice.ts'

/**
 * A process of its own that turns runs into Parquet: PostgreSQL copies the rows into a file, DuckDB reads that file and writes the other.
 * No row ever becomes a JavaScript object. The memory goes with the process, and the platform's own thread stays free for requests.
 */

const MIB = 1024 * 1024

async function openWriter(setup: WriterSetup) {
  const client = new pg.Client({
    connectionString: setup.databaseUrl,
    application_name: 'deploy-agent-server export',
    statement_timeout: setup.statementLimitMs,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    // A statement may take hours; a database whose machine is gone shows within half a minute.
    keepAliveInitialDelayMillis: 10_000,
  })
  client.on('error', () => undefined)
  await client.connect()
  await client.query(
    "set timezone = 'UTC'; set datestyle = 'ISO'; set extra_float_digits = 1; set default_transaction_read_only = on",
  )
  const ask = async <Row>(query: string) => (await client.query(query)).rows as Row[]

  const rangeOf = (after: Place | null, upTo: Place | null) =>
    [
      setup.among,
      ...(after === null ? [] : [`(r.start_time, r.id) > ${rowOf(after)}`]),
      ...(upTo === null ? [] : [`(r.start_time, r.id) <= ${rowOf(upTo)}`]),
    ].join(' and ')

  /** Parts that were planned with an earlier one, and the place that the first of them begins behind. */
  let planned: { readonly after: Place; readonly cuts: readonly Cut[] } | null = null
  /** The next part. Null: there are no rows. */
  const plan = async ({ after, upTo }: PartRequest): Promise<Cut | null> => {
    if (upTo !== null) return planWhole(ask, { setup, range: rangeOf(after, upTo) })
    const known =
      planned !== null && after !== null && isSame(planned.after, after) && planned.cuts.length > 0 ? planned.cuts : null
    const [cut, ...rest] = known ?? (await planParts(ask, { setup, range: rangeOf(after, null) }))
    planned = cut === undefined ? null : { after: cut.last, cuts: rest }
    return cut ?? null
  }

  /** Copies the rows of a range into a file; of the fields in `none` nothing. */
  const spool = async (
    file: string,
    range: string,
    none: ReadonlySet<ExportableField>,
  ): Promise<{ rows: number; bytes: number }> => {
    const columns = setup.fields.map((field, index) => `${none.has(field) ? 'null' : setup.columns[index]} as ${field}`)
    const copy = client.query(
      copyTo(
        `copy (select 1 as line, ${columns.join(', ')} from runs r where ${range} order by r.start_time, r.id) to stdout with ${SPOOL_FORMAT}`,
      ),
    )
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

  /** A part whose rows lie in the spool file, and its large fields in files of their own. Null: there are no rows. */
  const fetchPart = async (part: PartRequest) => {
    const began = performance.now()
    const cut = await plan(part)
    // An end that is given is kept, also when its last run has been deleted since.
    if (cut === null && part.upTo === null) return null
    const last = part.upTo ?? (cut as Cut).last
    const range = rangeOf(part.after, last)
    const alone = cut !== null && cut.rows === 1 && cut.longest > LARGE_ROW
    const large: LargeField[] = alone ? await largeFieldsOf(ask, { setup, range }) : []
    const planningEnded = performance.now()
    const csv = `${part.file}.csv`
    const copied = cut === null ? { rows: 0, bytes: 0 } : await spool(csv, range, new Set(large.map(({ field }) => field)))
    const pages: LargePage[] = copied.rows === 0 ? [] : await writeLargeFields(client, { setup, range, large, file: part.file })
    const beside = pages.reduce((sum, { uncompressed }) => sum + uncompressed, 0)
    const longest = Math.max(0, (cut?.longest ?? 0) - beside)
    const seconds = { planning: (planningEnded - began) / 1000, copying: (performance.now() - planningEnded) / 1000 }
    return {
      last,
      csv,
      rows: copied.rows,
      bytes: copied.bytes + beside,
      pages,
      text: Math.max(0, (cut?.text ?? 0) - beside),
      longest,
      seconds,
    }
  }

  /** What is being fetched ahead: the part that will be asked for next, if all goes well. */
  let ahead: { readonly after: Place; readonly fetching: ReturnType<typeof fetchPart> } | null = null
  const fetchAhead = (after: Place) => {
    ahead = { after, fetching: fetchPart({ after, upTo: null, file: path.join(setup.directory, `ahead-${after.id}`) }) }
    ahead.fetching.catch(() => undefined)
  }
  const takeAhead = ({ after, upTo }: PartRequest) => {
    const fetching = ahead !== null && upTo === null && after !== null && isSame(after, ahead.after) ? ahead.fetching : undefined
    ahead = null
    return fetching
  }

  const writePart = async (part: PartRequest): Promise<WrittenPart | null> => {
    const fetched = await (takeAhead(part) ?? fetchPart(part))
    if (fetched === null) return null
    const { last, csv, rows, bytes: textBytes, text, longest, pages } = fetched
    // PostgreSQL copies the next rows out while the engine works on these.
    fetchAhead(last)
    if (rows === 0) return { last, rows: 0, bytes: 0, textBytes, seconds: { ...fetched.seconds, converting: 0 } }
    const began = performance.now()
    const bare = `${part.file}.bare`
    try {
      await convert(setup, { from: csv, to: bare, rows, text, longest })
      await (pages.length === 0 ? rename(bare, part.file) : splice({ from: bare, to: part.file, pages }))
    } finally {
      await Promise.all([csv, bare, ...pages.map(({ file }) => file)].map((file) => rm(file, { force: true })))
    }
    const seconds = { ...fetched.seconds, converting: (performance.now() - began) / 1000 }
    return { last, rows, bytes: (await stat(part.file)).size, textBytes, seconds }
  }

  const countRows = async (): Promise<RowCounts> => {
    const [counts] = await ask<{ present: string; late: string }>(`
      select (select count(*) from runs r where ${setup.among}) as present, (select count(*) from runs r where ${setup.late}) as late`)
    return { present: Number(counts?.present), late: Number(counts?.late) }
  }
  return { writePart, countRows }
}

function rowOf({ time, id }: Place): string {
  return `(${quoted(time)}::timestamptz, ${quoted(id)}::uuid)`
}

function isSame(one: Place, other: Place): boolean {
  return one.time === other.time && one.id === other.id
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
