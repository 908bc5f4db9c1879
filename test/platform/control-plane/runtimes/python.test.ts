import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createProcessRuntime } from '../../../../src/platform/control-plane/runtimes/process.ts'
import { type AgentProcess, StartFailure } from '../../../../src/platform/control-plane/runtimes/runtime.ts'
import { buildAgent, BuildFailure, type BuildRequest, type BuiltAgent } from '../../../../src/platform/control-plane/sources/build.ts'
import { createGitRepository } from '../../support/git-repository.ts'
import { type MemoryLog, memoryLog } from '../../support/memory-log.ts'
import { processesWith, until } from '../../support/processes.ts'
import { hasPython, makeWheels } from '../../support/python-stand-in.ts'

const missing = hasPython() ? null : 'there is no python3 of 3.11 or newer with venv'
const folder = mkdtempSync(path.join(tmpdir(), 'python-agent-'))
const wheels = path.join(folder, 'wheels')
const runtime = createProcessRuntime()
const running: AgentProcess[] = []
let serial = 0

const AGENT = `
import json, os, sys
import tiny_greeting
from helpers.words import LOUD
from editable_words import WORD

print('agent is imported')

def graph(text):
    return {'text': tiny_greeting.greet(text) + LOUD + WORD, 'cwd': os.getcwd(), 'path': sys.path, 'env': dict(os.environ)}
`

/** A build backend of the repository's own, so that an editable package needs nothing from an index. */
const BACKEND = `
import os, zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    name = 'editable_words-1.0.0-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(folder, name), 'w') as wheel:
        wheel.writestr('editable_words.pth', os.path.join(os.getcwd(), 'src') + '\\n')
        wheel.writestr('editable_words-1.0.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: editable_words\\nVersion: 1.0.0\\n')
        wheel.writestr('editable_words-1.0.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
        wheel.writestr('editable_words-1.0.0.dist-info/RECORD', '')
    return name
`

const repository = () => {
  const made = createGitRepository(path.join(folder, `repository-${(serial += 1)}`))
  made.commit({
    'langgraph.json': JSON.stringify({
      graphs: { agent: './src/agent.py:graph' },
      dependencies: ['.', './lib', 'tiny_greeting>=1,<2'],
      env: { FROM_FILE: 'file', BOTH: 'file' },
      auth: { path: './src/agent.py:graph' },
    }),
    'requirements.txt': 'tiny_greeting==1.0.0\n',
    'src/agent.py': AGENT,
    'helpers/words.py': "LOUD = '!'\n",
    'lib/pyproject.toml': '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    'lib/backend.py': BACKEND,
    'lib/src/editable_words.py': "WORD = '?'\n",
    '.langgraph_api/memory.json': '["of the repository"]',
  })
  return made
}

function build(request: Partial<BuildRequest> = {}) {
  const log = memoryLog()
  const directory = path.join(folder, `build-${(serial += 1)}`)
  const source = request.source ?? { repoUrl: repository().directory, ref: 'main' }
  const npmCache = path.join(folder, 'cache')
  const done = buildAgent(
    { configPath: 'langgraph.json', directory, env: {}, npmCache, ...request, source },
    { log, signal: new AbortController().signal },
  )
  return { done, log, directory }
}

