import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { connectDatabase } from '../src/platform/database/connect.ts'
import { startEmbeddedDatabase } from '../src/platform/database/embedded.ts'
import { createClientAddress } from '../src/platform/limits/client-address.ts'
import { createMemoryCounter, type RateCounter } from '../src/platform/limits/counter.ts'
import { createRateLimitMetrics } from '../src/platform/limits/metrics.ts'
import { rateLimits } from '../src/platform/limits/middleware.ts'
import { createRateLimiter } from '../src/platform/limits/rate-limits.ts'
import { createSharedCounter } from '../src/platform/limits/shared-counter.ts'
import { createLog } from '../src/platform/log.ts'
import { createAuthenticate, hashApiKey, isKnownKey } from '../src/platform/workspaces/authenticate.ts'
import { measure, type Measured } from './support/load.ts'
import { writeResults } from './platform-process.ts'

/**
 * Requests a second of a route that looks a key up and answers, with the rate limits off, counted in memory, and counted in PostgreSQL,
 * in one run and in turns. The callers are many, so that nobody meets a limit: what is measured is the counting.
 */

const MODES = ['off', 'memory', 'postgresql'] as const
type Mode = (typeof MODES)[number]

const KEYS = 400
const CONNECTIONS = 16
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 4)
const ROUNDS = 3

const log = createLog('warn')

/** One service in a process of its own: this file, started again. */
async function startService(mode: Mode, databaseUrl: string): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), mode, databaseUrl], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { url, child }
}

async function serveMode(mode: Mode, databaseUrl: string): Promise<void> {
  const db = await connectDatabase({ url: databaseUrl, log })
  const authenticate = createAuthenticate(db)
  const app = new Hono()
  const counter: RateCounter | null = mode === 'off' ? null : mode === 'memory' ? createMemoryCounter() : createSharedCounter(db)
  if (counter !== null) {
    const limiter = createRateLimiter({ region: 'us', counter, isKnownKey: (key) => isKnownKey(authenticate, key) })
    app.use(rateLimits({ limiter, clientAddress: createClientAddress([]), metrics: createRateLimitMetrics(), log }))
  }
  app.get('/sessions', async (c) => {
    const { workspaceId } = await authenticate((name) => c.req.header(name))
    return c.json({ workspaceId })
  })
  serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => console.log(`http://127.0.0.1:${port}`))
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-rate-limits-'))
  const database = await startEmbeddedDatabase({ directory: join(folder, 'database'), log })
  const db = await connectDatabase({ url: database.url, log })
  const services = new Map<Mode, { url: string; child: ChildProcess }>()
  const best = new Map<Mode, Measured>()
  try {
    const workspaceId = randomUUID()
    await db.insertInto('workspaces').values({ id: workspaceId, name: 'bench', plan: 'enterprise' }).execute()
    const keys = Array.from({ length: KEYS }, () => randomBytes(24).toString('base64url'))
    const rows = keys.map((key) => ({ id: randomUUID(), workspace_id: workspaceId, key_hash: hashApiKey(key) }))
    await db.insertInto('api_keys').values(rows).execute()
    for (const mode of MODES) services.set(mode, await startService(mode, database.url))
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [mode, { url }] of services) {
        let turn = 0
        const next = () => ({ method: 'GET', path: '/sessions', headers: { 'X-Api-Key': keys[(turn += 1) % KEYS] as string } })
        const seen = await measure({ url, load: { name: mode, next }, connections: CONNECTIONS, seconds: SECONDS, headers: {} })
        if (seen.perSecond > (best.get(mode)?.perSecond ?? 0)) best.set(mode, seen)
      }
    }
  } finally {
    for (const { child } of services.values()) {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    await db.destroy()
    await database.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  const off = best.get('off')?.perSecond ?? 0
  const results = [...best].map(([limits, seen]) => ({ limits, ...seen, ratio: seen.perSecond / off }))
  console.log('limits        requests/s   p50      p99      of off')
  for (const { limits, perSecond, p50, p99, ratio } of results) {
    const numbers = [perSecond.toFixed(0).padStart(10), `${p50.toFixed(1)} ms`.padStart(10), `${p99.toFixed(1)} ms`.padStart(9)]
    console.log(`${limits.padEnd(12)}${numbers.join('')}${`${(ratio * 100).toFixed(0)} %`.padStart(9)}`)
  }
  writeResults('rate-limits', { connections: CONNECTIONS, keys: KEYS, seconds: SECONDS, rounds: ROUNDS, results })
}

const [mode, databaseUrl] = process.argv.slice(2)
if (databaseUrl !== undefined) await serveMode(mode as Mode, databaseUrl)
else await main()
