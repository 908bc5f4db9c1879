import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { buildAgent, BuildFailure, type BuildRequest } from '../../../../src/platform/control-plane/sources/build.ts'
import { createEchoRepository } from '../../support/echo-agent.ts'
import { createGitRepository, type GitRepository } from '../../support/git-repository.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { processesWith, until } from '../../support/processes.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'build-'))
let serial = 0
afterAll(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
})

/** A repository without packages: its install is npm's shortest. */
function repositoryOf(files: Record<string, unknown>): GitRepository {
  const repository = createGitRepository(path.join(folder, `repository-${(serial += 1)}`))
  const texts = Object.entries(files).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])
  repository.commit(Object.fromEntries(texts) as Record<string, string>)
  return repository
}

/** For tests in which the packages play no part: npm alone takes seconds on a busy machine. */
const noInstall = { installCommand: 'true' }

const small = {
  'langgraph.json': { graphs: { agent: './agent.mjs:graph' }, dependencies: ['.'] },
  'package.json': { name: 'small', version: '1.0.0' },
  'package-lock.json': { name: 'small', version: '1.0.0', lockfileVersion: 3, packages: { '': { name: 'small', version: '1.0.0' } } },
  'agent.mjs': 'export const graph = () => ({})',
}

interface Effects {
  readonly signal?: AbortSignal
  readonly onCommit?: (commitSha: string) => void
}

function build(repository: GitRepository, request: Partial<BuildRequest> = {}, effects: Effects = {}) {
  const log = memoryLog()
  const directory = path.join(folder, `build-${(serial += 1)}`)
  const done = buildAgent(
    {
      source: { repoUrl: repository.directory, ref: 'main' },
      configPath: 'langgraph.json',
      directory,
      env: {},
      npmCache: path.join(folder, 'npm-cache'),
      ...request,
    },
    { log, signal: new AbortController().signal, ...effects },
  )
  return { done, log, directory: request.directory ?? directory }
}

async function failureOf(repository: GitRepository, request: Partial<BuildRequest> = {}): Promise<string> {
  const failure = await build(repository, request).done.catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(BuildFailure)
  return (failure as Error).message
}

