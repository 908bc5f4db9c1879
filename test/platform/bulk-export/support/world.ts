import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Hono } from 'hono'
import type { BulkExport, BulkExportRun } from '../../../../src/contract/bulk-export.ts'
import type { Destination } from '../../../../src/contract/destination.ts'
import type { Dialect } from '../../../../src/contract/dialects.ts'
import { isFinalExportStatus, readExportStatus } from '../../../../src/contract/export-status.ts'
import { createExportMetrics, type ExportMetrics } from '../../../../src/platform/bulk-export/metrics.ts'
import { bulkExportRoutes } from '../../../../src/platform/bulk-export/routes/routes.ts'
import { DEFAULT_EXPORT_SETTINGS, type ExportSettings } from '../../../../src/platform/bulk-export/settings.ts'
import { startExportWorkers } from '../../../../src/platform/bulk-export/workers.ts'
import type { Clock } from '../../../../src/platform/clock.ts'
import type { Offering } from '../../../../src/platform/control-plane/source-rules.ts'
import type { Log } from '../../../../src/platform/log.ts'
import { createSecretBox } from '../../../../src/platform/secrets.ts'
import { askCluster, CLUSTERED, clusterOn } from '../../cluster-support/topology.ts'
import { createWorkspace, SILENT, type TestDatabase, type TestWorkspace } from '../../support/database.ts'
import { createDescribedApp } from '../../support/described-app.ts'
import { ACCESS_KEY, type BucketServer } from './bucket-server.ts'
import { createProject, DAY_END, DAY_START } from './runs.ts'

const SECRET_KEY = Buffer.alloc(32, 9)
export const secretBox = createSecretBox(SECRET_KEY)

/** Everything fast, and few retries, so that tests see the end of things. */
export const TEST_SETTINGS: ExportSettings = {
  ...DEFAULT_EXPORT_SETTINGS,
  retries: 2,
  retryDelayMs: 20,
  lookMs: 50,
  leaseMs: 3000,
  heartbeatMs: 300,
  requestLimitMs: 3000,
  connectLimitMs: 1000,
}

/** A clock in the test's hand. */
export interface TestClock extends Clock {
  move(milliseconds: number): void
}

export function createTestClock(scale = 1): TestClock {
  let offset = 0
  return {
    now: () => new Date(Date.now() + offset),
    scaled: (milliseconds) => Math.max(1, Math.round(milliseconds / scale)),
    move: (milliseconds) => {
      offset += milliseconds
    },
  }
}

export interface Seen {
  readonly status: number
  // What comes back is looked at field by field.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
}

export interface ExportWorldOptions {
  readonly database: TestDatabase
  readonly bucket: Pick<BucketServer, 'url' | 'bucket'>
  readonly settings?: Partial<ExportSettings>
  readonly offering?: Offering
  readonly dialect?: Dialect
  readonly plan?: string
  readonly clock?: TestClock
  readonly allowLinkLocal?: boolean
  readonly log?: Log
}

/** A workspace with a tracing project and a bucket, the routes of bulk export, and workers on demand. */
export interface ExportWorld {
  readonly workspace: TestWorkspace
  readonly projectId: string
  readonly clock: TestClock
  readonly settings: ExportSettings
  readonly metrics: ExportMetrics
  readonly app: Hono
  /** Every answer is checked against the OpenAPI description. */
  ask(method: string, path: string, body?: unknown, options?: { key?: string; headers?: Record<string, string> }): Promise<Seen>
  createDestination(changes?: Record<string, unknown>, config?: Record<string, unknown>): Promise<Destination>
  /** An export of one day of the project into a destination of its own, changed at will. */
  createExport(changes?: Record<string, unknown>): Promise<BulkExport>
  startWorkers(options?: { owner?: string; databaseUrl?: string }): Promise<{ stop(): Promise<void> }>
  readExport(id: string): Promise<BulkExport>
  readRuns(id: string): Promise<BulkExportRun[]>
  /** Waits for the end of an export. */
  end(id: string, limitMs?: number): Promise<BulkExport>
  /** Makes an export and runs it to its end. */
  run(changes?: Record<string, unknown>): Promise<BulkExport>
  stop(): Promise<void>
}

export const BASE = '/api/v1/bulk-exports'

