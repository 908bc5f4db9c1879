import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { type Kysely, sql } from 'kysely'
import { pino } from 'pino'
import { inRoot } from '../scripts/root.ts'
import { connectDatabase } from '../src/platform/database/connect.ts'
import { startEmbeddedDatabase } from '../src/platform/database/embedded.ts'
import { type Load, type Measured, measure } from './support/load.ts'

/**
 * How fast the control plane reads, lists and patches with much in its database, beside a bare handler of the same framework that gives
 * the same answers. Each round measures both, one after the other, so that a busy moment of the machine hits both alike.
 */
const RESULTS = inRoot('bench', 'results', 'control-plane.json')
const KEY = 'bench-key-0123456789abcdef'

const { values } = parseArgs({
  options: {
    deployments: { type: 'string', default: '10000' },
    revisions: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '20' },
  },
})
const scale = {
  deployments: Number(values.deployments),
  revisions: Number(values.revisions),
  seconds: Number(values.seconds),
  rounds: Number(values.rounds),
  connections: Number(values.connections),
}

/** Starts a program that prints one JSON line when it is ready. */
async function start(args: readonly string[]): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await Promise.race([
    once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), 'line'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`${args[0]} ended with ${String(code)} before it was ready`))),
  ])) as [string]
  return { child, url: (JSON.parse(line) as { url: string }).url }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

/** Fills the first workspace: revisions spread evenly, nearly all of them over, the newest of each deployment live. */
async function seed<T>(db: Kysely<T>, workspaceId: string): Promise<void> {
  const each = Math.max(1, Math.round(scale.revisions / scale.deployments))
  await sql`
    insert into deployments (id, workspace_id, name, slug, status, source, source_config, created_at)
    select gen_random_uuid(), ${workspaceId}, 'agent-' || n, 'agent-' || n, 'READY', 'git_host', ${JSON.stringify({
      integration_id: null,
      repo_url: 'https://git.example.com/team/agent.git',
      deployment_type: 'prod',
      build_on_push: false,
      custom_url: null,
      resource_spec: null,
      listener_id: null,
      listener_config: null,
      install_command: null,
      build_command: null,
    })}::jsonb, now() - n * interval '1 minute'
    from generate_series(1, ${scale.deployments}::int) n`.execute(db)
  await sql`
    insert into revisions (id, deployment_id, status, source, repo_ref, graph_config_path, repo_commit_sha, secret_names)
    select gen_random_uuid(), d.id, (array['DEPLOYED', 'DEPLOYED', 'DEPLOYED', 'BUILD_FAILED', 'SKIPPED'])[1 + (n + r) % 5], 'git_host',
      'main', 'langgraph.json', md5(n::text || r::text), '["OPENAI_API_KEY"]'
    from (select id, row_number() over () as n from deployments) d, generate_series(1, ${each}::int) r`.execute(db)
  await sql`
    update deployments set latest_revision_id = newest.id, active_revision_id = newest.id
    from (select distinct on (deployment_id) deployment_id, id from revisions order by deployment_id, number desc) newest
    where newest.deployment_id = deployments.id`.execute(db)
  await sql`vacuum analyze`.execute(db)
}

/** Memory of a process, in megabytes. */
function residentMb(pid: number | undefined): number | null {
  try {
    const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kilobytes === undefined ? null : Number(kilobytes) / 1000
  } catch {
    return null
  }
}

function mb(value: number | null): string {
  return value === null ? 'unknown' : `${value.toFixed(0)} MB`
}

/** Processor time of a process so far, in milliseconds: unlike the clock it does not care who else is busy. */
function processorMs(pid: number | undefined): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // In hundredths of a second, as Linux says to every program.
    return (Number(fields[11]) + Number(fields[12])) * 10
  } catch {
    return Number.NaN
  }
}

type Seen = Measured & { readonly processorMsEach: number }

function median(all: readonly Seen[]): Seen {
  return all.toSorted((a, b) => a.perSecond - b.perSecond)[Math.floor(all.length / 2)] as Seen
}

