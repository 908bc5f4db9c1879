import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type AgentServer, createAgentServer } from '../src/client/agent-server.ts'
import { realEffects } from '../src/client/effects.ts'
import { createTransport } from '../src/client/transport.ts'
import type { Deployment } from '../src/contract/deployment.ts'
import { createDeployment, createEchoRepository, median, startPlatform, untilDeployed, writeResults } from './platform-process.ts'

/**
 * What the platform costs a stream: milliseconds to the first event and events a second through the platform, beside the same
 * agent process asked directly. The two take turns, so that a busy moment of the machine hits both.
 */

const RUNS = Number(process.argv[2] ?? 30)
const WARM_UPS = 5
const EVENTS = 3000

/** Says where it is, then, after a moment, sends events as fast as it can. */
const AGENT = `import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'
async function burst(state, config) {
  config.writer({ address: config.metadata.langgraph_api_url })
  // The first event is out before the others are made.
  await new Promise((resolve) => setTimeout(resolve, 20))
  for (let index = 0; index < ${EVENTS}; index += 1) config.writer({ index, text: ${JSON.stringify('x'.repeat(150))} })
  return {}
}
export const graph = new StateGraph(MessagesAnnotation)
  .addNode('burst', burst)
  .addEdge('__start__', 'burst')
  .addEdge('burst', '__end__')
  .compile()
`

type Sample = { firstMs: number; eventsPerSecond: number }

async function sample(agent: AgentServer): Promise<Sample & { address: string }> {
  const start = performance.now()
  let firstAt = 0
  let secondAt = 0
  let lastAt = 0
  let events = 0
  let address = ''
  const options = {
    assistantId: 'agent',
    input: { messages: [] },
    streamMode: 'custom',
    signal: AbortSignal.timeout(60_000),
  } as const
  for await (const { event, data } of agent.streamRun(options)) {
    if (event !== 'custom') continue
    lastAt = performance.now()
    events += 1
    if (events === 2) secondAt = lastAt
    if (events > 1) continue
    firstAt = lastAt
    address = (data as { address: string }).address
  }
  if (events !== EVENTS + 1) throw new Error(`${events} events came, not ${EVENTS + 1}`)
  return { firstMs: firstAt - start, eventsPerSecond: (EVENTS - 1) / ((lastAt - secondAt) / 1000), address }
}

function clientOf(baseUrl: string, apiKey: string): AgentServer {
  const transport = createTransport({
    baseUrl,
    headers: { 'X-Api-Key': apiKey },
    redact: (text) => text,
    userAgent: 'bench',
    effects: realEffects,
  })
  return createAgentServer(transport)
}

const folder = mkdtempSync(join(tmpdir(), 'bench-stream-'))
const repository = createEchoRepository(folder)
writeFileSync(join(fileURLToPath(repository.url), 'agent.mjs'), AGENT)
repository.commit('burst')
const platform = await startPlatform(join(folder, 'data'))
try {
  const created = await createDeployment(platform, { name: 'bench', repoUrl: repository.url })
  await untilDeployed(platform, created)
  const { url } = await platform.ask<Deployment>(`/v2/deployments/${created.id}`)
  if (url === null || url === undefined) throw new Error('the deployment has no address')
  const through = clientOf(url, platform.apiKey)
  const direct = clientOf((await sample(through)).address, platform.apiKey)

  const samples: Record<'direct' | 'through', Sample[]> = { direct: [], through: [] }
  for (let run = 0; run < WARM_UPS + RUNS; run += 1) {
    for (const [name, agent] of [
      ['direct', direct],
      ['through', through],
    ] as const) {
      const { firstMs, eventsPerSecond } = await sample(agent)
      if (run >= WARM_UPS) samples[name].push({ firstMs, eventsPerSecond })
    }
  }

  const of = (name: keyof typeof samples, field: keyof Sample) => median(samples[name].map((one) => one[field]))
  const results = (['direct', 'through'] as const).map((name) => ({
    name,
    firstMs: of(name, 'firstMs'),
    eventsPerSecond: of(name, 'eventsPerSecond'),
  }))
  const ratios = {
    firstEvent: of('through', 'firstMs') / of('direct', 'firstMs'),
    eventsPerSecond: of('through', 'eventsPerSecond') / of('direct', 'eventsPerSecond'),
  }
  console.log(`Streams of ${EVENTS} events, median of ${RUNS} runs of each, in turn\n`)
  console.log(`${''.padEnd(12)}${'first event'.padStart(14)}${'events/s'.padStart(12)}`)
  for (const { name, firstMs, eventsPerSecond } of results) {
    console.log(`${name.padEnd(12)}${`${firstMs.toFixed(1)} ms`.padStart(14)}${eventsPerSecond.toFixed(0).padStart(12)}`)
  }
  const [first, rate] = [ratios.firstEvent, ratios.eventsPerSecond].map((ratio) => `${ratio.toFixed(2)}x`)
  console.log(`${'ratio'.padEnd(12)}${first?.padStart(14)}${rate?.padStart(12)}`)
  writeResults('stream', { runs: RUNS, events: EVENTS, results, ratios, samples })
} finally {
  await platform.end('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
}
