import type { IncomingMessage, ServerResponse } from 'node:http'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAgentForwarder } from '../../../src/platform/agents/forwarder.ts'
import { faultLog } from '../../../src/platform/agents/fault-log.ts'
import type { HostedAgent } from '../../../src/platform/agents/host.ts'
import { NODE_AGENTS_PREFIX } from '../../../src/platform/agents/node-door.ts'
import { createAgentRoutes } from '../../../src/platform/agents/routes.ts'
import { createApi } from '../../../src/platform/api.ts'
import { DEFAULT_EXPORT_SETTINGS } from '../../../src/platform/bulk-export/settings.ts'
import { createClock } from '../../../src/platform/clock.ts'
import { createNodeSignature, NODE_HEADER } from '../../../src/platform/nodes/signature.ts'
import { parseOptions } from '../../../src/platform/options.ts'
import { createSecretBox } from '../../../src/platform/secrets.ts'
import { createWorkspace, startTestDatabase, type TestDatabase } from '../support/database.ts'
import { listen, send } from '../support/http.ts'

const SLUG = 'echo-1234'
const AGENT = '00000000-0000-4000-8000-000000000001'
const written: string[] = []
const log = pino({ level: 'info', base: null }, { write: (line: string) => void written.push(line) })
const faults = () => written.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ level }) => level === 40)
const TOLD = {
  revisionId: 'r1',
  error: expect.stringContaining('ECONNREFUSED'),
  msg: 'a request did not get through to its agent',
}
let database: TestDatabase

beforeAll(async () => {
  database = await startTestDatabase()
})
beforeEach(() => void written.splice(0))
afterAll(() => database.stop())

/** Where no agent listens any more. */
async function nowhere() {
  const { port, close } = await listen(() => undefined)
  await close()
  return { host: '127.0.0.1', port }
}

describe('the log of the platform', () => {
  test('tells of a request that did not get through to its agent, and which agent that was', async () => {
    const { id: workspaceId, key } = await createWorkspace(database.db)
    const agentRoutes = createAgentRoutes()
    const { agents } = createApi({
      db: database.db,
      secretBox: createSecretBox(Buffer.alloc(32, 7)),
      offering: 'any',
      clock: createClock(1),
      settings: DEFAULT_EXPORT_SETTINGS,
      rules: { allowLinkLocal: false },
      options: parseOptions([], {}),
      agentRoutes,
      counter: null,
      trustedProxies: [],
      renderMetrics: () => '',
      log,
    })
    const platform = await listen(agents)
    try {
      agentRoutes.serve(SLUG, { ...(await nowhere()), revisionId: 'r1', workspaceId })
      const answer = await send(`${platform.url}/agents/${SLUG}/ok`, { headers: { 'x-api-key': key } })
      expect(answer.status).toBe(503)
      expect(faults()[0]).toMatchObject({ ...TOLD, slug: SLUG })
    } finally {
      await platform.close()
    }
  })

  test('tells of it on the node that runs the agent, where another passed the request on', async () => {
    const address = await nowhere()
    const signature = createNodeSignature([Buffer.alloc(32, 1)])
    const hosted = { id: AGENT, deploymentId: 'd', revisionId: 'r1', process: { address } } as HostedAgent
    const forwarder = createAgentForwarder({
      host: () => ({ find: () => hosted }),
      routes: createAgentRoutes(),
      signature,
      onFault: faultLog(log),
    })
    const node = await listen((request: IncomingMessage, response: ServerResponse) => forwarder.request(request, response))
    try {
      const path = `${NODE_AGENTS_PREFIX}${AGENT}/ok`
      const answer = await send(node.url + path, { headers: { [NODE_HEADER]: signature.sign(`GET ${path}`) } })
      expect(answer.status).toBe(503)
      expect(faults()).toMatchObject([TOLD])
    } finally {
      await node.close()
    }
  })
})