describe('install', () => {
  test('the example agent is installed from its own lockfile', async () => {
    const repository = createEchoRepository(path.join(folder, 'echo'))
    const { done, log, directory } = build(repository)
    const agent = await done
    expect(agent).toMatchObject({
      commitSha: repository.git('rev-parse', 'main'),
      directory: path.join(directory, 'checkout'),
      configPath: 'langgraph.json',
      graphs: { agent: './agent.mjs:graph' },
      language: 'js',
    })
    expect(log.text()).toContain('Running npm ci in .')
    expect(log.text()).not.toContain('falling back')
    const installed = path.join(agent.directory, 'node_modules/@langchain/langgraph/package.json')
    expect(JSON.parse(readFileSync(installed, 'utf8'))).toMatchObject({ version: '1.4.18' })
    // Plain data: it survives the database.
    expect(JSON.parse(JSON.stringify(agent))).toEqual(agent)
  })

  test('a lockfile that differs from the manifest falls back to npm install, and says so', async () => {
    const repository = repositoryOf({
      ...small,
      'lib/package.json': { name: 'lib', version: '1.0.0' },
      'package.json': { name: 'small', version: '1.0.0', dependencies: { lib: 'file:./lib' } },
    })
    const { done, log } = build(repository)
    const agent = await done
    expect(log.lines).toContainEqual({ level: 'WARNING', message: expect.stringContaining('falling back to npm install') })
    expect(existsSync(path.join(agent.directory, 'node_modules/lib/package.json'))).toBe(true)
  })

  test('no lockfile, and one of an absent package manager, are mentioned', async () => {
    const { 'package-lock.json': _, ...unlocked } = small
    const none = build(repositoryOf(unlocked))
    await none.done
    expect(none.log.text()).toContain('There is no lockfile')
    const bun = build(repositoryOf({ ...unlocked, 'bun.lock': '{}' }))
    await bun.done
    expect(bun.log.text()).toContain('bun.lock was not used')
  })

  test('a monorepo: the package above the configuration file, from the root of its workspace', async () => {
    const repository = repositoryOf({
      'package.json': { name: 'root', private: true, workspaces: ['apps/*', 'libs/*'] },
      'libs/shared/package.json': { name: 'shared', version: '1.0.0', type: 'module', exports: './index.js' },
      'libs/shared/index.js': 'export const graph = () => ({})',
      'apps/bot/package.json': { name: 'bot', version: '1.0.0', dependencies: { shared: '*' } },
      'apps/bot/graphs/langgraph.json': { graphs: { agent: './agent.mjs:graph' } },
      'apps/bot/graphs/agent.mjs': "export { graph } from 'shared'",
    })
    const { done, log } = build(repository, { configPath: 'apps/bot/graphs/langgraph.json', buildCommand: 'pwd' })
    const agent = await done
    expect(existsSync(path.join(agent.directory, 'node_modules/shared/index.js'))).toBe(true)
    expect(log.text()).toContain(path.join(agent.directory, 'apps/bot'))
  })

  test('dependencies of the configuration file: folders are installed, and must be inside', async () => {
    const config = (dependency: string) => ({ graphs: { agent: './agent.mjs:graph' }, dependencies: ['.', dependency] })
    const repository = repositoryOf({
      ...small,
      'langgraph.json': config('./tools'),
      'tools/package.json': { name: 'tools', version: '1.0.0', scripts: { install: 'echo yes > installed' } },
    })
    const agent = await build(repository).done
    expect(existsSync(path.join(agent.directory, 'tools/installed'))).toBe(true)
    // Refused before anything is installed.
    expect(await failureOf(repositoryOf({ ...small, 'langgraph.json': config('../..') }))).toContain('leads out of the repository')
    expect(await failureOf(repositoryOf({ ...small, 'langgraph.json': config('./none') }))).toContain('does not exist')
    expect(await failureOf(repositoryOf({ ...small, 'langgraph.json': config('--global') }))).toContain('$.dependencies[1] should be a folder')
    expect(await failureOf(repositoryOf({ ...small, 'langgraph.json': config('git+ssh://x/y') }))).toContain('$.dependencies[1]')
  })

  test('install_command and build_command take the place of npm', async () => {
    const repository = repositoryOf({ ...small, 'agent.mjs': 'x', 'langgraph.json': { graphs: { agent: './out/agent.mjs:graph' } } })
    const { done, log } = build(repository, {
      installCommand: 'echo "installed with $DEPLOYMENT" > proof',
      buildCommand: 'mkdir out && cat proof && echo "export const graph = () => ({})" > out/agent.mjs',
      env: { DEPLOYMENT: 'its variables' },
    })
    await done
    expect(log.text()).toContain('installed with its variables')
    expect(log.text()).not.toContain('npm')
  })

  test('the state that a repository carries is not the agent’s', async () => {
    const agent = await build(repositoryOf({ ...small, '.langgraph_api/.langgraphjs_ops.json': '{}' }), noInstall).done
    expect(path.relative(agent.directory, agent.stateDirectory)).toBe('../state')
    expect(existsSync(path.join(agent.stateDirectory, '.langgraph_api'))).toBe(false)
  })

  test('the commit is told before it is built, and can be asked for', async () => {
    const repository = repositoryOf(small)
    const first = repository.git('rev-parse', 'HEAD')
    repository.commit({ 'agent.mjs': 'export const graph = () => ({ second: true })' })
    const told: string[] = []
    const source = { repoUrl: repository.directory, ref: 'HEAD', commit: first }
    const { done } = build(repository, { source, installCommand: 'exit 3' }, { onCommit: (sha) => told.push(sha) })
    await expect(done).rejects.toThrow('install_command exited with code 3')
    expect(told).toEqual([first])
  })

  test('what an earlier attempt left is gone', async () => {
    const directory = path.join(folder, 'again')
    mkdirSync(path.join(directory, 'checkout'), { recursive: true })
    writeFileSync(path.join(directory, 'checkout', 'left-over'), '')
    const agent = await build(repositoryOf(small), { ...noInstall, directory }).done
    expect(existsSync(path.join(agent.directory, 'left-over'))).toBe(false)
  })
})

