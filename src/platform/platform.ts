import path from 'node:path'
import { createFreshLook, createRefresh } from './agents/directory.ts'
import { faultLog } from './agents/fault-log.ts'
import { createAgentForwarder } from './agents/forwarder.ts'
import type { AgentHost } from './agents/host.ts'
import { createAgentRoutes } from './agents/routes.ts'
import { createImageHosting } from './control-plane/runtimes/choose-images.ts'
import { createProcessRuntime } from './control-plane/runtimes/process.ts'
import { buildAgent } from './control-plane/sources/build.ts'
import { resolveGitHead } from './control-plane/sources/git.ts'
import { createApi } from './api.ts'
import type { EndpointRules } from './bulk-export/bucket/endpoint.ts'
import { createExportMetrics } from './bulk-export/metrics.ts'
import { CLOUD_EXPORT_LIMITS, DEFAULT_EXPORT_SETTINGS, type ExportSettings } from './bulk-export/settings.ts'
import { startExportWorkers } from './bulk-export/workers.ts'
import { type Clock, createClock } from './clock.ts'
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
import { checkKey, hasKey, nameOfKey, readMasterKeys } from './master-key.ts'
import { createLeadership, whenLeading } from './nodes/leadership.ts'
import { BEAT_MS, createMembership, markPresent } from './nodes/membership.ts'
import { addressForOthers, readAddress } from './nodes/node-address.ts'
import { reseal } from './nodes/reseal.ts'
import { createNodeSignature } from './nodes/signature.ts'
import { noteLeader, takeOver } from './nodes/take-over.ts'
import { DEFAULT_SETTINGS, type Settings } from './settings.ts'
import { createTesting } from './testing/testing.ts'
import { ensureFirstWorkspace } from './workspaces/first-workspace.ts'

/** How often routes are compared with the database besides announcements. Milliseconds. */
const ROUTES_LOOK_MS = 3000
const RATE_LIMIT_SWEEP_MS = 60_000
const RESEAL_LOOK_MS = 60_000

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

