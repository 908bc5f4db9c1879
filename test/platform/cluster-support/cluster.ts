import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ExportSettings } from '../../../src/platform/bulk-export/settings.ts'
import type { Settings } from '../../../src/platform/settings.ts'
import { KEY } from '../lifecycle-support/platform-process.ts'
import { startTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Balancer, startBalancer } from './balancer.ts'

const PROGRAM = fileURLToPath(new URL('node-process.ts', import.meta.url))

export type NodeRole = 'api' | 'queue'

/** One process of a cluster, with a data directory of its own. */
export interface ClusterNode {
  readonly id: string
  readonly role: NodeRole
  readonly url: string
  readonly data: string
  readonly pid: number
  log(): string
  /** SIGKILL to it alone: its agents and builds are left behind, as after a crash. */
  kill(): Promise<void>
  /** SIGTERM. @returns its exit code. */
  stop(): Promise<number | null>
}

/** A PostgreSQL server with several `api` and several `queue` processes, and a balancer before the first. */
export interface Cluster {
  /** That of the balancer. */
  readonly url: string
  readonly database: Pick<TestDatabase, 'db' | 'url'>
  readonly balancer: Balancer
  /** Those that run. */
  nodes(role?: NodeRole): ClusterNode[]
  /** Starts one more; in the data directory of an earlier one it is that node again. */
  start(role: NodeRole, options?: { data?: string }): Promise<ClusterNode>
  /** Everything that the nodes have logged. */
  log(): string
  stop(): Promise<void>
}

export interface ClusterOptions {
  readonly apis?: number
  readonly queues?: number
  /** Master keys of all nodes, in Base64. */
  readonly secretKey?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
  readonly settings?: Partial<Settings>
  readonly exportSettings?: Partial<ExportSettings>
  /** Holds by how much the nodes' clocks are ahead, in milliseconds. */
  readonly clockFile?: string
  readonly timeScale?: number
  /** A database that others use as well; absent: one of its own. */
  readonly database?: Pick<TestDatabase, 'db' | 'url'>
}

export const SECRET_KEY = Buffer.alloc(32, 5).toString('base64')

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { apis = 2, queues = 2 } = options
  const folder = mkdtempSync(path.join(tmpdir(), 'cluster-'))
  const own = options.database === undefined ? await startTestDatabase() : null
  const database = options.database ?? (own as TestDatabase)
  const balancer = await startBalancer()
  const all: (ClusterNode & { child: ChildProcess })[] = []
  let number = 0

  const start: Cluster['start'] = async (role, { data = path.join(folder, `${role}-${(number += 1)}`) } = {}) => {
    const args = [
      '--port',
      '0',
      '--role',
      role,
      '--data-dir',
      data,
      '--database-url',
      database.url,
      '--api-key',
      KEY,
      ...(options.args ?? []),
    ]
    const orders = JSON.stringify({
      args,
      settings: options.settings ?? {},
      exportSettings: options.exportSettings ?? {},
      clockFile: options.clockFile ?? null,
      timeScale: options.timeScale ?? 1,
    })
    const env = {
      ...process.env,
      PLATFORM_SECRET_KEY: options.secretKey ?? SECRET_KEY,
      PLATFORM_TRUSTED_PROXIES: '127.0.0.1',
      ...options.environment,
    }
    const child = spawn(process.execPath, [PROGRAM, orders], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let log = ''
    child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
    const url = await readUrl(child, () => log)
    const port = Number(new URL(url).port)
    const end = async (signal: NodeJS.Signals) => {
      balancerForgets()
      const exited = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null
      child.kill(signal)
      await exited
      return child.exitCode
    }
    // A balancer learns of a death by the first connection that fails; one that stops says so before.
    const balancerForgets = () => balancer.backends.delete(port)
    if (role === 'api') balancer.backends.add(port)
    const id = readFileSync(path.join(data, 'node-id'), 'utf8').trim()
    const node = {
      child,
      id,
      role,
      url,
      data,
      pid: child.pid ?? 0,
      log: () => log,
      kill: async () => void (await end('SIGKILL')),
      stop: () => end('SIGTERM'),
    }
    all.push(node)
    return node
  }
  const running = (role?: NodeRole) =>
    all.filter(
      (node) => node.child.exitCode === null && node.child.signalCode === null && (role === undefined || node.role === role),
    )

  try {
    // One after the other the first time: it makes the schema.
    await start('api')
    await Promise.all([
      ...Array.from({ length: apis - 1 }, () => start('api')),
      ...Array.from({ length: queues }, () => start('queue')),
    ])
  } catch (error) {
    for (const node of running()) await node.kill()
    await balancer.close()
    throw error
  }
  return {
    url: balancer.url,
    database,
    balancer,
    nodes: running,
    start,
    log: () => all.map((node) => `--- ${node.role} ${node.id}\n${node.log()}`).join('\n'),
    stop: async () => {
      await Promise.all(running().map((node) => node.stop()))
      await balancer.close()
      await own?.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function readUrl(child: ChildProcess, log: () => string): Promise<string> {
  let out = ''
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const deadline = Date.now() + 60_000
  while (!out.includes('\n')) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the node did not start: ${log()}`)
    if (Date.now() > deadline) throw new Error(`the node was not ready within 60 s: ${log()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return (JSON.parse(out) as { url: string }).url
}
