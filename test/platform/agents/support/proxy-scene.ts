import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, beforeEach } from 'vitest'
import { createAgentProxy } from '../../../../src/platform/agents/proxy.ts'
import { type AgentRoutes, type AgentTarget, createAgentRoutes } from '../../../../src/platform/agents/routes.ts'
import { createAgentUpgrade } from '../../../../src/platform/agents/upgrade.ts'
import { listen, type TestServer } from '../../support/http.ts'

/** The deployment that the agents of a scene serve. */
export const SLUG = 'echo-1234'
/** The key of its workspace; `key-b` is another workspace's, and with `broken` nobody can say whose it is. */
export const KEY = { 'x-api-key': 'key-a' }

/** An agent in this process. */
export interface ProxiedAgent extends TestServer {
  readonly target: AgentTarget
}

/** Routes to agents and a platform that passes requests on by them, both new for each test. */
export interface ProxyScene {
  readonly routes: AgentRoutes
  readonly platform: TestServer
  /** Messages of the faults that the proxy has met. */
  readonly faults: readonly string[]
  /** From now on this is done at each fault. */
  onFault(react: () => void): void
  /** An agent that answers as told. It serves nothing until it is told to, and ends with the test. */
  agent(listener: (request: IncomingMessage, response: ServerResponse) => void, revisionId?: string): Promise<ProxiedAgent>
  serve(target: AgentTarget): void
  /** The address of a path of the deployment. */
  at(path: string): string
}

/** Sets the scene for all tests of a file: called once, at its top. */
export function setProxyScene(): ProxyScene {
  const open: TestServer[] = []
  let routes: AgentRoutes
  let platform: TestServer
  let faults: string[]
  let react: () => void

  beforeEach(async () => {
    routes = createAgentRoutes()
    faults = []
    react = () => undefined
    const options = {
      routes,
      authorise: async (request: IncomingMessage) => {
        const key = request.headers['x-api-key'] ?? request.headers.authorization?.replace('Bearer ', '')
        if (key === 'broken') throw new Error('no database')
        return key === 'key-a' ? 'workspace-a' : key === 'key-b' ? 'workspace-b' : null
      },
      onFault: ({ error }: { error: Error }) => {
        faults.push(error.message)
        react()
      },
    }
    platform = await listen(createAgentProxy(options))
    platform.server.on('upgrade', createAgentUpgrade(options))
  })
  afterEach(async () => {
    await platform.close()
    for (const server of open.splice(0)) await server.close()
  })

  return {
    get routes() {
      return routes
    },
    get platform() {
      return platform
    },
    get faults() {
      return faults
    },
    onFault: (then) => {
      react = then
    },
    agent: async (listener, revisionId = 'r1') => {
      const server = await listen(listener)
      open.push(server)
      return { ...server, target: { host: '127.0.0.1', port: server.port, revisionId } }
    },
    serve: (target) => routes.serve(SLUG, { ...target, workspaceId: 'workspace-a' }),
    at: (path) => `${platform.url}/agents/${SLUG}${path}`,
  }
}