describe('the environment of a build', () => {
  test('has nothing of the platform, and no program of the platform', async () => {
    vi.stubEnv('PLATFORM_API_KEY', 'platform-secret')
    vi.stubEnv('PATH', `/somewhere/node_modules/.bin:${process.env['PATH']}`)
    const { done, log } = build(repositoryOf(small), { ...noInstall, buildCommand: 'env; node --version', env: { MINE: 'mine' } })
    await done
    vi.unstubAllEnvs()
    const text = log.text()
    expect(text).not.toContain('platform-secret')
    expect(text).not.toMatch(/^(VITEST|NODE_ENV|npm_package)/m)
    expect(text).not.toContain('node_modules/.bin')
    expect(text).toMatch(/^MINE=mine$/m)
    expect(text).toMatch(/^HOME=.*\/home$/m)
    expect(text).toMatch(/^v24\./m)
  })
})

describe('failures', () => {
  test('a command that fails is named, with its last words', async () => {
    expect(await failureOf(repositoryOf(small), { ...noInstall, buildCommand: 'echo "error: no such thing" >&2; exit 3' })).toBe(
      'build_command exited with code 3: error: no such thing',
    )
    expect(await failureOf(repositoryOf(small), { installCommand: 'kill -9 $$' })).toContain('install_command was killed by SIGKILL')
  })

  test('a package that does not exist', async () => {
    const repository = repositoryOf({ ...small, 'package.json': { name: 'small', dependencies: { lib: 'file:./nowhere.tgz' } } })
    const { done, log } = build(repository)
    await expect(done).rejects.toThrow(/npm (ci|install) exited with code/)
    expect(log.lines.some((line) => line.level === 'ERROR')).toBe(true)
  })

  test('no package.json, no graph file, a Python graph where there is no Python', async () => {
    const { 'package.json': _, 'package-lock.json': __, ...bare } = small
    expect(await failureOf(repositoryOf(bare))).toContain('There is no package.json beside langgraph.json or above it')
    const missing = { ...small, 'langgraph.json': { graphs: { agent: './src/agent.ts:graph' } } }
    expect(await failureOf(repositoryOf(missing), noInstall)).toBe(
      "langgraph.json: the file './src/agent.ts' of graph 'agent' does not exist after the build.",
    )
    const outside = { ...small, 'langgraph.json': { graphs: { agent: '../agent.mjs:graph' } } }
    expect(await failureOf(repositoryOf(outside), noInstall)).toContain('is outside of the repository')
    const python = { 'langgraph.json': { graphs: { agent: './agent.py:graph' } } }
    // The machine's git, and no other program of it.
    const bin = path.join(folder, 'git-only')
    mkdirSync(bin)
    symlinkSync(execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim(), path.join(bin, 'git'))
    vi.stubEnv('PATH', bin)
    const failure = await failureOf(repositoryOf(python)).finally(() => vi.unstubAllEnvs())
    expect(failure).toBe(
      'langgraph.json has Python graphs, which need Python 3.11 or newer with venv, and this machine has no Python. ' +
        'Install it, or deploy them as a container image.',
    )
  })

  test('a checkout that is too large', async () => {
    const request = { ...noInstall, maxCheckoutBytes: 1000 }
    expect(await failureOf(repositoryOf(small), request)).toContain('larger than this platform allows')
  })

  test('an abort kills the whole tree, and the reason comes back', async () => {
    const controller = new AbortController()
    const { done } = build(
      repositoryOf(small),
      { ...noInstall, buildCommand: 'trap "" TERM; (trap "" TERM; sleep 98765) & sleep 98765' },
      { signal: controller.signal },
    )
    const outcome = done.catch((error: unknown) => error)
    await until(() => processesWith('sleep 98765').length >= 2)
    controller.abort(new Error('the revision was interrupted'))
    expect(await outcome).toEqual(new Error('the revision was interrupted'))
    expect(processesWith('sleep 98765')).toEqual([])
  })

  test('an endless line is cut, an endless flood is read to its end', async () => {
    const { done, log } = build(repositoryOf(small), {
      ...noInstall,
      buildCommand: 'head -c 100000 /dev/zero | tr "\\0" x; echo; seq 1 20000',
    })
    await done
    const long = log.lines.find((line) => line.message.startsWith('xxx'))
    expect(long?.message.length).toBeLessThan(8300)
    expect(log.text()).toContain('20000')
  })
})