const folder = mkdtempSync(join(tmpdir(), 'bench-control-plane-'))
const log = pino({ level: 'warn' })
const children: ChildProcess[] = []
const embedded = await startEmbeddedDatabase({ directory: join(folder, 'database'), log })
try {
  const workspaceId = randomUUID()
  const platformArgs = ['--port', '0', '--data-dir', join(folder, 'data'), '--database-url', embedded.url, '--role', 'api', '--json']
  const first = await start([inRoot('src/platform/main.ts'), ...platformArgs, '--api-key', KEY, '--workspace-id', workspaceId])
  await stop(first.child)

  const db = await connectDatabase({ url: embedded.url, log })
  const began = performance.now()
  // The statement limit of the pool is for requests, not for a million rows.
  await db.connection().execute(async (connection) => {
    await sql`set statement_timeout = 0`.execute(connection)
    await seed(connection, workspaceId)
  })
  console.log(`${scale.deployments} deployments, ${scale.revisions} revisions: made in ${((performance.now() - began) / 1000).toFixed(1)} s`)
  const ids = (await db.selectFrom('deployments').select('id').execute()).map(({ id }) => id)
  await db.destroy()

  const platform = await start([inRoot('src/platform/main.ts'), ...platformArgs])
  children.push(platform.child)
  const headers = { 'X-Api-Key': KEY }
  const anyId = () => ids[randomInt(ids.length)] as string
  const sample = async (path: string): Promise<unknown> => (await fetch(`${platform.url}${path}`, { headers })).json()
  const answers = join(folder, 'answers.json')
  writeFileSync(
    answers,
    JSON.stringify({
      deployment: await sample(`/v2/deployments/${ids[0]}`),
      deployments: await sample('/v2/deployments'),
      revisions: await sample(`/v2/deployments/${ids[0]}/revisions`),
    }),
  )
  const bare = await start([inRoot('bench/bare-handler.ts'), answers])
  children.push(bare.child)

  let change = 0
  const loads: Load[] = [
    { name: 'read a deployment', next: () => ({ method: 'GET', path: `/v2/deployments/${anyId()}` }) },
    { name: 'list deployments', next: () => ({ method: 'GET', path: `/v2/deployments?offset=${randomInt(ids.length)}` }) },
    { name: 'list revisions', next: () => ({ method: 'GET', path: `/v2/deployments/${anyId()}/revisions?status=DEPLOYED,BUILD_FAILED` }) },
    {
      name: 'patch a deployment',
      next: () => ({ method: 'PATCH', path: `/v2/deployments/${anyId()}`, body: JSON.stringify({ display_name: `name ${(change += 1)}` }) }),
    },
  ]
  const subjects = { platform, bare }
  const memoryBefore = residentMb(platform.child.pid)
  const rows = []
  for (const load of loads) {
    const seen: Record<keyof typeof subjects, Seen[]> = { platform: [], bare: [] }
    for (let round = 0; round <= scale.rounds; round += 1) {
      for (const subject of ['platform', 'bare'] as const) {
        const { url, child } = subjects[subject]
        // The first round warms up.
        const seconds = round === 0 ? Math.min(1, scale.seconds) : scale.seconds
        const before = processorMs(child.pid)
        const measured = await measure({ url, load, connections: scale.connections, seconds, headers })
        const processorMsEach = (processorMs(child.pid) - before) / measured.requests
        if (round > 0) seen[subject].push({ ...measured, processorMsEach })
      }
    }
    const [platformSeen, bareSeen] = [median(seen.platform), median(seen.bare)]
    rows.push({ name: load.name, platform: platformSeen, bare: bareSeen, ratio: platformSeen.perSecond / bareSeen.perSecond })
  }
  const memory = { beforeMb: memoryBefore, afterMb: residentMb(platform.child.pid), bareMb: residentMb(bare.child.pid) }

  console.log('\n                          requests a second             p99                  processor time each')
  console.log('                      platform      bare   ratio   platform      bare      platform      bare')
  for (const { name, platform: mine, bare: theirs, ratio } of rows) {
    const rates = [mine, theirs].map(({ perSecond }) => perSecond.toFixed(0).padStart(10)).join('')
    const p99 = [mine, theirs].map((one) => `${one.p99.toFixed(1)} ms`.padStart(11)).join('')
    const processor = [mine, theirs].map((one) => `${one.processorMsEach.toFixed(2)} ms`.padStart(12)).join('')
    console.log(`${name.padEnd(20)}${rates}${`${ratio.toFixed(2)}x`.padStart(8)}${p99}${processor}`)
  }
  console.log(`\nmemory of the platform: ${mb(memory.beforeMb)} before, ${mb(memory.afterMb)} after; of the bare handler: ${mb(memory.bareMb)}`)
  const rounds = `median of ${scale.rounds} rounds of ${scale.seconds} s, ${scale.connections} connections`
  console.log(`${rounds}; Node ${process.versions.node}, ${cpus().length} processors`)

  mkdirSync(inRoot('bench', 'results'), { recursive: true })
  const machine = { node: process.versions.node, cpus: cpus().length, model: cpus()[0]?.model }
  writeFileSync(RESULTS, `${JSON.stringify({ at: new Date().toISOString(), scale, machine, rows, memory }, null, 2)}\n`)
} finally {
  for (const child of children) await stop(child)
  await embedded.stop()
  rmSync(folder, { recursive: true, force: true })
}
