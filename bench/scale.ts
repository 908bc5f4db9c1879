import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { inRoot } from '../scripts/root.ts'
import { connectDatabase } from '../src/platform/database/connect.ts'
import { startEmbeddedDatabase } from '../src/platform/database/embedded.ts'
import type { Database } from '../src/platform/database/schema.ts'
import { createLog } from '../src/platform/log.ts'
import { askPlatform } from '../test/platform/support/ask-platform.ts'
import { API_KEY, createDeployment, createEchoRepository, median, seconds, writeResults } from './platform-process.ts'
import { startBucket } from './support/bucket.ts'
import { checkRows, createExport, untilComplete } from './support/bulk-export.ts'
import { createDestination, SECRET_KEY } from './support/destination.ts'
import { createProject, type Project } from './support/project.ts'

/**
 * What more processes on one PostgreSQL server bring: throughput of an export with 1, 2 and 4 `queue` processes, and how long it takes after
 * a kill -9 of the one that has the work in hand until another has taken it up. `node bench/scale.ts [thousands of runs] [kills]`.
 */

const ROWS = Number(process.argv[2] ?? 100) * 1000
const KILLS = Number(process.argv[3] ?? 5)
const PROCESSES = [1, 2, 4]
const DAYS = 8
const log = createLog('error')
const processes = new Set<ChildProcess>()

await main()

interface Bench {
  readonly db: Database
  readonly url: string
  readonly folder: string
  readonly port: number
}

interface Node {
  readonly url: string
  readonly id: string
  end(signal: NodeJS.Signals): Promise<void>
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-scale-'))
  const server = await startEmbeddedDatabase({ directory: join(folder, 'database'), log })
  const bucket = await startBucket()
  const db = await connectDatabase({ url: server.url, log })
  const bench = { db, url: server.url, folder, port: bucket.port }
  try {
    const place = await fill(bench)
    const throughput = await measureThroughput(bench, place)
    const takeover = await measureTakeover(bench, place)
    writeResults('scale', { rows: ROWS, days: DAYS, throughput, takeover })
  } finally {
    for (const child of processes) child.kill('SIGKILL')
    await db.destroy()
    bucket.stop()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureThroughput(bench: Bench, place: Place) {
  console.log(`export of ${ROWS} runs in ${DAYS} days, ${PROCESSES.join(', ')} queue processes on one PostgreSQL\n`)
  console.log('processes    seconds     rows/s   to one')
  const results: { processes: number; seconds: number; rowsPerSecond: number; toOne: number }[] = []
  for (const processes of PROCESSES) {
    const nodes = await Promise.all(
      Array.from({ length: processes }, (_, index) => startNode(bench, { role: 'queue', name: `export-${index}` })),
    )
    // The first reads from the disk what the others find in memory.
    if (results.length === 0) await exportOnce(bench, place)
    const runs = [await exportOnce(bench, place), await exportOnce(bench, place), await exportOnce(bench, place)]
    await Promise.all(nodes.map((node) => node.end('SIGTERM')))
    const took = median(runs)
    const result = { processes, seconds: took, rowsPerSecond: ROWS / took, toOne: (results[0]?.seconds ?? took) / took }
    results.push(result)
    console.log(
      `${String(processes).padEnd(9)} ${took.toFixed(2).padStart(10)} ${(ROWS / took).toFixed(0).padStart(10)} ${result.toOne.toFixed(2).padStart(8)}`,
    )
  }
  return results
}

async function measureTakeover(bench: Bench, place: Place) {
  const repository = createEchoRepository(bench.folder)
  const api = await startNode(bench, { role: 'api', name: 'api' })
  const nodes = [await startNode(bench, { role: 'queue', name: 'a' }), await startNode(bench, { role: 'queue', name: 'b' })]
  const ask = askPlatform(api.url, API_KEY)
  const deployment = await createDeployment({ ask }, { name: 'taken-over', repoUrl: repository.url })
  const agent = `${new URL(deployment.url ?? '').pathname}/ok`
  const answers = () =>
    ask(agent).then(
      () => true,
      () => false,
    )
  await until(answers)
  const kills: { exportMs: number; agentMs: number | null }[] = []
  for (let kill = 0; kill < KILLS; kill += 1) {
    // A node judges others only after it has been there for a while itself.
    await new Promise((resolve) => setTimeout(resolve, 12_000))
    await until(answers)
    const exportId = await makeExport(bench, place)
    const holder = async () =>
      (
        await bench.db
          .selectFrom('bulk_export_runs')
          .select('lease_owner')
          .where('export_id', '=', exportId)
          .where('status', '=', 'RUNNING')
          .execute()
      ).map((row) => row.lease_owner)
    await until(async () => (await holder()).length > 0)
    const [victimId] = await holder()
    const victim = nodes.findIndex((node) => node.id === victimId)
    const other = nodes[1 - victim]
    const hosted = await bench.db.selectFrom('agents').select('node_id').where('state', '=', 'serving').executeTakeFirst()
    const held = await bench.db
      .selectFrom('bulk_export_runs')
      .select('id')
      .where('export_id', '=', exportId)
      .where('lease_owner', '=', victimId ?? '')
      .executeTakeFirstOrThrow()
    const killedAt = performance.now()
    await nodes[victim]?.end('SIGKILL')
    await until(async () => {
      const run = await bench.db
        .selectFrom('bulk_export_runs')
        .select(['lease_owner', 'status'])
        .where('id', '=', held.id)
        .executeTakeFirstOrThrow()
      return run.lease_owner === other?.id || run.status === 'COMPLETED'
    })
    const exportMs = performance.now() - killedAt
    let agentMs: number | null = null
    if (hosted?.node_id === victimId) {
      await until(answers)
      agentMs = performance.now() - killedAt
    }
    kills.push({ exportMs, agentMs })
    nodes[victim] = await startNode(bench, { role: 'queue', name: `again-${kill}` })
    await untilEnded(bench, exportId)
  }
  for (const node of [...nodes, api]) await node.end('SIGTERM')
  const exportMs = median(kills.map((kill) => kill.exportMs))
  const agents = kills.flatMap((kill) => (kill.agentMs === null ? [] : [kill.agentMs]))
  const agentMs = agents.length === 0 ? null : median(agents)
  console.log(`\nkill -9 of a queue process, until another has its work; median of ${KILLS}\n`)
  console.log(`${'export run taken up'.padEnd(36)}${seconds(exportMs)}`)
  if (agentMs !== null) console.log(`${`agent built and serving (${agents.length} times)`.padEnd(36)}${seconds(agentMs)}`)
  return { kills, exportMs, agentMs }
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20))
}

