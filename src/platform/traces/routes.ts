import { Hono } from 'hono'
import type { Route } from '../http/route.ts'
import { feedbackRoutes } from './routes/feedback.ts'
import { type IngestContext, ingestRoutes } from './routes/ingest.ts'
import { projectRoutes } from './routes/projects.ts'
import { runRoutes } from './routes/runs.ts'

/** The other address of every path of the main API. */
const PREFIX = '/api/v1'

export interface TraceRoutes {
  /** The routes with JSON bodies, each with and without the prefix. */
  readonly routes: readonly Route[]
  /** The same without the prefix, to be described. */
  readonly described: readonly Route[]
  /** The ways in for runs, whose bodies are compressed, binary or large; to be mounted at `/`. */
  readonly ingest: Hono
}

/** Everything about runs on the main API (specification 4.3, hosted service): ingest, queries, feedback, tracing projects. */
export function traceRoutes(context: IngestContext): TraceRoutes {
  const described = [...runRoutes(context.db), ...projectRoutes(context.db), ...feedbackRoutes(context.db)]
  const prefixed = described.map((route) => ({
    ...route,
    definition: { ...route.definition, path: `${PREFIX}${route.definition.path}` },
  }))
  const bare = ingestRoutes(context)
  const ingest = new Hono()
  ingest.route('/', bare)
  ingest.route(PREFIX, bare)
  return { routes: [...described, ...prefixed], described, ingest }
}
