import { randomUUID } from 'node:crypto'
import { Hono, type MiddlewareHandler } from 'hono'
import { textToDialect } from '../../contract/dialects.ts'
import type { Log } from '../log.ts'
import { HttpProblem } from './problem.ts'
import { mountRoute, type Route, type RouteContext } from './route.ts'
import { isUnavailable } from './unavailable.ts'

export interface AppOptions extends RouteContext {
  readonly routes: readonly Route[]
  /** Applications with ways of their own to read a body, at `/`. */
  readonly mounted?: readonly Hono[]
  /** Refuses requests that are over a limit, before anything of them is read. */
  readonly limits?: MiddlewareHandler | null
  /** True when requests can be served: the database answers. */
  readonly ready: () => Promise<boolean>
  readonly openapi: () => object
  /** Metrics in the text format of Prometheus. */
  readonly metrics?: () => string
  readonly log: Log
}

/** Paths beside the routes: they need no key. */
const OPEN_PATHS = ['/ok', '/ready', '/openapi.json', '/metrics']

/** The platform's HTTP application: every answer is JSON and carries `X-Request-Id`. A slash at the end of a path makes no difference. */
export function createApp({ routes, mounted = [], limits = null, ready, openapi, metrics = () => '', log, ...context }: AppOptions): Hono {
  const app = new Hono({ strict: false })
  app.use(async (c, next) => {
    const requestId = randomUUID()
    await next()
    c.header('X-Request-Id', requestId)
    c.header('Cache-Control', 'no-store')
    if (c.res.status >= 500) log.error({ requestId, method: c.req.method, path: c.req.path, status: c.res.status }, 'request failed')
    else log.debug({ requestId, method: c.req.method, path: c.req.path, status: c.res.status }, 'request')
  })
  if (limits !== null) app.use(limits)
  app.get('/ok', (c) => c.json({ ok: true }))
  app.get('/ready', async (c) => ((await ready()) ? c.json({ ready: true }) : c.json({ ready: false }, 503)))
  let description: object | undefined
  app.get('/openapi.json', (c) => c.json((description ??= openapi())))
  app.get('/metrics', (c) => c.text(metrics(), 200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' }))
  for (const route of routes) mountRoute(app, route, context)
  for (const other of mounted) app.route('/', other)

  const paths = methodsByPath(routes)
  app.notFound((c) => {
    const methods = paths.find(({ pattern }) => pattern.test(c.req.path))?.methods
    if (methods === undefined) return c.json({ detail: 'Not Found' }, 404)
    const allow = { Allow: methods.join(', ') }
    if (c.req.method === 'OPTIONS') return c.body(null, 204, allow)
    return c.json({ detail: 'Method Not Allowed' }, 405, allow)
  })
  app.onError((error, c) => {
    if (error instanceof HttpProblem) return c.json({ detail: textToDialect(error.message, context.dialect) }, error.status, error.headers)
    if (isUnavailable(error)) {
      log.warn({ method: c.req.method, path: c.req.path, error: error.message }, 'the database is away')
      return c.json({ detail: 'The database does not answer at the moment: try again.' }, 503, { 'Retry-After': '1' })
    }
    log.error({ method: c.req.method, path: c.req.path, error: error.stack ?? String(error) }, 'a request met a defect')
    return c.json({ detail: 'Internal Server Error' }, 500)
  })
  return app
}

function methodsByPath(routes: readonly Route[]): { pattern: RegExp; methods: string[] }[] {
  const byPath = new Map<string, string[]>(OPEN_PATHS.map((path) => [path, ['GET']]))
  for (const { definition } of routes) {
    byPath.set(definition.path, [...(byPath.get(definition.path) ?? []), definition.method.toUpperCase()])
  }
  return [...byPath].map(([path, methods]) => ({
    pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}/?$`),
    methods: [...methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])), 'OPTIONS'],
  }))
}