async function startNode({ url, folder }: Bench, { role, name }: { role: string; name: string }): Promise<Node> {
  const data = join(folder, `${name}-${randomUUID().slice(0, 8)}`)
  const args = [
    'src/platform/main.ts',
    '--port',
    '0',
    '--role',
    role,
    '--data-dir',
    data,
    '--database-url',
    url,
    '--api-key',
    API_KEY,
    '--json',
  ]
  const env = { ...process.env, PLATFORM_LOG_LEVEL: 'error', PLATFORM_SECRET_KEY: SECRET_KEY.toString('base64') }
  const child: ChildProcess = spawn(process.execPath, args, { cwd: inRoot(), stdio: ['ignore', 'pipe', 'inherit'], env })
  processes.add(child)
  child.once('exit', () => processes.delete(child))
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk: Buffer) => resolve(chunk.toString()))
    child.once('exit', () => reject(new Error('a node did not start')))
  })
  return {
    url: (JSON.parse(line) as { url: string }).url,
    id: readFileSync(join(data, 'node-id'), 'utf8').trim(),
    end: async (signal) => {
      const exited = new Promise((resolve) => child.once('exit', resolve))
      child.kill(signal)
      await exited
    },
  }
}

interface Place extends Project {
  readonly destinationId: string
}

/** Runs with about two kilobytes of text each, on several days, and where they are exported to. */
async function fill({ db, port }: Bench): Promise<Place> {
  const { workspaceId, projectId } = await createProject(db)
  for (let from = 0; from < ROWS; from += 20_000) {
    await sql`
      insert into runs (workspace_id, id, session_id, trace_id, dotted_order, name, run_type, start_time, end_time, inputs, outputs, extra, events,
        posted, patched)
      select ${workspaceId}::uuid, id, ${projectId}::uuid, id, '20260801T000000000000Z' || id, 'ChatModel', 'llm', at, at + interval '1.5 s',
        '{"messages": [{"role": "user", "content": "' || words || '"}]}', '{"content": "' || left(words, 600) || '"}', '{"metadata": {}}', '[]', true, true
      from (
        select gen_random_uuid() as id, '2026-08-01T00:00:00Z'::timestamptz + interval '1 day' * (n::float8 * ${DAYS}::int / ${ROWS}::int) as at,
          (select left(string_agg((array['the','agent','answers','with','a','tool','call','and','waits','for','its','result'])[1 + floor(random() * 12)::int]
            || case when random() < 0.2 then to_char(random() * 1e6, ' 999999') else '' end, ' '), 1200)
            from generate_series(1, 250) where n >= 0) as words
        from generate_series(${from}::int, least(${from + 20_000}::int, ${ROWS}::int) - 1) as n
      ) made`.execute(db)
  }
  await sql.raw('vacuum analyze runs').execute(db)
  return { workspaceId, projectId, destinationId: await createDestination(db, { workspaceId, port }) }
}

async function makeExport({ db }: Bench, place: Place): Promise<string> {
  const end = `2026-08-${String(1 + DAYS).padStart(2, '0')}`
  const id = await createExport(db, { ...place, start: '2026-08-01', end })
  await sql`select pg_notify('deploy_agent_server', 'work')`.execute(db)
  return id
}

/** @returns seconds. */
async function exportOnce(bench: Bench, place: Place): Promise<number> {
  const began = performance.now()
  await untilEnded(bench, await makeExport(bench, place))
  return (performance.now() - began) / 1000
}

async function untilEnded({ db }: Bench, id: string): Promise<void> {
  await untilComplete(db, id)
  await checkRows(db, id, ROWS)
}