/** Starts the platform in this process. What was started is stopped again when a later part fails to start. */
export async function startPlatform({
  options,
  settings = DEFAULT_SETTINGS,
  exportSettings = {},
  clock = createClock(options['time-scale']),
  log,
}: {
  options: Options
  settings?: Settings
  exportSettings?: Partial<ExportSettings>
  clock?: Clock
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
    return { ...(await startParts({ options, settings, exportSettings, clock, log, undo })), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startParts({
  options,
  settings,
  exportSettings: changedExportSettings,
  clock,
  log,
  undo,
}: {
  options: Options
  settings: Settings
  exportSettings: Partial<ExportSettings>
  clock: Clock
  log: Log
  undo: (() => Promise<unknown>)[]
}): Promise<Omit<Platform, 'stop'>> {
  // Before anything is started: a malformed one is told at once.
  const gitTokens = parseGitTokens(process.env['PLATFORM_GIT_TOKENS'])
  const publicUrl = readAddress(process.env, 'PLATFORM_PUBLIC_URL')
  const nodeUrl = readAddress(process.env, 'PLATFORM_NODE_URL')
  const tracesUrl = readAddress(process.env, 'PLATFORM_TRACES_URL')
  const data = await openDataDirectory(options['data-dir'])
  undo.push(data.release)
  const embedded = options['database-url'] === undefined ? await startEmbeddedDatabase({ directory: data.database, log }) : null
  if (embedded !== null) undo.push(embedded.stop)
  const databaseUrl = options['database-url'] ?? (embedded as EmbeddedDatabase).url
  const db = await connectDatabase({ url: databaseUrl, log })
  undo.push(() => db.destroy())
  // Before a key of the first workspace is made: a start that is refused must not have told it to nobody.
  const masterKeys = await readMasterKeys({ environment: process.env, keyFile: data.keyFile, mayCreate: async () => !(await hasKey(db)) })
  const { secretBox } = masterKeys
  await checkKey(db, { secretBox, keyFile: masterKeys.from })
  const { workspaceId, apiKey } = await ensureFirstWorkspace(db, {
    apiKey: options['api-key'],
    workspaceId: options['workspace-id'],
    plan: options.plan,
  })
  const { nodeId } = data
  const notifications = await listen({ url: databaseUrl, log, onSession: (session) => markPresent(session, nodeId) })
  undo.push(notifications.close)

  const agentRoutes = createAgentRoutes()
  const signature = createNodeSignature(masterKeys.keys)
  let agentHost: AgentHost | null = null
  const forwarder = createAgentForwarder({ host: () => agentHost, routes: agentRoutes, signature, onFault: faultLog(log) })
  const refresh = createRefresh(db, agentRoutes, nodeId)
  await refresh()
  const following = startDuty({ name: 'routes', intervalMs: ROUTES_LOOK_MS, round: refresh, log })
  notifications.on('agents', () => following.wake())
  undo.push(following.stop)

  const metrics = createExportMetrics()
  const rules: EndpointRules = { allowLinkLocal: process.env['PLATFORM_ALLOW_LINK_LOCAL_ENDPOINTS'] === 'true' }
  const exportSettings = { ...DEFAULT_EXPORT_SETTINGS, ...(options.offering === 'cloud' ? CLOUD_EXPORT_LIMITS : {}), ...changedExportSettings }
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
    publicUrl,
    refreshRoutes: createFreshLook(refresh),
    signature,
    log,
  })
  // Before the queue, and ended after it: agents send their traces here until they end.
  const testing = process.env['PLATFORM_FAULTS'] === 'on' ? createTesting({ db, dialect: options.dialect, counter, log }) : null
  if (testing !== null) log.warn('PLATFORM_FAULTS is on: who has the API key can make requests fail, and remove everything')
  const server = await startHttpServer({ ...api, ...testing, forwarder, host: options.host, port: options.port })
  undo.push(() => server.close({ limitMs: settings.stopLimitMs }))

  const membership = createMembership(db, {
    id: nodeId,
    role: options.role,
    url: options.role === 'api' ? null : (nodeUrl ?? addressForOthers(server.url)),
    keyNames: masterKeys.keys.map(nameOfKey),
  })
  await membership.beat()
  undo.push(startDuty({ name: 'node alive', intervalMs: BEAT_MS, round: membership.beat, log }).stop)

  if (options.role !== 'api') {
    const leadership = createLeadership({ session: notifications.session, log, onChange: () => noteLeader(db, nodeId) })
    const leading = (name: string, round: () => Promise<boolean | void>, intervalMs: number) =>
      undo.push(startDuty({ name, intervalMs, round: whenLeading(leadership, round), log }).stop)
    const { id: installationId } = await db.selectFrom('installation').select('id').executeTakeFirstOrThrow()
    const images = createImageHosting({ env: process.env, installationId, platformUrl: localUrl(server.url), log })
    undo.push(images.stop)
    const runtimes = { git_host: createProcessRuntime(), external_docker: images.runtime }
    const queue = await startQueue({
      db,
      notifications,
      data,
      secretBox,
      runtimes,
      build: buildAgent,
      resolveHead: resolveGitHead,
      tokenFor: gitTokens.tokenFor,
      clock,
      traceUrl: async (source) => tracesUrl ?? (source === 'git_host' ? localUrl(server.url) : images.traceUrl()),
      routes: agentRoutes,
      refreshRoutes: refresh,
      leadership,
      membership,
      settings,
      log,
    })
    agentHost = queue.host
    undo.push(queue.stop)
    const spool = path.join(data.root, 'spool')
    const exports = await startExportWorkers({ ...exporting, databaseUrl, notifications, owner: nodeId, spool, leadership, metrics, log })
    undo.push(exports.stop)
    leading('lost nodes', async () => (await takeOver({ db, membership, clock, exportSettings, log })) > 0, settings.lookMs)
    if (masterKeys.keys.length > 1) leading('reseal', async () => void (await reseal(db, masterKeys, log)), RESEAL_LOOK_MS)
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
