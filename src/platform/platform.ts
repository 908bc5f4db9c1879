import path from 'node:path'
import { createRefresh } from './agents/directory.ts'
import { createAgentRoutes } from './agents/routes.ts'
import { createProcessRuntime } from './control-plane/runtimes/process.ts'
import { buildAgent } from './control-plane/sources/build.ts'
import { resolveGitHead } from './control-plane/sources/git.ts'
import { createApi } from './api.ts'
import type { EndpointRules } from './bulk-export/bucket/endpoint.ts'
import { createExportMetrics } from './bulk-export/metrics.ts'
import { CLOUD_EXPORT_LIMITS, DEFAULT_EXPORT_SETTINGS } from './bulk-export/settings.ts'
import { startExportWorkers } from './bulk-export/workers.ts'
import { createClock } from './clock.ts'
import { openDataDirectory } from './data-directory.ts'
import { connectDatabase } from './database/connect.ts'
import { type EmbeddedDatabase, startEmbeddedDatabase } from './database/embedded.ts'
import { listen } from './database/notifications.ts'
import type { Database } from './database/schema.ts'
import { startDuty } from './duty.ts'
import { parseGitTokens } from './git-tokens.ts'
import { startHttpServer } from './http/server.ts'
import { createMemoryCounter, type RateCounter } from './limits/counter.ts'
import { createSharedCounter } from './limits/shared-counter.ts'
import type { Log } from './log.ts'
import type { Options } from './options.ts'
import { startQueue } from './queue.ts'
import { checkKey, createSecretBox, readOrCreateKey } from './secrets.ts'
import { DEFAULT_SETTINGS, type Settings } from './settings.ts'
import { ensureFirstWorkspace } from './workspaces/first-workspace.ts'

/** How often routes are compared with the database besides announcements. Milliseconds. */
const ROUTES_LOOK_MS = 3000
const RATE_LIMIT_SWEEP_MS = 60_000

export interface Platform {
  readonly url: string
  /** Null when it was made at an earlier start: only its hash is kept. */
  readonly apiKey: string | null
  readonly workspaceId: string
  /** Settles when the platform can no longer work, with the reason. */
  readonly broken: Promise<Error>
  /** Drains and ends everything that was started; repeated calls wait for the first. */
  stop(): Promise<void>
}

/** Starts the platform in this process (design, section 5). What was started is stopped again when a later part fails to start. */
export async function startPlatform({
  options,
  settings = DEFAULT_SETTINGS,
  log,
}: {
  options: Options
  settings?: Settings
  log: Log
}): Promise<Platform> {
  const undo: (() => Promise<unknown>)[] = []
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= (async () => {
      // A part that does not stop as it should must not keep the others from it.
      for (const step of undo.toReversed()) {
        await step().catch((error: Error) => log.warn({ error: error.message }, 'a part of the platform did not stop as it should'))
      }
    })()
    return stopped
  }
  try {
    return { ...(await startParts({ options, settings, log, undo })), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startParts({
  options,
  settings,
  log,
  undo,
}: {
  options: Options
  settings: Settings
  log: Log
  undo: (() => Promise<unknown>)[]
}): Promise<Omit<Platform, 'stop'>> {
  // Before anything is started: a malformed one is told at once.
  const gitTokens = parseGitTokens(process.env['PLATFORM_GIT_TOKENS'])
  const data = await openDataDirectory(options['data-dir'])
  undo.push(data.release)
  const embedded = options['database-url'] === undefined ? await startEmbeddedDatabase({ directory: data.database, log }) : null
  if (embedded !== null) undo.push(embedded.stop)
  const databaseUrl = options['database-url'] ?? (embedded as EmbeddedDatabase).url
  const db = await connectDatabase({ url: databaseUrl, log })
  undo.push(() => db.destroy())
  const { workspaceId, apiKey } = await ensureFirstWorkspace(db, {
    apiKey: options['api-key'],
    workspaceId: options['workspace-id'],
    plan: options.plan,
  })
  const secretBox = createSecretBox(await readOrCreateKey(data.keyFile))
  await checkKey(db, { secretBox, keyFile: data.keyFile })
  const notifications = await listen({ url: databaseUrl, log })
  undo.push(notifications.close)

  const agentRoutes = createAgentRoutes()
  const refresh = createRefresh(db, agentRoutes)
  await refresh()
  const following = startDuty({ name: 'routes', intervalMs: ROUTES_LOOK_MS, round: refresh, log })
  notifications.on('agents', () => following.wake())
  undo.push(following.stop)

  const clock = createClock(options['time-scale'])
  const metrics = createExportMetrics()
  const rules: EndpointRules = { allowLinkLocal: process.env['PLATFORM_ALLOW_LINK_LOCAL_ENDPOINTS'] === 'true' }
  const exportSettings = { ...DEFAULT_EXPORT_SETTINGS, ...(options.offering === 'cloud' ? CLOUD_EXPORT_LIMITS : {}) }
  const exporting = { db, secretBox, clock, settings: exportSettings, rules }
  const counter = createCounter({ options, db, log, undo })
  const api = createApi({
    ...exporting,
    offering: options.offering,
    options,
    agentRoutes,
    counter,
    trustedProxies: listOf(process.env['PLATFORM_TRUSTED_PROXIES']),
    renderMetrics: metrics.renderMetrics,
    log,
  })
  // Before the queue, and ended after it: agents send their traces here until they end.
  const server = await startHttpServer({ ...api, host: options.host, port: options.port })
  undo.push(() => server.close({ limitMs: settings.stopLimitMs }))

  if (options.role !== 'api') {
    const queue = await startQueue({
      db,
      notifications,
      data,
      secretBox,
      runtime: createProcessRuntime(),
      build: buildAgent,
      resolveHead: resolveGitHead,
      tokenFor: gitTokens.tokenFor,
      clock,
      traceUrl: localUrl(server.url),
      routes: agentRoutes,
      refreshRoutes: refresh,
      settings,
      log,
    })
    undo.push(queue.stop)
    const spool = path.join(data.root, 'spool')
    const exports = await startExportWorkers({ ...exporting, databaseUrl, notifications, owner: data.nodeId, spool, metrics, log })
    undo.push(exports.stop)
  }

  return { url: server.url, apiKey, workspaceId, broken: embedded?.lost ?? new Promise<Error>(() => {}) }
}

/** Where requests are counted: in memory, or in the database when other processes answer too. */
function createCounter({ options, db, log, undo }: { options: Options; db: Database; log: Log; undo: (() => Promise<unknown>)[] }): RateCounter | null {
  if (options['rate-limits'] === 'off') return null
  if (options['database-url'] === undefined) return createMemoryCounter()
  const counter = createSharedCounter(db)
  undo.push(startDuty({ name: 'rate limits', intervalMs: RATE_LIMIT_SWEEP_MS, round: counter.sweep, log }).stop)
  return counter
}

/** The address by which processes of this machine reach the server. */
function localUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

function listOf(text: string | undefined): string[] {
  return (text ?? '').split(/[\s,]+/).filter((entry) => entry !== '')
}