beforeAll(() => {
  if (missing === null) makeWheels(wheels)
})
beforeEach((context) => {
  if (missing !== null) context.skip(missing)
})
afterEach(async () => {
  for (const agent of running.splice(0)) await agent.stop({ graceMs: 0 })
  vi.unstubAllEnvs()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Only local wheels: nothing of a test comes from an index. */
function offline() {
  vi.stubEnv('PIP_CONFIG_FILE', '/dev/null')
  vi.stubEnv('PIP_NO_INDEX', '1')
  vi.stubEnv('PIP_FIND_LINKS', wheels)
}

describe('a Python agent, with a stand-in for the agent server', () => {
  let built: BuiltAgent
  let buildLog: MemoryLog

  beforeAll(async () => {
    if (missing !== null) return
    offline()
    vi.stubEnv('PLATFORM_API_KEY', 'platform-secret')
    const { done, log } = build({ buildCommand: 'env; command -v python' })
    buildLog = log
    built = await done
    vi.unstubAllEnvs()
  })

  interface Variant {
    readonly agent?: string
    readonly state?: string
    readonly env?: Record<string, string>
    readonly timeoutMs?: number
  }

  async function start({ agent = AGENT, state = `state-${(serial += 1)}`, env = {}, timeoutMs = 30_000 }: Variant = {}) {
    writeFileSync(path.join(built.directory, 'src/agent.py'), agent)
    const stateDirectory = path.join(folder, state)
    mkdirSync(stateDirectory, { recursive: true })
    const log = memoryLog()
    const signal = new AbortController().signal
    const request = { revisionId: 'revision', agent: { ...built, stateDirectory }, env }
    const agentProcess = await runtime.start(request, { log, signal, timeoutMs })
    running.push(agentProcess)
    const ask = async (route: string, body?: unknown) => {
      const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
      return (await fetch(`http://127.0.0.1:${agentProcess.address.port}${route}`, init)).json()
    }
    return { agentProcess, log, ask }
  }

  async function failureOf(agent: string, timeoutMs?: number): Promise<StartFailure> {
    const failure = await start({ agent, ...(timeoutMs === undefined ? {} : { timeoutMs }) }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(StartFailure)
    return failure as StartFailure
  }

  test('is built in a virtual environment, with nothing of the platform', () => {
    const interpreter = built.python?.interpreter ?? ''
    expect(built).toMatchObject({ language: 'python', graphs: { agent: './src/agent.py:graph' } })
    expect(JSON.parse(JSON.stringify(built))).toEqual(built)
    expect(buildLog.text()).toContain('Successfully installed')
    expect(buildLog.lines).toContainEqual({ level: 'INFO', message: interpreter })
    expect(buildLog.text()).toContain(`VIRTUAL_ENV=${path.resolve(interpreter, '../..')}`)
    expect(buildLog.text()).not.toContain('platform-secret')
  })

  test('answers, with all that its configuration names installed, in its own folder and environment', async () => {
    vi.stubEnv('PLATFORM_DATABASE_URL', 'postgres://secret')
    const { ask, log, agentProcess } = await start({ env: { FROM_DEPLOYMENT: 'deployment', BOTH: 'deployment' } })
    expect(await ask('/assistants/search', {})).toEqual([{ graph_id: 'agent' }])
    const answer = (await ask('/runs/wait', { assistant_id: 'agent', input: 'you' })) as Record<string, unknown>
    expect(answer).toMatchObject({ text: 'hello, you!?', cwd: built.directory })
    const env = answer['env'] as Record<string, string>
    expect(env).toMatchObject({ FROM_FILE: 'file', FROM_DEPLOYMENT: 'deployment', BOTH: 'deployment', HOME: built.home })
    expect(env['PORT']).toBe(String(agentProcess.address.port))
    expect(Object.keys(env).filter((name) => /^(PLATFORM|VITEST|PIP|NODE_CHANNEL)/.test(name))).toEqual([])
    expect((answer['path'] as string[]).filter((place) => place.includes('control-plane'))).toEqual([])
    expect(log.text()).toContain('agent is imported')
    // A header that anyone can send must not open an agent that has an authorisation of its own.
    expect(await ask('/auth')).toEqual({ path: `${path.join(built.directory, 'src/agent.py')}:graph`, disable_studio_auth: true })
  })

  test('keeps its state over a restart, apart from what the repository carries', async () => {
    const first = await start({ state: 'kept' })
    expect(await first.ask('/memory')).toEqual([])
    await first.ask('/runs/wait', { assistant_id: 'agent', input: 'you' })
    await first.agentProcess.stop({ graceMs: 5000 })
    expect(await first.agentProcess.exited).toEqual({ code: 0, signal: null })
    expect(readFileSync(path.join(folder, 'kept/.langgraph_api/memory.json'), 'utf8')).toContain('hello, you')
    expect(await (await start({ state: 'kept' })).ask('/memory')).toHaveLength(1)
    expect(await (await start()).ask('/memory')).toEqual([])
  })

  test.each([
    ['an error of its own', "raise ValueError('boom\\nin the graph')", "graph 'agent': src/agent.py could not be loaded: ValueError: boom in the graph"],
    ['a package that is not installed', 'import not_installed', "ModuleNotFoundError: No module named 'not_installed'"],
    ['a syntax error', 'def broken(', 'could not be loaded: SyntaxError'],
    ['a missing name', 'other = 1', "has no attribute 'graph'"],
    ['an exit', 'import sys; sys.exit(4)', 'SystemExit: 4'],
    ['an end of the process', 'import os; os._exit(4)', 'The agent exited with code 4 before it answered'],
  ])('does not come up because of %s', async (_, agent, sentence) => {
    expect((await failureOf(agent)).message).toContain(sentence)
  })

  test('is killed when it never answers', async () => {
    const failure = await failureOf("import time; print('last words'); time.sleep(7654)", 4000)
    expect(failure.message).toBe('The agent did not answer GET /ok within 4 s.')
    expect(failure.output).toContain('last words')
    expect(processesWith(built.python?.interpreter ?? '')).toEqual([])
  })

  test('finishes what is in flight within its grace, and is cut after it', async () => {
    const slow = (seconds: number) => `import asyncio\nasync def graph(text):\n    await asyncio.sleep(${seconds})\n    return 'finished'`
    const patient = await start({ agent: slow(1) })
    const answer = patient.ask('/runs/wait', { assistant_id: 'agent', input: '' })
    await new Promise((resolve) => setTimeout(resolve, 300))
    await patient.agentProcess.stop({ graceMs: 20_000 })
    expect(await answer).toBe('finished')
    const endless = await start({ agent: slow(7654) })
    const cut = endless.ask('/runs/wait', { assistant_id: 'agent', input: '' }).catch(() => 'cut')
    await new Promise((resolve) => setTimeout(resolve, 300))
    await endless.agentProcess.stop({ graceMs: 200 })
    expect(await cut).toBe('cut')
    expect(processesWith(built.python?.interpreter ?? '')).toEqual([])
  })

  test('ends by itself when the platform is killed', async () => {
    writeFileSync(path.join(built.directory, 'src/agent.py'), AGENT)
    const stateDirectory = path.join(folder, 'orphan')
    const script = fileURLToPath(new URL('../../support/start-agent.ts', import.meta.url))
    const platform = spawn(process.execPath, [script, JSON.stringify({ ...built, stateDirectory })], { stdio: ['ignore', 'pipe', 'inherit'] })
    await new Promise<void>((resolve) => platform.stdout.once('data', () => resolve()))
    expect(processesWith(stateDirectory)).not.toEqual([])
    platform.kill('SIGKILL')
    await until(() => processesWith(stateDirectory).length === 0, 8000)
  })

  test('says so when the Python of its build is gone', async () => {
    const gone = { ...built, python: { interpreter: path.join(folder, 'gone/bin/python'), paths: [] } }
    const effects = { log: memoryLog(), signal: new AbortController().signal, timeoutMs: 1000 }
    const request = { revisionId: 'revision', agent: gone, env: {} }
    await expect(runtime.start(request, effects)).rejects.toThrow('The Python that the agent was built with is gone')
  })

  describe('builds that fail', () => {
    /** A `python3` whose virtual environments are the one that is there already: making one takes seconds. */
    beforeAll(() => {
      if (missing !== null) return
      const interpreter = built.python?.interpreter
      mkdirSync(path.join(folder, 'bin'))
      writeFileSync(
        path.join(folder, 'bin/python3'),
        `#!/bin/sh
case "$*" in
  *'-m venv'*) mkdir -p "$4/bin" && printf '#!/bin/sh\\nexec ${interpreter} "$@"\\n' > "$4/bin/python" && chmod +x "$4/bin/python" ;;
  *) exec ${interpreter} "$@" ;;
esac
`,
        { mode: 0o755 },
      )
    })

    async function failureOfBuild(change: Record<string, string>, request: Partial<BuildRequest> = {}): Promise<string> {
      vi.stubEnv('PATH', `${path.join(folder, 'bin')}:${process.env['PATH']}`)
      const changed = repository()
      changed.commit(change)
      const failure = await build({ ...request, source: { repoUrl: changed.directory, ref: 'main' } }).done.catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(BuildFailure)
      return (failure as Error).message
    }

    test('because there is no such package', async () => {
      offline()
      expect(await failureOfBuild({ 'requirements.txt': 'no-such-package-anywhere\n' })).toMatch(
        /^pip install exited with code 1: ERROR: No matching distribution found for no-such-package-anywhere/,
      )
    })

    test('because the index does not answer', async () => {
      vi.stubEnv('PIP_CONFIG_FILE', '/dev/null')
      vi.stubEnv('PIP_INDEX_URL', 'http://127.0.0.1:1/simple')
      vi.stubEnv('PIP_FIND_LINKS', '')
      vi.stubEnv('PIP_RETRIES', '1')
      expect(await failureOfBuild({ 'requirements.txt': 'anything\n' })).toContain('pip could not reach its package index')
    })

    test('because of what the configuration names', async () => {
      const config = (...dependencies: string[]) => ({
        'langgraph.json': JSON.stringify({ graphs: { agent: './src/agent.py:graph' }, dependencies }),
      })
      expect(await failureOfBuild(config('./nowhere'))).toContain("the folder './nowhere' of $.dependencies does not exist")
      expect(await failureOfBuild(config('../..'))).toContain('leads out of the repository')
      expect(await failureOfBuild(config('.', '--index-url=http://x'))).toContain('$.dependencies[1] should be a folder')
      expect(await failureOfBuild(config('evil @ file:///etc'))).toContain('$.dependencies[0] should be a folder')
    })

    test('because of its own commands; install_command takes the place of the dependencies, not of the server', async () => {
      offline()
      const change = { 'requirements.txt': 'no-such-package-anywhere\n' }
      expect(await failureOfBuild(change, { installCommand: 'echo mine', buildCommand: 'echo "error: no" >&2; exit 3' })).toBe(
        'build_command exited with code 3: error: no',
      )
    })

    test('and an abort kills the whole tree', async () => {
      offline()
      vi.stubEnv('PATH', `${path.join(folder, 'bin')}:${process.env['PATH']}`)
      const controller = new AbortController()
      const changed = repository()
      changed.commit({ 'lib/backend.py': "import subprocess\nsubprocess.run(['sleep', '76543'])\n" })
      const outcome = buildAgent(
        {
          source: { repoUrl: changed.directory, ref: 'main' },
          configPath: 'langgraph.json',
          directory: path.join(folder, 'aborted'),
          env: {},
          npmCache: path.join(folder, 'cache'),
        },
        { log: memoryLog(), signal: controller.signal },
      ).catch((error: unknown) => error)
      await until(() => processesWith('sleep 76543').length > 0, 30_000)
      controller.abort(new Error('interrupted'))
      expect(await outcome).toEqual(new Error('interrupted'))
      expect(processesWith('sleep 76543')).toEqual([])
    })
  })
})
