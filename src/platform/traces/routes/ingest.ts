import { type Context, Hono } from 'hono'
import { BATCH_BYTES_MAX, MULTIPART_BYTES_MAX, OTLP_BYTES_MAX, SERVICE_INFO } from '../../../contract/ingest.ts'
import type { Database } from '../../database/schema.ts'
import { HttpProblem } from '../../http/problem.ts'
import { isUnavailable } from '../../http/unavailable.ts'
import type { Log } from '../../log.ts'
import type { Caller } from '../../workspaces/authenticate.ts'
import { createIntake, type Intake, withBody } from '../ingest/body.ts'
import { readJsonBatch, readJsonObject } from '../ingest/json-batch.ts'
import { readMultipart } from '../ingest/multipart.ts'
import { readMultipartBatch } from '../ingest/multipart-batch.ts'
import { IngestRefusal } from '../ingest/refusal.ts'
import { readRun } from '../ingest/run-write.ts'
import { storeBatch } from '../ingest/store.ts'
import { receiveSpans } from '../otel/receive.ts'

/** Most bytes of bodies in memory at one time, decompressed. */
const INTAKE_BYTES_MAX = 256 * 1024 * 1024

export interface IngestContext {
  readonly db: Database
  readonly log: Log
  readonly authenticate: (request: Request) => Promise<Caller>
}

/**
 * The ways in for runs (hosted service). Their bodies are compressed, binary or large, so they are read here and not by the
 * routes of the control plane. 202: committed. Any refusal is `{"error", "details"}`, and nothing of the request was stored.
 */
export function ingestRoutes({ db, log, authenticate }: IngestContext): Hono {
  const intake: Intake = createIntake(INTAKE_BYTES_MAX)
  const app = new Hono()
  app.get('/info', (c) => c.json(SERVICE_INFO))

  const ingest = (bytesMax: number, handle: (input: { c: Context; body: Buffer; workspaceId: string }) => Promise<Response>) => {
    return async (c: Context) => {
      const { workspaceId } = await authenticate(c.req.raw)
      return withBody(c.req.raw, { bytesMax, intake }, (body) => handle({ c, body, workspaceId }))
    }
  }

  app.post(
    '/runs',
    ingest(BATCH_BYTES_MAX, async ({ c, body, workspaceId }) => {
      const run = readRun({ kind: 'post', fields: readJsonObject(body) })
      await storeBatch(db, workspaceId, { runs: [run] })
      return c.json({ message: 'Run created', id: run.id }, 202)
    }),
  )
  app.patch(
    '/runs/:run_id',
    ingest(BATCH_BYTES_MAX, async ({ c, body, workspaceId }) => {
      const run = readRun({ kind: 'patch', fields: readJsonObject(body), id: c.req.param('run_id') ?? '' })
      await storeBatch(db, workspaceId, { runs: [run] })
      return c.json({ message: 'Run updated' }, 202)
    }),
  )
  app.post(
    '/runs/batch',
    ingest(BATCH_BYTES_MAX, async ({ c, body, workspaceId }) => {
      await storeBatch(db, workspaceId, { runs: readJsonBatch(body) })
      return c.json({ message: 'Runs batch ingested' }, 202)
    }),
  )
  app.post(
    '/runs/multipart',
    ingest(MULTIPART_BYTES_MAX, async ({ c, body, workspaceId }) => {
      const parts = readMultipart(body, c.req.header('Content-Type') ?? null)
      await storeBatch(db, workspaceId, readMultipartBatch(parts))
      return c.json({ message: 'Runs batch ingested' }, 202)
    }),
  )
  app.post(
    '/otel/v1/traces',
    ingest(OTLP_BYTES_MAX, ({ c, body, workspaceId }) => receiveSpans({ db, workspaceId, request: c.req.raw, body })),
  )

  app.onError((error, c) => {
    if (error instanceof IngestRefusal) return refuse(c, error)
    if (error instanceof HttpProblem)
      return c.json({ error: TITLES[error.status] ?? 'Refused', details: error.message }, error.status, error.headers)
    if (isUnavailable(error)) {
      log.warn({ path: c.req.path, error: error.message }, 'the database is away')
      return refuse(c, new IngestRefusal(503, 'the database does not answer at the moment: send it again'))
    }
    log.error({ method: c.req.method, path: c.req.path, error: error.stack ?? String(error) }, 'an ingest met a defect')
    return c.json({ error: 'Internal server error', details: 'The runs were not stored: send them again.' }, 500)
  })
  return app
}

const TITLES: Readonly<Partial<Record<number, string>>> = { 401: 'Unauthorized', 403: 'Forbidden' }

function refuse(c: Context, refusal: IngestRefusal): Response {
  if (refusal.status === 503) c.header('Retry-After', '1')
  return c.json(refusal.body, refusal.status)
}
