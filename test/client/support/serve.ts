import type { RequestListener } from 'node:http'
import { onTestFinished } from 'vitest'
import { startServer, type TestServer } from '../../support/http-server.ts'

/** A server that goes away at the end of the test. */
export async function serve(listener: RequestListener): Promise<TestServer> {
  const server = await startServer(listener)
  onTestFinished(server.stop)
  return server
}
