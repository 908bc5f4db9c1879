import { once } from 'node:events'
import { Agent, type IncomingMessage, request as startRequest } from 'node:http'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Client } from '@langchain/langgraph-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAgentProxy } from '../../../src/platform/agents/proxy.ts'
import { type AgentTarget, createAgentRoutes } from '../../../src/platform/agents/routes.ts'
import { createProcessRuntime } from '../../../src/platform/control-plane/runtimes/process.ts'
import type { AgentProcess } from '../../../src/platform/control-plane/runtimes/runtime.ts'
import type { BuiltAgent } from '../../../src/platform/control-plane/sources/build.ts'
import { buildEchoAgent, echoAgentFile } from '../support/echo-agent.ts'
import { listen, type TestServer } from '../support/http.ts'
import { memoryLog } from '../support/memory-log.ts'
import { until } from '../support/processes.ts'

const SLUG = 'echo-1234'
const KEY = 'the-key'
const folder = mkdtempSync(path.join(tmpdir(), 'agents-'))
const runtime = createProcessRuntime()
const routes = createAgentRoutes()
const faults: string[] = []
const started: AgentProcess[] = []
let platform: TestServer
let echo: BuiltAgent
let address: string

/** A graph that makes ten messages, 150 ms apart, and tells which revision made them. */
const STREAMER = `
import { FakeListChatModel } from '@langchain/core/utils/testing'
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'
const model = new FakeListChatModel({ responses: ['abcdefghij'], sleep: 150 })
export const graph = new StateGraph(MessagesAnnotation)
  .addNode('node', async (state) => ({ messages: [await model.invoke(state.messages)] }))
  .addEdge('__start__', 'node').addEdge('node', '__end__').compile()
`

beforeAll(async () => {
  echo = await buildEchoAgent(folder, { 'streamer.mjs': STREAMER })
  platform = await listen(
    createAgentProxy({
      routes,
      authorise: async (request) => (request.headers['x-api-key'] === KEY ? 'workspace' : null),
      onFault: ({ error }) => void faults.push(error.message),
    }),
  )
  address = `${platform.url}/agents/${SLUG}`
})
afterAll(async () => {
  await platform?.close()
  for (const agent of started) await agent.stop({ graceMs: 0 })
  rmSync(folder, { recursive: true, force: true })
})

/** Starts a revision of the example agent whose answers name it. */
async function startRevision(version: string): Promise<{ agent: AgentProcess; target: AgentTarget }> {
  const file = `agent-${version}.mjs`
  writeFileSync(path.join(echo.directory, file), echoAgentFile('agent.mjs').replace("VERSION = '1'", `VERSION = '${version}'`))
  const stateDirectory = path.join(folder, `state-${version}`)
  mkdirSync(stateDirectory)
  const graphs = { agent: `./${file}:graph`, streamer: './streamer.mjs:graph' }
  const agent = await runtime.start(
    { revisionId: version, agent: { ...echo, graphs, stateDirectory }, env: {} },
    { log: memoryLog(), signal: new AbortController().signal, timeoutMs: 45_000 },
  )
  started.push(agent)
  return { agent, target: { ...agent.address, revisionId: version } }
}

const serve = (target: AgentTarget) => routes.serve(SLUG, { ...target, workspaceId: 'workspace' })

async function swap(from: { agent: AgentProcess; target: AgentTarget }, to: { target: AgentTarget }): Promise<{ cut: number }> {
  serve(to.target)
  const outcome = await routes.drain(from.target, { limitMs: 30_000 })
  await from.agent.stop({ graceMs: 5000 })
  return outcome
}

const runOf = (assistant: string, content: string) => ({ assistant_id: assistant, input: { messages: [{ role: 'user', content }] } })

function stream(body: object) {
  const request = startRequest(`${address}/runs/stream`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    agent: false,
  })
  request.end(JSON.stringify(body))
  return request
}

