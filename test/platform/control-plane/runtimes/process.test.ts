import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createProcessRuntime } from '../../../../src/platform/control-plane/runtimes/process.ts'
import { type AgentProcess, StartFailure } from '../../../../src/platform/control-plane/runtimes/runtime.ts'
import type { BuiltAgent } from '../../../../src/platform/control-plane/sources/build.ts'
import { processStartedAt } from '../../../../src/platform/process-identity.ts'
import { buildEchoAgent } from '../../support/echo-agent.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { processesWith, until } from '../../support/processes.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'process-runtime-'))
const runtime = createProcessRuntime()
const running: AgentProcess[] = []
let echo: BuiltAgent
let serial = 0

beforeAll(async () => {
  echo = await buildEchoAgent(folder)
})
afterEach(async () => {
  for (const agent of running.splice(0)) await agent.stop({ graceMs: 0 })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Variant {
  /** Files beside the example agent, whose packages they share. */
  readonly files?: Record<string, string>
  readonly graph?: string
  readonly env?: Record<string, string>
  readonly agentEnv?: Record<string, string>
  readonly server?: BuiltAgent['server']
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

function start({ files = {}, graph = './agent.mjs:graph', env = {}, agentEnv = {}, server = {}, timeoutMs = 30_000, signal }: Variant = {}) {
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(echo.directory, name), content)
  const stateDirectory = path.join(folder, `state-${(serial += 1)}`)
  mkdirSync(stateDirectory)
  const log = memoryLog()
  const agent = { ...echo, graphs: { agent: graph }, stateDirectory, env: agentEnv, server }
  const started = runtime
    .start({ revisionId: 'revision', agent, env }, { log, signal: signal ?? new AbortController().signal, timeoutMs })
    .then((process) => {
      running.push(process)
      return process
    })
  return { started, log, agent }
}

async function failureOf(variant: Variant): Promise<StartFailure> {
  const failure = await start(variant).started.catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(StartFailure)
  return failure as StartFailure
}

const post = (agent: AgentProcess, route: string, body: unknown) =>
  fetch(`http://${agent.address.host}:${agent.address.port}${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const ask = (content: string) => ({ assistant_id: 'agent', input: { messages: [{ role: 'user', content }] } })

/** A graph with one node that runs this code. */
const graphOf = (code: string) => `
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'
export const graph = new StateGraph(MessagesAnnotation)
  .addNode('node', async () => { ${code} })
  .addEdge('__start__', 'node').addEdge('node', '__end__').compile()
`

const identityOf = (reference: string) => {
  const [, pid, startedAt] = reference.split(':')
  return { pid: Number(pid), startedAt }
}

describe('a healthy agent', () => {
  test('answers on a port of this machine only, tells its versions, streams both modes, and keeps threads', async () => {
    const { started, log } = start()
    const agent = await started
    expect(agent.address.host).toBe('127.0.0.1')
    const { pid, startedAt } = identityOf(agent.reference)
    expect(startedAt).toBe(await processStartedAt(pid))
    const info = await fetch(`http://127.0.0.1:${agent.address.port}/info`)
    expect(await info.json()).toMatchObject({ version: '1.5.1', langgraph_js_version: '1.4.18' })
    const stream = await post(agent, '/runs/stream', { ...ask('hello'), stream_mode: ['updates', 'messages'] })
    const text = await stream.text()
    expect(text).toContain('event: updates')
    expect(text).toContain('event: messages/partial')
    expect(text).toContain('echo 1: hello')
    const thread = (await (await post(agent, '/threads', {})).json()) as { thread_id: string }
    for (const word of ['one', 'two']) await (await post(agent, `/threads/${thread.thread_id}/runs/wait`, ask(word))).text()
    const state = await fetch(`http://127.0.0.1:${agent.address.port}/threads/${thread.thread_id}/state`)
    expect(((await state.json()) as { values: { messages: unknown[] } }).values.messages).toHaveLength(4)
    expect(log.text()).not.toContain('not up to date')
    expect(log.text()).not.toContain('GET /ok')
  })

  test('may be TypeScript with all that tsx knows, or a function that makes the graph', async () => {
    const source = "import { graph as echo } from './agent.mjs'\nenum Kind { Echo }\nexport const make = (): typeof echo => (Kind.Echo === 0 ? echo : echo)"
    const agent = await start({ files: { 'typed.ts': source }, graph: './typed.ts:make' }).started
    expect(await (await post(agent, '/runs/wait', ask('typed'))).text()).toContain('echo 1: typed')
  })

  test('sees its configuration, the deployment over it, and nothing of the platform', async () => {
    vi.stubEnv('PLATFORM_DATABASE_URL', 'postgres://secret')
    const code = "return { messages: [{ role: 'ai', content: JSON.stringify(process.env) }] }"
    const { started } = start({
      files: { 'env.mjs': graphOf(code) },
      graph: './env.mjs:graph',
      agentEnv: { FROM_FILE: 'file', BOTH: 'file' },
      env: { FROM_DEPLOYMENT: 'deployment', BOTH: 'deployment' },
    })
    const agent = await started
    vi.unstubAllEnvs()
    const result = (await (await post(agent, '/runs/wait', ask('?'))).json()) as { messages: { content: string }[] }
    const env = JSON.parse(result.messages.at(-1)?.content ?? '{}') as Record<string, string>
    expect(env).toMatchObject({ FROM_FILE: 'file', FROM_DEPLOYMENT: 'deployment', BOTH: 'deployment', HOME: echo.home })
    expect(env['PORT']).toBe(String(agent.address.port))
    expect(Object.keys(env).filter((name) => /^(PLATFORM|VITEST|NODE_CHANNEL)/.test(name))).toEqual([])
  })

  test('may have an authorisation of its own, which no header gets around', async () => {
    const auth = `
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth'
export const auth = new Auth().authenticate((request) => {
  if (request.headers.get('x-pass') !== 'open') throw new HTTPException(401, { message: 'no pass' })
  return 'somebody'
})`
    const agent = await start({ files: { 'auth.mjs': auth }, server: { auth: { path: './auth.mjs:auth', disable_studio_auth: false } } }).started
    const search = (headers: Record<string, string>) =>
      fetch(`http://127.0.0.1:${agent.address.port}/threads/search`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: '{}',
      }).then((response) => response.status)
    expect(await search({})).toBe(401)
    expect(await search({ 'x-auth-scheme': 'langsmith' })).toBe(401)
    expect(await search({ 'x-pass': 'open' })).toBe(200)
  })

  test('writes its lines with their levels to the log', async () => {
    const { started, log } = start({ files: { 'talk.mjs': `console.log('to out'); console.error('to err')\n${graphOf('')}` }, graph: './talk.mjs:graph' })
    await started
    expect(log.lines).toContainEqual({ level: 'INFO', message: 'to out' })
    expect(log.lines).toContainEqual({ level: 'WARNING', message: 'to err' })
    expect(log.lines).toContainEqual({ level: 'INFO', message: 'Starting 10 workers' })
  })
})

