import type { Hono } from 'hono'
import type { Dialect } from '../../../src/contract/dialects.ts'
import type { Database } from '../../../src/platform/database/schema.ts'
import { createApp } from '../../../src/platform/http/app.ts'
import { describeApi } from '../../../src/platform/http/openapi.ts'
import type { Route } from '../../../src/platform/http/route.ts'
import type { Log } from '../../../src/platform/log.ts'
import { createAuthenticate } from '../../../src/platform/workspaces/authenticate.ts'
import { type Description, readDescription } from './description.ts'

/** The application with these routes on a database, and its own description, to check its answers by. */
export function createDescribedApp({
  db,
  routes,
  dialect,
  log,
}: {
  db: Database
  routes: readonly Route[]
  dialect: Dialect
  log: Log
}): { app: Hono; description: Description } {
  const authenticate = createAuthenticate(db)
  const document = describeApi(routes, dialect)
  const app = createApp({
    routes,
    authenticate: (request) => authenticate((name) => request.headers.get(name)),
    dialect,
    ready: async () => true,
    openapi: () => document,
    log,
  })
  return { app, description: readDescription(document) }
}