test('real agents behind the proxy: swapped twice under load without a failed request, streams finish where they began', async () => {
  const first = await startRevision('first')
  serve(first.target)

  // The first event arrives long before the last is made.
  const request = stream({ ...runOf('streamer', 'x'), stream_mode: 'messages' })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  expect(response.headers['content-location']).toMatch(/^\/runs\/[0-9a-f-]{36}$/)
  const arrivals: number[] = []
  response.on('data', () => arrivals.push(Date.now()))
  await once(response, 'end')
  expect((arrivals.at(-1) ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThan(900)

  // The SDK, as it is, on the deployment's address.
  const client = new Client({ apiUrl: address, apiKey: KEY })
  const thread = await client.threads.create()
  const result = await client.runs.wait(thread.thread_id, 'agent', { input: { messages: [{ role: 'user', content: 'sdk' }] } })
  expect(JSON.stringify(result)).toContain('echo first: sdk')

  // A client that leaves: its request ends in the agent too.
  const leaving = stream({ ...runOf('streamer', 'x'), stream_mode: 'messages', on_disconnect: 'cancel' })
  leaving.on('error', () => undefined)
  await once(leaving, 'response')
  expect(routes.inFlight(first.target)).toBe(1)
  leaving.destroy()
  await until(() => routes.inFlight(first.target) === 0)

  // Twenty clients that never pause, on kept connections, reading and running.
  const load = { stopped: false }
  const failures: string[] = []
  const counts = new Map<string, number>()
  const connections = new Agent({ keepAlive: true })
  const ask = (index: number, turn: number): Promise<void> =>
    new Promise((resolve) => {
      const runs = index % 4 === 0
      const call = startRequest(`${address}${runs ? '/runs/wait' : turn % 2 === 0 ? '/ok' : '/assistants/search'}`, {
        method: runs || turn % 2 === 1 ? 'POST' : 'GET',
        headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
        agent: connections,
      })
      call.on('error', (error) => {
        failures.push(error.message)
        resolve()
      })
      call.on('response', (answer) => {
        let text = ''
        answer.on('data', (chunk: Buffer) => (text += chunk.toString()))
        answer.on('error', () => undefined)
        answer.on('close', () => {
          if (answer.statusCode !== 200 || !answer.complete) failures.push(`${answer.statusCode} ${text.slice(0, 200)}`)
          const version = /echo (\w+): load/.exec(text)?.[1] ?? 'other'
          counts.set(version, (counts.get(version) ?? 0) + 1)
          resolve()
        })
      })
      call.end(runs ? JSON.stringify(runOf('agent', 'load')) : turn % 2 === 1 ? '{}' : undefined)
    })
  const clients = Array.from({ length: 20 }, async (_, index) => {
    for (let turn = 0; !load.stopped; turn += 1) await ask(index, turn)
  })
  const second = await startRevision('second')

  // Begun on the first revision, long enough to outlive the swap.
  const inFlight = stream({ ...runOf('streamer', 'x'), stream_mode: 'values' })
  const [kept] = (await once(inFlight, 'response')) as [IncomingMessage]
  let keptText = ''
  kept.on('data', (chunk: Buffer) => (keptText += chunk.toString()))
  const keptEnd = once(kept, 'close')

  expect(await swap(first, second)).toEqual({ cut: 0 })
  await keptEnd
  expect(kept.complete).toBe(true)
  expect(keptText).toContain('abcdefghij')
  const third = await startRevision('third')
  expect(await swap(second, third)).toEqual({ cut: 0 })
  await until(() => (counts.get('third') ?? 0) > 5, 30_000)
  load.stopped = true
  await Promise.all(clients)
  connections.destroy()

  expect(failures).toEqual([])
  expect(faults).toEqual([])
  for (const version of ['first', 'second', 'third']) expect(counts.get(version)).toBeGreaterThan(0)
  // The swapped-out processes ended in order.
  expect([await first.agent.exited, await second.agent.exited]).toEqual([
    { code: 0, signal: null },
    { code: 0, signal: null },
  ])
}, 180_000)