describe('an agent that does not come up', () => {
  test('because a graph throws when it is imported', async () => {
    const failure = await failureOf({ files: { 'throws.mjs': "throw new Error('boom in the graph')" }, graph: './throws.mjs:graph' })
    expect(failure.message).toBe("The agent could not start: graph 'agent': throws.mjs could not be loaded: boom in the graph")
    expect(failure.output.join('\n')).toMatch(/^Error: boom in the graph\n\s+at file:\S*throws\.mjs:1:\d+$/m)
    expect(failure.output.join('\n')).not.toMatch(/launcher\.ts|node:internal/)
  })

  test.each([
    ['a missing export', './agent.mjs:nothing', "agent.mjs has no export 'nothing' (it exports VERSION, graph)"],
    ['an export that is no graph', './agent.mjs:VERSION', "the export 'VERSION' of agent.mjs is neither a graph nor a function"],
    ['a syntax error', './broken.mjs:graph', 'broken.mjs could not be loaded'],
    ['a package that is not installed', './missing.mjs:graph', "Cannot find package 'not-installed'"],
    ['a process that exits', './exits.mjs:graph', 'The agent exited with code 4 before it answered'],
    ['an await that never settles', './awaits.mjs:graph', 'a module waits for something that never comes'],
  ])('because of %s', async (_, graph, sentence) => {
    const files = {
      'broken.mjs': 'export const graph = ',
      'missing.mjs': "import 'not-installed'",
      'exits.mjs': 'process.exit(4)',
      'awaits.mjs': 'await new Promise(() => undefined)',
    }
    expect((await failureOf({ files, graph })).message).toContain(sentence)
  })

  test('because it never answers; nothing of it is left', async () => {
    const files = { 'silent.mjs': "console.log('last words'); setInterval(() => undefined, 1000); await new Promise(() => undefined)" }
    const failure = await failureOf({ files, graph: './silent.mjs:graph', timeoutMs: 6000 })
    expect(failure.message).toBe('The agent did not answer GET /ok within 6 s.')
    expect(failure.output).toContain('last words')
    expect(processesWith('silent.mjs')).toEqual([])
  })

  test('because it was interrupted; nothing of it is left', async () => {
    const controller = new AbortController()
    const files = { 'stuck.mjs': 'while (true);' }
    const outcome = start({ files, graph: './stuck.mjs:graph', signal: controller.signal }).started.catch((error: unknown) => error)
    await until(() => processesWith('stuck.mjs').length > 0)
    controller.abort(new Error('interrupted'))
    expect(await outcome).toEqual(new Error('interrupted'))
    expect(processesWith('stuck.mjs')).toEqual([])
  })
})

