import { statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from '@langchain/langgraph-sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAgentServer, type AgentServer } from '../../src/client/agent-server.ts'
import { realEffects } from '../../src/client/effects.ts'
import type { RequestFailure } from '../../src/client/failure.ts'
import { streamedText } from '../../src/client/streamed-text.ts'
import { createTransport } from '../../src/client/transport.ts'
import type { RunEvent, StreamMode } from '../../src/contract/run-stream.ts'
import { linkedPackages } from '../support/echo-packages.ts'
import { createGitRepository, type GitRepository } from '../support/git-repository.ts'
import { startPlatform, type PlatformProcess } from '../support/platform.ts'
import { readable } from '../support/readable.ts'
import { REPOSITORY_ROOT, runAction, type RunResult } from '../support/runner.ts'
import { DEPLOYED, type Ending, failed, flawsOf } from '../support/scene.ts'

/** One real deployment of the echo agent, with two more graphs: one that fails, and one that does not end by itself. */
const GRAPHS = {
  'langgraph.json': JSON.stringify({
    node_version: '24',
    dependencies: ['.'],
    graphs: { agent: './agent.mjs:graph', broken: './broken.mjs:graph', endless: './endless.mjs:graph' },
    env: {},
  }),
  'broken.mjs': graph(`throw new RangeError('no such tool: ' + state.messages.at(-1).content)`),
  // Leaves marks as long as it works, in a file that is named by the question, and stops when its run is cancelled.
  'endless.mjs': graph(`
    for (let step = 0; !config.signal?.aborted && step < 200; step += 1) {
      appendFileSync(process.env.MARKS + state.messages.at(-1).content, '.')
      config.writer?.({ step })
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    return {}`),
}

function graph(body: string): string {
  return `import { appendFileSync } from 'node:fs'
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'
async function node(state, config) {
  ${body}
}
export const graph = new StateGraph(MessagesAnnotation)
  .addNode('node', node)
  .addEdge('__start__', 'node')
  .addEdge('node', '__end__')
  .compile()
void appendFileSync
`
}

let platform: PlatformProcess
let repository: GitRepository
let folder: string
const results: RunResult[] = []
const secret = 'sk-secret-of-the-echo-agent'

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'smoke-platform-'))
  repository = await createGitRepository({
    from: join(REPOSITORY_ROOT, 'examples', 'echo-agent'),
    files: { ...GRAPHS, ...(await linkedPackages()) },
  })
  platform = await startPlatform()
})
afterAll(async () => {
  await Promise.all(results.map((result) => result.dispose()))
  await platform?.dispose()
  await repository?.dispose()
  await rm(folder, { recursive: true, force: true })
})

/** A step for a push of what is in the repository. Without secrets, whose live values cannot be compared, it may be unchanged. */
async function step(inputs: Readonly<Record<string, string>>): Promise<RunResult> {
  const sha = await repository.head()
  const result = await runAction({
    with: {
      'api-key': platform.apiKey,
      'control-plane-url': platform.url,
      'deployment-name': 'smoke-agent',
      'skip-unchanged': 'true',
      'smoke-test-input': JSON.stringify({ messages: [{ role: 'user', content: 'ping' }] }),
      timeout: '60s',
      ...inputs,
    },
    event: {
      name: 'push',
      ref: 'refs/heads/main',
      sha,
      payload: { ref: 'refs/heads/main', after: sha, head_commit: { id: sha } },
    },
    env: { GITHUB_SERVER_URL: dirname(repository.url), GITHUB_REPOSITORY: basename(repository.url) },
    cwd: repository.path,
    timeoutMs: 90_000,
  })
  results.push(result)
  return result
}

const flaws = (result: RunResult, ending: Ending) => flawsOf(result, ending, [platform.apiKey, secret])

let address = ''

function client(apiKey = platform.apiKey): AgentServer {
  const headers = { 'X-Api-Key': apiKey }
  return createAgentServer(
    createTransport({ baseUrl: address, headers, redact: (text) => text, userAgent: 'test', effects: realEffects }),
  )
}

const ping = { messages: [{ role: 'user', content: 'ping' }] }

async function stream(assistantId: string, streamMode: StreamMode | StreamMode[]): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  const signal = AbortSignal.timeout(20_000)
  for await (const event of client().streamRun({ assistantId, input: ping, streamMode, signal })) events.push(event)
  return events
}

