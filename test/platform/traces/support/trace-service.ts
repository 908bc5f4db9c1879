import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { serve } from '@hono/node-server'
import type { Hono } from 'hono'
import { pino } from 'pino'
import { connectDatabase } from '../../../../src/platform/database/connect.ts'
import { startEmbeddedDatabase } from '../../../../src/platform/database/embedded.ts'
import type { Database } from '../../../../src/platform/database/schema.ts'
import { createApp } from '../../../../src/platform/http/app.ts'
import { traceRoutes } from '../../../../src/platform/traces/routes.ts'
import { createAuthenticate, hashApiKey } from '../../../../src/platform/workspaces/authenticate.ts'

export interface Workspace {
  readonly id: string
  readonly key: string
}

/** The trace part of the platform on a real PostgreSQL and a real port, with two workspaces. */
export interface TraceService {
  readonly url: string
  readonly db: Database
  readonly databaseUrl: string
  readonly ours: Workspace
  readonly theirs: Workspace
  /** Lines that the service logged at `error` level: defects. */
  readonly defects: string[]
  /** A request with the key of `ours`, or of another workspace. */
  send(method: string, path: string, body?: unknown, options?: SendOptions): Promise<Answer>
  /** Rejects when the service met defects, so that no test passes over one. */
  stop(): Promise<void>
}

export interface SendOptions {
  readonly workspace?: Workspace
  readonly headers?: Record<string, string>
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // Answers are looked into freely by the tests.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
}

/** With a directory of the caller's it finds again what an earlier one there has stored, and leaves it there. */
export async function startTraceService({
  directory: given,
  key,
}: { directory?: string; key?: string } = {}): Promise<TraceService> {
  const directory = given ?? (await mkdtemp(path.join(tmpdir(), 'traces-')))
  const defects: string[] = []
  const log = pino({ level: 'error', base: null }, { write: (line: string) => void defects.push(line) })
  const database = await startEmbeddedDatabase({ directory: path.join(directory, 'database'), log })
  const db = await connectDatabase({ url: database.url, log })
  const [ours, theirs] = await Promise.all([ensureWorkspace(db, key), ensureWorkspace(db)])

  const authenticate = createAuthenticate(db)
  const authenticateRequest = (request: Request) => authenticate((name) => request.headers.get(name))
  const traces = traceRoutes({ db, log, authenticate: authenticateRequest })
  const app: Hono = createApp({
    routes: traces.routes,
    authenticate: authenticateRequest,
    dialect: 'spec',
    ready: () => Promise.resolve(true),
    openapi: () => ({}),
    log,
  })
  app.route('/', traces.ingest)
  const server = await new Promise<ReturnType<typeof serve>>((resolve) => {
    const started = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, () => resolve(started))
  })
  const { port } = server.address() as { port: number }
  const url = `http://127.0.0.1:${port}`

  return {
    url,
    db,
    databaseUrl: database.url,
    ours,
    theirs,
    defects,
    send: (method, to, body, { workspace = ours, headers = {} } = {}) =>
      send(`${url}${to}`, { method, body, key: workspace.key, headers }),
    stop: async () => {
      await new Promise((resolve) => {
        server.close(resolve)
        if ('closeAllConnections' in server) server.closeAllConnections()
      })
      await db.destroy()
      await database.stop()
      if (given === undefined) await rm(directory, { recursive: true, force: true })
      if (defects.length > 0) throw new Error(`the service met defects:\n${defects.join('')}`)
    },
  }
}

async function ensureWorkspace(db: Database, key = `key-${randomUUID()}`): Promise<Workspace> {
  const known = await db.selectFrom('api_keys').selectAll().where('key_hash', '=', hashApiKey(key)).executeTakeFirst()
  if (known !== undefined) return { id: known.workspace_id, key }
  const id = randomUUID()
  await db.insertInto('workspaces').values({ id, name: 'test', plan: 'enterprise' }).execute()
  await db
    .insertInto('api_keys')
    .values({ id: randomUUID(), workspace_id: id, key_hash: hashApiKey(key) })
    .execute()
  return { id, key }
}

async function send(
  url: string,
  { method, body, key, headers }: { method: string; body: unknown; key: string; headers: Record<string, string> },
): Promise<Answer> {
  const raw = body instanceof Uint8Array || typeof body === 'string'
  const response = await fetch(url, {
    method,
    headers: { 'x-api-key': key, ...(body !== undefined && !raw ? { 'content-type': 'application/json' } : {}), ...headers },
    ...(body === undefined ? {} : { body: raw ? (body as string | Uint8Array<ArrayBuffer>) : JSON.stringify(body) }),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const json = response.headers.get('content-type')?.includes('json')
  return { status: response.status, headers: response.headers, body: json ? JSON.parse(bytes.toString()) : bytes }
}