export async function createExportWorld(options: ExportWorldOptions): Promise<ExportWorld> {
  const { database, bucket, dialect = 'spec', offering = 'any', log = SILENT } = options
  const { db } = database
  const workspace = await createWorkspace(db, options.plan ?? 'enterprise')
  const projectId = await createProject(db, workspace.id)
  const clock = options.clock ?? createTestClock()
  const settings = { ...TEST_SETTINGS, ...options.settings }
  const rules = { allowLinkLocal: options.allowLinkLocal ?? false }
  const metrics = createExportMetrics()
  const routes = bulkExportRoutes({ db, secretBox, offering, clock, settings, rules })
  const { app, description } = createDescribedApp({ db, routes, dialect, log })
  const spool = await mkdtemp(path.join(tmpdir(), 'export-spool-'))
  const running: { stop(): Promise<void> }[] = []
  let destination: Destination | undefined

  const ask: ExportWorld['ask'] = async (method, where, body, { key = workspace.key, headers = {} } = {}) => {
    const init = {
      method,
      headers: { 'X-Api-Key': key, 'Content-Type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }
    const response = CLUSTERED ? await askCluster((await processes()).cluster.url, where, init) : await app.request(where, init)
    const text = await response.text()
    const seen = { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
    const pathname = new URL(where, 'http://localhost').pathname
    description.check({
      method,
      path: pathname,
      status: seen.status,
      contentType: response.headers.get('Content-Type'),
      body: seen.body,
    })
    return seen
  }
  /** Two `api` processes, of which one is killed now and then. */
  const processes = async () => {
    const killed = await clusterOn(db, {
      secretKey: SECRET_KEY.toString('base64'),
      apis: 2,
      queues: 0,
      args: ['--offering', offering, '--dialect', dialect],
      environment: { PLATFORM_ALLOW_LINK_LOCAL_ENDPOINTS: String(rules.allowLinkLocal) },
      exportSettings: settings,
      timeScale: 1_000_000 / clock.scaled(1_000_000),
      killed: ['api'],
    })
    killed.moveClock(clock.now().getTime() - Date.now())
    return killed
  }
  /** Two `queue` processes beside them, of which one is killed now and then. */
  const startNodes = async () => {
    const { cluster, killing } = await processes()
    await Promise.all([cluster.start('queue'), cluster.start('queue')])
    const end = killing('queue')
    const workers = {
      stop: async () => {
        await end()
        await Promise.all(cluster.nodes('queue').map((node) => node.stop()))
      },
    }
    running.push(workers)
    return workers
  }
  const good = (seen: Seen): Seen => {
    if (seen.status !== 200) throw new Error(`${seen.status}: ${JSON.stringify(seen.body)}`)
    return seen
  }
  const world: ExportWorld = {
    workspace,
    projectId,
    clock,
    settings,
    metrics,
    app,
    ask,
    createDestination: async (changes = {}, config = {}) => {
      const base = {
        bucket_name: bucket.bucket,
        prefix: `root/${workspace.id}`,
        endpoint_url: bucket.url,
        region: 'eu-central-1',
        ...config,
      }
      const body = { destination_type: 's3', display_name: 'warehouse', config: base, credentials: ACCESS_KEY, ...changes }
      return good(await ask('POST', `${BASE}/destinations`, body)).body as Destination
    },
    createExport: async (changes = {}) => {
      if (changes['bulk_export_destination_id'] === undefined) destination ??= await world.createDestination()
      const body = {
        bulk_export_destination_id: destination?.id,
        session_id: projectId,
        start_time: DAY_START,
        end_time: DAY_END,
        ...changes,
      }
      return good(await ask('POST', BASE, body)).body as BulkExport
    },
    startWorkers: async (own) => {
      const { owner = randomUUID(), databaseUrl = database.url } = own ?? {}
      // Workers with a name, or a database, of their own are the matter of a test.
      if (CLUSTERED && own === undefined) return startNodes()
      const workers = await startExportWorkers({
        db,
        databaseUrl,
        notifications: { on: () => undefined },
        secretBox,
        rules,
        owner,
        spool: path.join(spool, owner),
        clock,
        settings,
        metrics,
        log,
      })
      running.push(workers)
      return workers
    },
    readExport: async (id) => good(await ask('GET', `${BASE}/${id}`)).body as BulkExport,
    readRuns: async (id) => good(await ask('GET', `${BASE}/${id}/runs`)).body as BulkExportRun[],
    end: async (id, limitMs = 40_000) => {
      // Where workers are killed, the next ones have to start first.
      const deadline = Date.now() + (CLUSTERED ? 3 : 1) * limitMs
      for (;;) {
        const seen = await world.readExport(id)
        if (isFinalExportStatus(readExportStatus(seen.status))) return seen
        if (Date.now() > deadline)
          throw new Error(`the export has not ended: ${JSON.stringify([seen, await world.readRuns(id)])}`)
        await new Promise((resolve) => setTimeout(resolve, 30))
      }
    },
    run: async (changes = {}) => {
      const { id } = await world.createExport(changes)
      const workers = running.length === 0 ? await world.startWorkers() : null
      const ended = await world.end(id)
      if (workers !== null) {
        await workers.stop()
        running.splice(running.indexOf(workers), 1)
      }
      return ended
    },
    stop: async () => {
      await Promise.all(running.map((workers) => workers.stop()))
      await rm(spool, { recursive: true, force: true })
    },
  }
  return world
}