describe('the end of an agent', () => {
  const slow = { 'slow.mjs': graphOf("await new Promise((r) => setTimeout(r, 1500)); return { messages: [{ role: 'ai', content: 'finished' }] }") }

  test('a run in flight finishes within the grace', async () => {
    const agent = await start({ files: slow, graph: './slow.mjs:graph' }).started
    const answer = post(agent, '/runs/wait', ask('slow')).then((response) => response.text())
    await new Promise((resolve) => setTimeout(resolve, 300))
    await agent.stop({ graceMs: 20_000 })
    expect(await answer).toContain('finished')
    expect(await agent.exited).toEqual({ code: 0, signal: null })
  })

  test('a background run, which has no request in flight, finishes as well', async () => {
    const marker = path.join(folder, 'background-run')
    const code = `await new Promise((r) => setTimeout(r, 1500)); (await import('node:fs')).writeFileSync(${JSON.stringify(marker)}, 'done')`
    const agent = await start({ files: { 'background.mjs': graphOf(code) }, graph: './background.mjs:graph' }).started
    const thread = (await (await post(agent, '/threads', {})).json()) as { thread_id: string }
    expect((await post(agent, `/threads/${thread.thread_id}/runs`, ask('go'))).status).toBe(200)
    await agent.stop({ graceMs: 20_000 })
    expect(readFileSync(marker, 'utf8')).toBe('done')
  })

  test('what does not finish is cut, and the whole tree goes', async () => {
    const code = "(await import('node:child_process')).spawn('sleep', ['87654']); await new Promise((r) => setTimeout(r, 60_000))"
    const agent = await start({ files: { 'spawns.mjs': graphOf(code) }, graph: './spawns.mjs:graph' }).started
    const answer = post(agent, '/runs/wait', ask('x'))
      .then((response) => response.text())
      .catch(() => 'cut')
    await until(() => processesWith('sleep 87654').length > 0)
    const before = Date.now()
    await agent.stop({ graceMs: 500 })
    expect(Date.now() - before).toBeLessThan(4000)
    expect(processesWith('sleep 87654')).toEqual([])
    expect(await answer).toBe('cut')
  })

  test('one that listens to nobody is killed', async () => {
    const agent = await start({ files: { 'deaf.mjs': graphOf('while (true);') }, graph: './deaf.mjs:graph' }).started
    const answer = post(agent, '/runs/wait', ask('x')).catch(() => 'cut')
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await agent.stop({ graceMs: 200 })
    expect(await agent.exited).toEqual({ code: null, signal: 'SIGKILL' })
    await answer
  })

  test('threads are kept over a restart of the same build', async () => {
    const first = start()
    const agent = await first.started
    const thread = (await (await post(agent, '/threads', {})).json()) as { thread_id: string }
    await (await post(agent, `/threads/${thread.thread_id}/runs/wait`, ask('remember'))).text()
    await agent.stop({ graceMs: 5000 })
    const again = await runtime.start(
      { revisionId: 'revision', agent: first.agent, env: {} },
      { log: memoryLog(), signal: new AbortController().signal, timeoutMs: 30_000 },
    )
    running.push(again)
    const state = await fetch(`http://127.0.0.1:${again.address.port}/threads/${thread.thread_id}/state`)
    expect(await state.text()).toContain('echo 1: remember')
  })

  test('a crash is noticed', async () => {
    const agent = await start({ files: { 'dies.mjs': graphOf('process.exit(9)') }, graph: './dies.mjs:graph' }).started
    await post(agent, '/runs/wait', ask('x')).catch(() => undefined)
    expect(await agent.exited).toEqual({ code: 9, signal: null })
    await agent.stop({ graceMs: 1000 })
  })
})

