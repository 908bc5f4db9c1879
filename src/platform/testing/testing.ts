import type { RequestListener } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { Dialect } from '../../contract/dialects.ts'
import type { Database } from '../database/schema.ts'
import { createApp } from '../http/app.ts'
import type { RateCounter } from '../limits/counter.ts'
import type { Log } from '../log.ts'
import { createAuthenticate, requireFullKey } from '../workspaces/authenticate.ts'
import { createFaultList } from './fault-list.ts'
import { testingRoutes } from './routes.ts'
import { strike } from './strike.ts'

const PREFIX = '/_test/'

export interface Testing {
  /** Serves `/_test/…`, and lets the other requests meet the faults that were asked for. */
  readonly wrap: (serve: RequestListener) => RequestListener
}

export interface TestingOptions {
  readonly db: Database
  readonly dialect: Dialect
  readonly counter: RateCounter | null
  readonly log: Log
}

/** Means for those who test against the platform (`PLATFORM_FAULTS=on`): faults, and a way back to the beginning. */
export function createTesting({ db, dialect, counter, log }: TestingOptions): Testing {
  const faults = createFaultList()
  const authenticate = createAuthenticate(db)
  const app = createApp({
    routes: testingRoutes({ db, faults, clearCounts: async () => counter?.clear() }),
    authenticate: async (request) => requireFullKey(await authenticate((name) => request.headers.get(name))),
    dialect,
    ready: async () => true,
    openapi: () => ({}),
    log,
  })
  const own = getRequestListener(app.fetch)
  return {
    wrap: (serve) => (request, response) => {
      const path = (request.url ?? '/').split('?')[0] ?? '/'
      if (path.startsWith(PREFIX)) {
        void own(request, response)
        return
      }
      const fault = faults.take({ method: request.method ?? 'GET', path })
      if (fault === null) {
        serve(request, response)
        return
      }
      log.info(
        { method: request.method, path, status: fault.status, broken: fault.broken },
        'a request meets a fault that was asked for',
      )
      strike({ request, response, fault, serve }).catch((error: Error) => {
        log.warn({ error: error.message }, 'a fault could not be played')
        response.destroy()
      })
    },
  }
}
