import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/platform/database/schema.ts'
import { type Cluster, type ClusterOptions, type NodeRole, startCluster } from './cluster.ts'
import { type Registered, registeredDatabase } from './registry.ts'

/**
 * With `PLATFORM_TEST_TOPOLOGY=cluster` the tests of the control plane and of bulk export send their requests to real processes: two of the
 * role `api` and two of the role `queue` on one PostgreSQL server, behind a balancer, of which one of each is killed at random times and
 * replaced, again and again (`npm run test:cluster`).
 */
export const CLUSTERED = process.env['PLATFORM_TEST_TOPOLOGY'] === 'cluster'

const clusters = new WeakMap<Registered, Map<string, Promise<KilledCluster>>>()

/** Times between two kills, at least and at most. Milliseconds. */
const KILLS_MS = { least: 1500, most: 8000 }

export interface KilledOptions extends ClusterOptions {
  /** Roles of which a node is killed now and then from the start. */
  readonly killed?: readonly NodeRole[]
}

/** A cluster whose nodes do not live long. */
export interface KilledCluster {
  readonly cluster: Cluster
  /** Kills nodes of the role at random times from now on, until the returned function is called; by then two run. */
  killing(role: NodeRole): () => Promise<void>
  /** Moves the clock of all nodes. */
  moveClock(offsetMs: number): void
  stop(): Promise<void>
}

/** The cluster of a database with these options; started when it is first asked for. */
export function clusterOn(db: Database, options: Omit<KilledOptions, 'database'>): Promise<KilledCluster> {
  const database = registeredDatabase(db)
  const ofDatabase = clusters.get(database) ?? new Map<string, Promise<KilledCluster>>()
  clusters.set(database, ofDatabase)
  const key = JSON.stringify(options)
  const known = ofDatabase.get(key)
  if (known !== undefined) return known
  const started = startKilled({ ...options, database })
  ofDatabase.set(key, started)
  database.beforeStop.push(async () => (await started).stop())
  return started
}

async function startKilled({ killed = [], ...options }: KilledOptions): Promise<KilledCluster> {
  const folder = mkdtempSync(path.join(tmpdir(), 'cluster-clock-'))
  const clockFile = path.join(folder, 'offset')
  writeFileSync(clockFile, '0')
  const cluster = await startCluster({ ...options, clockFile, args: ['--rate-limits', 'off', ...(options.args ?? [])] })
  const killings: (() => Promise<void>)[] = []
  let kills = 0
  const killing = (role: NodeRole) => {
    const ending = new AbortController()
    const loop = (async () => {
      while (!ending.signal.aborted) {
        await sleep(KILLS_MS.least + Math.random() * (KILLS_MS.most - KILLS_MS.least), undefined, {
          signal: ending.signal,
        }).catch(() => undefined)
        if (ending.signal.aborted) return
        const nodes = cluster.nodes(role)
        await nodes[Math.floor(Math.random() * nodes.length)]?.kill()
        kills += 1
        await cluster.start(role)
      }
    })()
    const end = async () => {
      ending.abort()
      await loop
    }
    killings.push(end)
    return end
  }
  for (const role of killed) killing(role)
  return {
    cluster,
    killing,
    moveClock: (offsetMs) => writeFileSync(clockFile, String(offsetMs)),
    stop: async () => {
      await Promise.all(killings.map((end) => end()))
      await cluster.stop()
      rmSync(folder, { recursive: true, force: true })
      process.stdout.write(`a cluster ended after ${kills} kills\n`)
    },
  }
}

/**
 * Sends a request as a client would: one whose connection cannot be made, or breaks before the answer, is sent again. A create whose answer
 * was lost may have been made: then its name is taken, and what has that name is the answer.
 */
export async function askCluster(url: string, where: string, init: RequestInit): Promise<Response> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await fetch(url + where, init)
      const text = await response.arrayBuffer()
      if (attempt > 1 && response.status === 409 && init.method === 'POST' && where === '/v2/deployments') {
        const made = await findCreated(url, init)
        if (made !== null) return made
      }
      return new Response([204, 304].includes(response.status) ? null : text, {
        status: response.status,
        headers: response.headers,
      })
    } catch (error) {
      if (!isRepeatable(init, where) && !wasRefused(error))
        throw new Error(`${ANSWER_LOST}: ${init.method} ${where}`, { cause: error })
      if (attempt === 20) throw error
      await sleep(50 * attempt)
    }
  }
}

/** What a test fails with whose request may not be repeated and lost its answer to a kill: it is run once more (vitest.config.ts). */
const ANSWER_LOST = 'the answer was lost to a kill'

function isRepeatable({ method = 'GET' }: RequestInit, where: string): boolean {
  return ['GET', 'HEAD', 'OPTIONS', 'DELETE', 'PUT'].includes(method) || (method === 'POST' && where === '/v2/deployments')
}

/** Nothing was sent. */
function wasRefused(error: unknown): boolean {
  const cause = (error as { cause?: { code?: string } }).cause
  return cause?.code === 'ECONNREFUSED'
}

async function findCreated(url: string, init: RequestInit): Promise<Response | null> {
  const { name } = JSON.parse(String(init.body)) as { name: string }
  const headers = init.headers ?? {}
  const { resources } = (await (await fetch(`${url}/v2/deployments?name_contains=${name}`, { headers })).json()) as {
    resources: { id: string; name: string }[]
  }
  const found = resources.find((one) => one.name === name)
  return found === undefined
    ? null
    : new Response(JSON.stringify(found), { status: 201, headers: { 'Content-Type': 'application/json' } })
}