describe('when the platform dies', () => {
  const script = fileURLToPath(new URL('../../support/start-agent.ts', import.meta.url))

  async function orphan(graph: string, stateDirectory: string) {
    mkdirSync(stateDirectory, { recursive: true })
    const agent = { ...echo, graphs: { agent: graph }, stateDirectory }
    const platform = spawn(process.execPath, [script, JSON.stringify(agent)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const line = await new Promise<string>((resolve) => platform.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString())))
    const { reference } = JSON.parse(line) as { reference: string }
    return { platform, ...identityOf(reference) }
  }

  test('by kill -9, the agent ends by itself', async () => {
    const state = path.join(folder, 'orphan-state')
    const { platform, pid } = await orphan('./agent.mjs:graph', state)
    expect(processesWith(state)).not.toEqual([])
    // It is written now and then as well.
    rmSync(path.join(state, '.langgraph_api/.langgraphjs_ops.json'), { force: true })
    platform.kill('SIGKILL')
    await until(async () => processesWith(state).length === 0 && (await processStartedAt(pid)) === '', 8000)
    // In order, not by force: its state is on disk.
    expect(existsSync(path.join(state, '.langgraph_api/.langgraphjs_ops.json'))).toBe(true)
  })

  test('an agent whose event loop hangs ends too', async () => {
    const state = path.join(folder, 'hanging-state')
    writeFileSync(path.join(echo.directory, 'hangs.mjs'), `setTimeout(() => { while (true); }, 2000)\n${graphOf('')}`)
    const { platform } = await orphan('./hangs.mjs:graph', state)
    expect(processesWith(state)).not.toEqual([])
    await new Promise((resolve) => setTimeout(resolve, 2500))
    platform.kill('SIGKILL')
    await until(() => processesWith(state).length === 0, 8000)
  })

  test('a leftover is killed only if it is that very process', async () => {
    const agent = await start().started
    const { pid, startedAt } = identityOf(agent.reference)
    expect(await runtime.endStray(`process:${pid}:another`)).toBe(false)
    expect(await runtime.endStray(`process:${2 ** 22 - 1}:${startedAt}`)).toBe(false)
    expect(await runtime.endStray(`docker:${pid}`)).toBe(false)
    expect((await fetch(`http://127.0.0.1:${agent.address.port}/ok`)).status).toBe(200)
    expect(await runtime.endStray(agent.reference)).toBe(true)
    await agent.exited
    expect(await runtime.endStray(agent.reference)).toBe(false)
  })
})
