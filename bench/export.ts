import { createWriteStream, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { randomUUID } from 'node:crypto'
import { DuckDBInstance } from '@duckdb/node-api'
import { sql } from 'kysely'
import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { createExportMetrics } from '../src/platform/bulk-export/metrics.ts'
import { DEFAULT_EXPORT_SETTINGS, type ExportSettings } from '../src/platform/bulk-export/settings.ts'
import { startExportWorkers } from '../src/platform/bulk-export/workers.ts'
import { createClock } from '../src/platform/clock.ts'
import { connectDatabase } from '../src/platform/database/connect.ts'
import { startEmbeddedDatabase } from '../src/platform/database/embedded.ts'
import type { Database } from '../src/platform/database/schema.ts'
import { createLog } from '../src/platform/log.ts'
import { databaseUrlOf, startPlatform, writeResults } from './platform-process.ts'
import { startBucket } from './support/bucket.ts'
import { checkRows, createExport, untilComplete } from './support/bulk-export.ts'
import { createDestination, secretBox } from './support/destination.ts'
import { type Latency, measureLatency } from './support/latency.ts'
import { createProject, type Project } from './support/project.ts'

/**
 * A whole export, from the store to a bucket, against the bare engines doing the same by hand: PostgreSQL's own `COPY` of the rows to a
 * file, then DuckDB from that file to Parquet, one after the other. The bucket is a server in a process of its own that counts what
 * it gets. Sizes in thousands of runs are given as arguments: `node bench/export.ts 100 1000`; a second number of large rows, of 10 MB
 * each, goes among them with `--large 4`. At the end the API of a whole platform is asked while it exports, and while it does not.
 */

const TEXT_BYTES = 2000
const DAY = '2026-08-19'
const MB = 1e6
/** Different texts; they come again so far behind each other that no compression sees it. */
const TEXTS = 10_000
/** Runs that are exported while the API is asked. */
const API_ROWS = 100_000
const log = createLog('error')
/** Settings to be tried, as JSON. */
const SETTINGS = JSON.parse(process.env['BENCH_SETTINGS'] || '{}') as Partial<ExportSettings>

interface Measured {
  readonly seconds: number
  readonly rowsPerSecond: number
  readonly megabytesPerSecond: number
}

const flag = process.argv.indexOf('--large')
const largeRows = flag === -1 ? 0 : Number(process.argv[flag + 1])
const given = process.argv.slice(2, flag === -1 ? undefined : flag).map(Number)
const sizes = (given.length === 0 ? [100] : given).map((thousands) => thousands * 1000)

await main()

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-export-'))
  const server = await startEmbeddedDatabase({ directory: join(folder, 'database'), log })
  const bucket = await startBucket()
  const results: Record<string, unknown>[] = []
  try {
    const db = await connectDatabase({ url: server.url, log })
    console.log('rows        what                     seconds     rows/s       MB/s   of bare')
    for (const rows of sizes) results.push(await measure({ db, databaseUrl: server.url, folder, port: bucket.port, rows }))
    await db.destroy()
    const api = await measureApi({ folder, port: bucket.port })
    writeResults('export', { textBytes: TEXT_BYTES, largeRows, results, api })
  } finally {
    bucket.stop()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Bench {
  readonly db: Database
  readonly databaseUrl: string
  readonly folder: string
  readonly port: number
  readonly rows: number
}

async function measure(bench: Bench): Promise<Record<string, unknown>> {
  const { db, rows } = bench
  const place = await createProject(db)
  await fill(bench, place)
  // Once each way before it counts, so that both read from the same caches.
  await bare(bench, place)
  const byHand = await bare(bench, place)
  const bytes = byHand.textBytes
  const rate = (seconds: number): Measured => ({
    seconds,
    rowsPerSecond: rows / seconds,
    megabytesPerSecond: bytes / MB / seconds,
  })
  const print = (what: string, seconds: number) => {
    const { rowsPerSecond, megabytesPerSecond } = rate(seconds)
    const share = `${((byHand.seconds / seconds) * 100).toFixed(0)} %`
    const numbers = [
      seconds.toFixed(2).padStart(9),
      rowsPerSecond.toFixed(0).padStart(11),
      megabytesPerSecond.toFixed(1).padStart(11),
    ]
    console.log(`${String(rows).padEnd(11)} ${what.padEnd(22)} ${numbers.join('')}${share.padStart(10)}`)
  }
  print('bare: COPY, then DuckDB', byHand.seconds)
  const one = await whole(bench, place, { days: 1 })
  print('export, one day', one.seconds)
  const many = await whole(bench, place, { days: 4 })
  print('export, four days', many.seconds)
  const peaks = { exportMegabytes: one.peak, fourDaysMegabytes: many.peak }
  console.log(
    `            memory at most: ${one.peak.toFixed(0)} MB one day, ${many.peak.toFixed(0)} MB four days (this process and those that write)\n`,
  )
  await prepared(bench.databaseUrl, `delete from tracing_projects where id = '${place.projectId}'`)
  return {
    rows,
    textBytes: bytes,
    bare: rate(byHand.seconds),
    oneDay: rate(one.seconds),
    fourDays: rate(many.seconds),
    peaks,
    memory: one.memory,
  }
}

/** Text that compresses about as JSON of conversations does: words of a small vocabulary, with numbers between. */
async function fill({ db, databaseUrl, rows }: Bench, { workspaceId, projectId }: Project): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query(`create temporary table texts as select k, (
      select left(string_agg((array['the','agent','answers','with','a','tool','call','and','waits','for','its','result'])[1 + floor(random() * 12)::int]
        || case when random() < 0.2 then to_char(random() * 1e6, ' 999999') else '' end, ' '), ${TEXT_BYTES * 0.6})
      from generate_series(1, ${TEXT_BYTES / 8}) where k >= 0
    ) as words from generate_series(0, ${TEXTS - 1}) as k`)
  for (let from = 0; from < rows; from += TEXTS) {
    await client.query(`
      insert into runs (workspace_id, id, session_id, trace_id, dotted_order, name, run_type, start_time, end_time, inputs, outputs, extra, events, tags,
        total_tokens, prompt_tokens, completion_tokens, total_cost, posted, patched)
      select '${workspaceId}', id, '${projectId}', id, '20260819T000000000000Z' || id, 'ChatModel', 'llm', at, at + interval '1.5 s',
        '{"messages": [{"role": "user", "content": "' || n || ' ' || words || '"}]}', '{"content": "' || n || ' ' || left(words, ${TEXT_BYTES * 0.3}) || '"}',
        '{"metadata": {"thread_id": "' || id || '", "revision": "7"}}', '[]', array['production'], n, n / 2, n - n / 2, n * 0.0000017, true, true
      from (
        select ${from} + k as n, gen_random_uuid() as id, words,
          timestamptz '${DAY}T00:00:00Z' + interval '1 day' * ((${from} + k)::float8 / ${rows}) as at
        from texts where ${from} + k < ${rows}
      ) made`)
  }
  await client.end()
  for (let large = 0; large < largeRows; large += 1) {
    await sql`update runs set inputs = '{"text": "' || repeat(md5(random()::text) || ' text', 270000) || '"}'
      where session_id = ${projectId} and id = (
        select id from runs where session_id = ${projectId} order by start_time offset ${Math.floor((rows / (largeRows + 1)) * (large + 1))} limit 1)`.execute(
      db,
    )
  }
  await prepared(databaseUrl, 'vacuum analyze runs')
}

/** A statement of the preparation: the platform's own connections have a limit that five million rows do not keep. */
async function prepared(databaseUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query(statement)
  await client.end()
}

/** The engines by hand: plain columns, PostgreSQL's own CSV, DuckDB's own reading of it. */
async function bare({ databaseUrl, folder }: Bench, { projectId }: Project): Promise<{ seconds: number; textBytes: number }> {
  const csv = join(folder, 'bare.csv')
  const parquet = join(folder, 'bare.parquet')
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const began = performance.now()
  const columns = `id, workspace_id, session_id, trace_id, parent_run_id, run_parent_ids(dotted_order), reference_example_id, name, run_type, start_time,
    end_time, status, parent_run_id is null, dotted_order, run_trace_tier(workspace_id, id, trace_id), inputs, outputs, error, extra, events, tags,
    run_feedback_stats(workspace_id, id), total_tokens, prompt_tokens, completion_tokens, total_cost, prompt_cost, completion_cost, first_token_time`
  await pipeline(
    client.query(
      copyTo(
        `copy (select ${columns} from runs where session_id = '${projectId}' order by start_time, id) to stdout with (format csv)`,
      ),
    ),
    createWriteStream(csv, { highWaterMark: 1024 * 1024 }),
  )
  const instance = await DuckDBInstance.create(':memory:', { memory_limit: '512MB' })
  const connection = await instance.connect()
  const names = Array.from({ length: 29 }, (_, index) => `'c${index}': 'VARCHAR'`).join(', ')
  const bounds = largeRows > 0 ? ', max_line_size = 16000000, buffer_size = 32000000, parallel = false' : ''
  await connection.run(`copy (select * from read_csv('${csv}', auto_detect = false, header = false,
    delim = ',', quote = '"', escape = '"', columns = {${names}}${bounds}))
    to '${parquet}' (format parquet, compression zstd, row_group_size 10000)`)
  connection.closeSync()
  instance.closeSync()
  const seconds = (performance.now() - began) / 1000
  await client.end()
  return { seconds, textBytes: statSync(csv).size }
}

/** The platform's own export, by its workers, to the end. */
async function whole(bench: Bench, { workspaceId, projectId }: Project, { days }: { days: number }) {
  const { db, databaseUrl, folder, port, rows } = bench
  if (days > 1) {
    await prepared(
      databaseUrl,
      // Stretched: the runs of a day lie together, as they do when they come in by the time.
      `update runs set start_time = timestamptz '${DAY}T00:00:00Z' + (start_time - timestamptz '${DAY}T00:00:00Z') * ${days} where session_id = '${projectId}'`,
    )
    await prepared(databaseUrl, 'vacuum full analyze runs')
  }
  const destinationId = await createDestination(db, { workspaceId, port })
  const memory: number[] = []
  const metrics = createExportMetrics()
  const before = process.memoryUsage().rss
  const watch = setInterval(() => memory.push(residentMegabytes(before)), 100)
  const workers = await startExportWorkers({
    db,
    databaseUrl,
    notifications: { on: () => undefined },
    secretBox,
    rules: { allowLinkLocal: false },
    owner: randomUUID(),
    spool: join(folder, 'spool'),
    clock: createClock(1),
    settings: { ...DEFAULT_EXPORT_SETTINGS, lookMs: 20, ...SETTINGS },
    metrics,
    log,
  })
  const began = performance.now()
  const end = `2026-08-${String(19 + days + (days > 1 ? 1 : 0)).padStart(2, '0')}`
  const id = await createExport(db, { workspaceId, projectId, destinationId, start: DAY, end })
  await untilComplete(db, id)
  const seconds = (performance.now() - began) / 1000
  clearInterval(watch)
  await workers.stop()
  await checkRows(db, id, rows)
  if (process.env['BENCH_VERBOSE'])
    console.log(
      metrics
        .renderMetrics()
        .split('\n')
        .filter((line) => line.includes('seconds_total{'))
        .join('\n'),
    )
  return { seconds, peak: Math.max(...memory), memory }
}

/** How long a platform's API takes while the same process exports, beside how long it takes when it does not. */
async function measureApi({ folder, port }: { folder: string; port: number }) {
  const platform = await startPlatform(join(folder, 'platform'))
  const databaseUrl = databaseUrlOf(join(folder, 'platform'))
  const db = await connectDatabase({ url: databaseUrl, log })
  const { id: workspaceId } = await db.selectFrom('workspaces').select('id').executeTakeFirstOrThrow()
  const project = await createProject(db, workspaceId)
  await fill({ db, databaseUrl, folder, port, rows: API_ROWS }, project)
  const send = <T>(path: string, body: unknown) => platform.ask<T>(`/api/v1/bulk-exports${path}`, { method: 'POST', body })
  const destination = await send<{ id: string }>('/destinations', {
    destination_type: 's3',
    display_name: 'bench',
    config: { bucket_name: 'bench', endpoint_url: `http://127.0.0.1:${port}` },
    credentials: { access_key_id: 'bench', secret_access_key: 'bench' },
  })
  const kinds = {
    GET: { method: 'GET', path: '/api/v1/bulk-exports?limit=10', everyMs: 25 },
    ingest: { method: 'POST', path: '/runs/batch', everyMs: 50, body: smallBatch },
  }
  const whole = async () => {
    const { id } = await send<{ id: string }>('', {
      bulk_export_destination_id: destination.id,
      session_id: project.projectId,
      start_time: `${DAY}T00:00:00Z`,
      end_time: '2026-08-20T00:00:00Z',
      format_version: 'v2_beta',
    })
    for (;;) {
      const { status } = await platform.ask<{ status: string }>(`/api/v1/bulk-exports/${id}`)
      if (status === 'COMPLETED') return
      if (status !== 'CREATED' && status !== 'RUNNING') throw new Error(`the export is ${status}`)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
  // Once before it counts.
  await measureLatency(platform, kinds, new Promise((resolve) => setTimeout(resolve, 2000)))
  const idle = await measureLatency(platform, kinds, new Promise((resolve) => setTimeout(resolve, 10_000)))
  const exporting = await measureLatency(platform, kinds, whole())
  await db.destroy()
  await platform.end('SIGTERM')
  console.log('API                requests   p50 idle  exporting   p99 idle  exporting      ratio')
  for (const name of ['GET', 'ingest']) {
    const [before, beside] = [idle[name] as Latency, exporting[name] as Latency]
    const times = [before.p50, beside.p50, before.p99, beside.p99].map((time) => `${time.toFixed(1)} ms`.padStart(11))
    console.log(
      `${name.padEnd(18)}${String(beside.requests).padStart(9)}${times.join('')}${(beside.p99 / before.p99).toFixed(1).padStart(11)}`,
    )
  }
  return { rows: API_ROWS, idle, exporting }
}

function smallBatch(): string {
  const post = Array.from({ length: 5 }, () => {
    const id = randomUUID()
    const start_time = '2026-11-20T08:00:00.123456Z'
    const place = { id, trace_id: id, dotted_order: `20261120T080000123456Z${id}`, session_name: 'beside' }
    return { ...place, name: 'small', run_type: 'chain', start_time, inputs: { text: 'a few words '.repeat(40) } }
  })
  return JSON.stringify({ post, patch: [] })
}

/** Resident memory of the children that write files, and of this process beyond what it had before the exports. */
function residentMegabytes(before: number): number {
  let bytes = Math.max(0, process.memoryUsage().rss - before)
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('writer-process.ts')) continue
      if (
        !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(`) S ${process.pid} `) &&
        !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(`) R ${process.pid} `)
      )
        continue
      bytes += Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
    } catch {
      // It has ended meanwhile.
    }
  }
  return bytes / MB
}
