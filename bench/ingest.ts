import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { cpus, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { serve } from '@hono/node-server'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { connectDatabase } from '../src/platform/database/connect.ts'
import { startEmbeddedDatabase } from '../src/platform/database/embedded.ts'
import { createLog } from '../src/platform/log.ts'
import { traceRoutes } from '../src/platform/traces/routes.ts'
import { createAuthenticate, hashApiKey } from '../src/platform/workspaces/authenticate.ts'
import { inRoot } from '../scripts/root.ts'

/**
 * Runs a second that are taken and durable, by size of the runs and way in, beside what the same database takes by `COPY` of the
 * same rows in transactions of the same size. `BENCH_RUNS` multiplies the number of runs: at 50 it is a million, to watch the
 * memory, and `BENCH_ONLY="2 KB batch"` then measures that one row.
 */

const RESULTS = inRoot('bench', 'results', 'ingest.json')
const SCALE = Number(process.env['BENCH_RUNS'] ?? 1)
/** Part of a row's name, `2 KB batch`; absent: all. */
const ONLY = process.env['BENCH_ONLY'] ?? ''
const BATCH = 100
const SENDERS = 4
const SIZES = [
  { name: '2 KB', bytes: 2_000, runs: 20_000 },
  { name: '50 KB', bytes: 50_000, runs: 1_000 },
] as const

interface Run {
  readonly id: string
  readonly main: string
  readonly inputs: string
  readonly outputs: string
}
interface Request {
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: Buffer
}
interface Result {
  readonly size: string
  readonly way: string
  readonly runs: number
  readonly perSecond: number
  readonly megabytesPerSecond: number
  /** Against COPY. */
  readonly ratio: number
  readonly memory: Memory | null
}

const START = '2026-11-20T08:00:00.123456Z'

const PHRASES = Array.from({ length: 500 }, () => `${randomBytes(12).toString('base64')} said "${randomBytes(3).toString('hex')}", and then `)

/** Text that compresses about as well as conversations do. */
function conversation(bytes: number): string {
  let text = ''
  while (text.length < bytes) text += PHRASES[Math.floor(Math.random() * PHRASES.length)]
  return JSON.stringify({ messages: [{ role: 'user', content: text.slice(0, bytes) }] })
}

function makeRun(bytes: number): Run {
  const id = randomUUID()
  const fields = {
    id,
    trace_id: id,
    dotted_order: `20261120T080000123456Z${id}`,
    name: 'run',
    run_type: 'chain',
    start_time: START,
    end_time: START,
    session_name: 'bench',
  }
  return { id, main: JSON.stringify(fields), inputs: conversation(bytes * 0.4), outputs: conversation(bytes * 0.4) }
}

function batchRequest(runs: readonly Run[]): Request {
  const post = runs.map(({ main, inputs, outputs }) => `${main.slice(0, -1)},"inputs":${inputs},"outputs":${outputs}}`)
  return {
    path: '/runs/batch',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(`{"post":[${post.join(',')}]}`),
  }
}

function multipartRequest(runs: readonly Run[]): Request {
  const boundary = 'bench-boundary'
  const part = (name: string, json: string) => {
    const type = `application/json; length=${Buffer.byteLength(json)}`
    return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: ${type}\r\n\r\n${json}\r\n`
  }
  const parts = runs.map(
    ({ id, main, inputs, outputs }) =>
      part(`post.${id}`, main) + part(`post.${id}.inputs`, inputs) + part(`post.${id}.outputs`, outputs),
  )
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
  return { path: '/runs/multipart', headers, body: Buffer.from(`${parts.join('')}--${boundary}--\r\n`) }
}

function compressed({ path, headers, body }: Request): Request {
  return { path, headers: { ...headers, 'content-encoding': 'gzip' }, body: gzipSync(body) }
}

/** Sends everything with a few senders at once; milliseconds until the last was acknowledged. */
async function send(url: string, key: string, requests: Iterator<Request>): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: SENDERS })
  const begin = performance.now()
  await Promise.all(
    Array.from({ length: SENDERS }, async () => {
      for (let next = requests.next(); next.done !== true; next = requests.next()) await sendOne(url, key, agent, next.value)
    }),
  )
  agent.destroy()
  return performance.now() - begin
}

function sendOne(url: string, key: string, agent: Agent, { path, headers, body }: Request): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', agent, headers: { ...headers, 'x-api-key': key, 'content-length': body.length } }
    const client = request(`${url}${path}`, options, (response) => {
      response.resume().once('end', () => {
        if (response.statusCode === 202) resolve()
        else reject(new Error(`${path} answered ${response.statusCode}`))
      })
    })
    client.once('error', reject)
    client.end(body)
  })
}

const COLUMNS = [
  'workspace_id',
  'id',
  'session_id',
  'trace_id',
  'dotted_order',
  'name',
  'run_type',
  'start_time',
  'end_time',
  'inputs',
  'outputs',
  'posted',
  'patched',
]

/** Text as the text format of `COPY` has it; JSON holds no tabs and no line breaks. */
function escape(text: string): string {
  return text.replaceAll('\\', '\\\\')
}

/** The same rows by `COPY` into a table like that of the runs, a transaction for each batch; milliseconds. */
async function copy(
  pool: pg.Pool,
  { sessionId, workspaceId, batches }: { sessionId: string; workspaceId: string; batches: readonly Run[][] },
): Promise<number> {
  await pool.query('drop table if exists bulk')
  await pool.query('create table bulk (like runs including all)')
  const texts = batches.map((runs) =>
    runs
      .map(({ id, inputs, outputs }) =>
        [
          workspaceId,
          id,
          sessionId,
          id,
          `20261120T080000123456Z${id}`,
          'run',
          'chain',
          START,
          START,
          escape(inputs),
          escape(outputs),
          't',
          'f',
        ].join('\t'),
      )
      .join('\n'),
  )
  const begin = performance.now()
  const left = texts.values()
  await Promise.all(
    Array.from({ length: SENDERS }, async () => {
      for (const text of left) {
        const client = await pool.connect()
        const stream = client.query(copyFrom(`copy bulk (${COLUMNS.join(', ')}) from stdin`))
        stream.end(`${text}\n`)
        await finished(stream)
        client.release()
      }
    }),
  )
  return performance.now() - begin
}

/** Resident memory of a process in MB (Linux; elsewhere null). */
function memoryOf(child: ChildProcess): number | null {
  try {
    const found = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))
    return found === null ? null : Number(found[1]) / 1024
  } catch {
    return null
  }
}

/** Peaks of the first and of the last quarter of the time: what grows without end shows as a difference. */
interface Memory {
  readonly firstMb: number
  readonly lastMb: number
}

function watchMemory(child: ChildProcess): () => Memory | null {
  const samples: number[] = []
  const take = () => samples.push(memoryOf(child) ?? 0)
  take()
  const timer = setInterval(take, 50)
  return () => {
    clearInterval(timer)
    take()
    const quarter = Math.ceil(samples.length / 4)
    const memory = { firstMb: Math.max(...samples.slice(0, quarter)), lastMb: Math.max(...samples.slice(-quarter)) }
    return memory.lastMb === 0 ? null : memory
  }
}

/** The service in a process of its own, as it runs in earnest: this file, started again. */
async function startService(databaseUrl: string): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), 'serve', databaseUrl], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { url: line, child }
}

async function serveTraces(databaseUrl: string): Promise<void> {
  const log = createLog('warn')
  const db = await connectDatabase({ url: databaseUrl, log })
  const authenticate = createAuthenticate(db)
  const { ingest } = traceRoutes({ db, log, authenticate: (asked) => authenticate((name) => asked.headers.get(name)) })
  const server = serve({ fetch: ingest.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) =>
    console.log(`http://127.0.0.1:${port}`),
  )
  process.once('SIGTERM', () => {
    server.close()
    process.exit()
  })
}

function* requestsOf(batches: Iterable<Run[]>, form: (runs: readonly Run[]) => Request): Generator<Request> {
  for (const runs of batches) yield form(runs)
}

async function measure(folder: string): Promise<Result[]> {
  const database = await startEmbeddedDatabase({ directory: join(folder, 'database'), log: createLog('warn') })
  const db = await connectDatabase({ url: database.url, log: createLog('warn') })
  const [workspaceId, sessionId, key] = [randomUUID(), randomUUID(), 'bench-key']
  await db.insertInto('workspaces').values({ id: workspaceId, name: 'bench', plan: 'enterprise' }).execute()
  await db
    .insertInto('api_keys')
    .values({ id: randomUUID(), workspace_id: workspaceId, key_hash: hashApiKey(key) })
    .execute()
  const pool = new pg.Pool({ connectionString: database.url, max: SENDERS })
  // The database ends before the last idle connection has noticed.
  pool.on('error', () => {})
  const { url, child } = await startService(database.url)
  const results: Result[] = []
  try {
    for (const { name, bytes, runs } of SIZES) {
      const count = Math.ceil((runs * SCALE) / BATCH)
      const makeBatch = () => Array.from({ length: BATCH }, () => makeRun(bytes))
      // Beyond what memory holds the batches are made while they are sent, and only the first part is compared.
      const prepared = Array.from({ length: Math.min(count, runs / BATCH) }, makeBatch)
      const copyMs = await copy(pool, { sessionId, workspaceId, batches: prepared })
      const copyRate = (prepared.length * BATCH * 1000) / copyMs
      results.push(
        toResult({ size: name, way: 'COPY', runs: prepared.length * BATCH, ms: copyMs, bytes, copyRate, memory: null }),
      )
      for (const [way, form] of [
        ['batch', batchRequest],
        ['multipart', multipartRequest],
        ['multipart, gzip', (given: readonly Run[]) => compressed(multipartRequest(given))],
      ] as const) {
        if (!`${name} ${way}`.includes(ONLY)) continue
        await pool.query('truncate runs')
        const fresh = function* () {
          for (let index = 0; index < count - prepared.length; index += 1) yield makeBatch()
        }
        const ready = prepared.map(form)
        const peak = watchMemory(child)
        const ms = await send(url, key, chain(ready, requestsOf(fresh(), form)))
        results.push(toResult({ size: name, way, runs: count * BATCH, ms, bytes, copyRate, memory: peak() }))
      }
    }
  } finally {
    child.kill('SIGTERM')
    await once(child, 'exit')
    await pool.end()
    await db.destroy()
    await database.stop()
  }
  return results
}

function* chain<T>(...parts: Iterable<T>[]): Generator<T> {
  for (const part of parts) yield* part
}

interface Taken {
  readonly size: string
  readonly way: string
  readonly runs: number
  readonly ms: number
  readonly bytes: number
  readonly copyRate: number
  readonly memory: Memory | null
}

function toResult({ size, way, runs, ms, bytes, copyRate, memory }: Taken): Result {
  const perSecond = (runs * 1000) / ms
  return { size, way, runs, perSecond, megabytesPerSecond: (perSecond * bytes) / 1e6, ratio: perSecond / copyRate, memory }
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-ingest-'))
  try {
    const results = await measure(folder)
    console.log('size     way                  runs     runs/s     MB/s   of COPY   memory, first and last quarter')
    for (const { size, way, runs, perSecond, megabytesPerSecond, ratio, memory } of results) {
      const numbers = [String(runs).padStart(9), perSecond.toFixed(0).padStart(11), megabytesPerSecond.toFixed(1).padStart(9)]
      const shown = memory === null ? '' : `${memory.firstMb.toFixed(0)} MB ${memory.lastMb.toFixed(0)} MB`
      console.log(
        `${size.padEnd(9)}${way.padEnd(16)}${numbers.join('')}${`${(ratio * 100).toFixed(0)} %`.padStart(10)}   ${shown}`,
      )
    }
    const processor = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}`
    console.log(`\n${BATCH} runs a request, ${SENDERS} senders; Node ${process.versions.node}, ${processor}`)
    mkdirSync(dirname(RESULTS), { recursive: true })
    const machine = { node: process.versions.node, cpus: cpus().length, model: cpus()[0]?.model }
    writeFileSync(
      RESULTS,
      `${JSON.stringify({ at: new Date().toISOString(), batch: BATCH, senders: SENDERS, machine, results }, null, 2)}\n`,
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const [mode, databaseUrl] = process.argv.slice(2)
if (mode === 'serve' && databaseUrl !== undefined) await serveTraces(databaseUrl)
else await main()