describe('the smoke test of a real agent', { timeout: 120_000 }, () => {
  it('proves a new revision, with the first graph of the checkout', async () => {
    const result = await step({
      secrets: `ECHO_KEY=${secret}\nMARKS=${join(folder, 'marks-')}`,
      'smoke-test-expect': '^echo 1: ping$',
    })
    expect(await flaws(result, DEPLOYED)).toEqual([])
    expect(result.outputs).toMatchObject({ 'smoke-test': 'passed', 'smoke-test-first-event-ms': expect.stringMatching(/^\d+$/) })
    expect(result.log).toContain("The assistant is 'agent', the first graph of langgraph.json in the checkout.")
    expect(readable(result.summary)).toContain('<pre>echo 1: ping</pre>')
    address = result.outputs['deployment-url'] ?? ''
  })

  it.each(['updates', 'messages', 'messages-tuple', 'values', 'debug', 'events'])(
    'reads the whole answer in the mode %s, of a deployment that is unchanged',
    async (mode) => {
      const result = await step({ 'smoke-test-stream-mode': mode, 'smoke-test-expect': '^echo 1: ping$' })
      expect(await flaws(result, { status: 'unchanged' })).toEqual([])
      expect(result.outputs['smoke-test']).toBe('passed')
    },
  )

  it('is red when the agent says something else', async () => {
    const result = await step({ 'smoke-test-expect': 'pong' })
    expect(
      await flaws(result, failed('E_SMOKE_TEST', 'does not match smoke-test-expect: pong', 'The agent said: echo 1: ping')),
    ).toEqual([])
    expect(result.outputs['smoke-test']).toBe('failed')
  })

  it('is red when the agent throws, although the answer is a 200', async () => {
    const result = await step({ 'smoke-test-assistant': 'broken' })
    expect(await flaws(result, failed('E_SMOKE_TEST', 'error event', 'no such tool: ping', 'error 1'))).toEqual([])
  })

  it('is red when there is no such assistant', async () => {
    const result = await step({ 'smoke-test-assistant': 'agnet' })
    expect(await flaws(result, failed('E_SMOKE_TEST', 'answered 404', 'agnet', 'Set smoke-test-assistant'))).toEqual([])
  })

  it('is red when the agent does not come to an end', async () => {
    const result = await step({
      'smoke-test-assistant': 'endless',
      'smoke-test-stream-mode': 'custom',
      'smoke-test-timeout': '2s',
    })
    expect(await flaws(result, failed('E_SMOKE_TEST', 'The run had not ended when the 2 s'))).toEqual([])
  })
})

describe('the runs API through the platform', { timeout: 60_000 }, () => {
  const sdk = (apiKey = platform.apiKey) => new Client({ apiUrl: address, apiKey, callerOptions: { maxRetries: 0 } })

  it.each<StreamMode | StreamMode[]>(['updates', 'messages-tuple', ['values', 'messages']])(
    'gives the LangGraph SDK and this client the same, in the mode %s',
    async (mode) => {
      const modes = typeof mode === 'string' ? [mode] : mode
      const seen: RunEvent[] = []
      for await (const { event, data } of sdk().runs.stream(null, 'agent', { input: ping, streamMode: modes }))
        seen.push({ event, data })
      const own = await stream('agent', mode)
      expect(seen.map(({ event }) => event)).toEqual(own.map(({ event }) => event))
      expect(streamedText(seen)).toBe('echo 1: ping')
      expect(streamedText(own)).toBe('echo 1: ping')
    },
  )

  it('passes an error inside the stream as it is', async () => {
    const events = await stream('broken', 'updates')
    expect(events.at(-1)).toMatchObject({ event: 'error', data: { message: 'no such tool: ping' } })
    const seen: RunEvent[] = []
    for await (const { event, data } of sdk().runs.stream(null, 'broken', { input: ping, streamMode: 'updates' }))
      seen.push({ event, data })
    expect(seen.at(-1)).toEqual(events.at(-1))
  })

  it('passes an error before the stream as it is', async () => {
    await expect(stream('agnet', 'updates')).rejects.toMatchObject({
      kind: 'http',
      status: 404,
      detail: expect.stringContaining('agnet'),
    })
    await expect(sdk().runs.stream(null, 'agnet', { input: ping, streamMode: 'updates' }).next()).rejects.toThrow(/404/)
  })

  it('refuses another key before the agent sees anything', async () => {
    const wrong = 'lsv2_pt_ffffffffffffffffffffffffffffffff_ffffffffff'
    const failure = await client(wrong)
      .searchAssistants(AbortSignal.timeout(5000))
      .catch((error: RequestFailure) => error)
    expect(failure).toMatchObject({ kind: 'http', status: 401 })
    await expect(sdk(wrong).runs.stream(null, 'agent', { input: ping, streamMode: 'updates' }).next()).rejects.toThrow(/401/)
  })

  it('lists the assistants, keeps threads, and is well', async () => {
    const listed = await client().searchAssistants(AbortSignal.timeout(5000))
    expect(listed.map(({ graph_id: graph }) => graph).toSorted()).toEqual(['agent', 'broken', 'endless'])
    await client().ok(AbortSignal.timeout(5000))
    const { thread_id: thread } = await sdk().threads.create()
    await sdk().runs.wait(thread, 'agent', { input: ping })
    const state = await sdk().threads.getState<{ messages: unknown[] }>(thread)
    expect(state.values.messages).toHaveLength(2)
  })

  it('tells the agent that a reader has left', async () => {
    const marks = join(folder, 'marks-leave')
    // A run of a thread: the open agent server cancels no other when its reader leaves.
    const { thread_id: thread } = await sdk().threads.create()
    const input = { messages: [{ role: 'user', content: 'leave' }] }
    const reader = new AbortController()
    const options = { input, streamMode: 'custom', onDisconnect: 'cancel', signal: reader.signal } as const
    const reading = async () => {
      for await (const { event } of sdk().runs.stream(thread, 'endless', options)) if (event === 'custom') reader.abort()
    }
    await reading().catch(() => undefined)
    const written = async () => {
      const before = statSync(marks).size
      await delay(400)
      return statSync(marks).size - before
    }
    await expect.poll(written, { timeout: 8000 }).toBe(0)
    expect(statSync(marks).size).toBeLessThan(200)
  })
})
