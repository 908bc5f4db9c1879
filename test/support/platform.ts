import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { nodeCommand, REPOSITORY_ROOT } from './runner.ts'

const readySchema = z.looseObject({ url: z.url(), apiKey: z.string(), workspaceId: z.string(), pid: z.int() })

/** The real platform as a child process, with a data directory of its own. Its address stays the same over a restart. */
export type PlatformProcess = {
  url: string
  apiKey: string
  workspaceId: string
  dataDirectory: string
  /** Everything that it wrote besides the ready line. */
  output: () => string
  /** SIGTERM, and the end of the process. Returns the exit code. */
  stop: () => Promise<number | null>
  /** SIGKILL to the platform alone; what it has started lives on, as after a crash. */
  kill9: () => Promise<void>
  restart: () => Promise<void>
  /** Stops it and removes the data directory. */
  dispose: () => Promise<void>
}

const KEY = 'lsv2_pt_0123456789abcdef0123456789abcdef_0123456789'
const WORKSPACE = '5f0f4c1e-7a57-4ad1-9a39-3d8f3a1d2b10'

/** Starts it and waits for the JSON line that says that it is ready; rejects with its output when it ends or stays silent. */
export async function startPlatform(
  options: { args?: readonly string[]; env?: Readonly<Record<string, string>>; readyMs?: number } = {},
): Promise<PlatformProcess> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'platform-'))
  const port = await freePort()
  const args = [
    join(REPOSITORY_ROOT, 'src', 'platform', 'main.ts'),
    '--port',
    String(port),
    '--data-dir',
    dataDirectory,
    '--api-key',
    KEY,
    '--workspace-id',
    WORKSPACE,
    '--json',
    ...(options.args ?? []),
  ]
  let output = ''
  let child: ChildProcess | undefined

  const start = async () => {
    const started = spawn(nodeCommand(), args, {
      cwd: REPOSITORY_ROOT,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child = started
    started.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
    return new Promise<z.infer<typeof readySchema>>((resolve, reject) => {
      const fail = (why: string) => {
        clearTimeout(limit)
        reject(new Error(`the platform ${why}:\n${output.slice(-4000)}`))
      }
      const limit = setTimeout(() => {
        started.kill('SIGKILL')
        fail('did not become ready')
      }, options.readyMs ?? 30_000)
      started.once('exit', (code) => fail(`ended with ${code} before it was ready`))
      createInterface({ input: started.stdout }).on('line', (line) => {
        const ready = readySchema.safeParse(parseJson(line))
        if (!ready.success) return void (output += `${line}\n`)
        clearTimeout(limit)
        resolve(ready.data)
      })
    })
  }
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    const current = child
    if (current === undefined || current.exitCode !== null || current.signalCode !== null) return current?.exitCode ?? null
    const exited = new Promise<number | null>((resolve) => current.once('exit', (code) => resolve(code)))
    current.kill(signal)
    const limit = setTimeout(() => current.kill('SIGKILL'), 20_000)
    return exited.finally(() => clearTimeout(limit))
  }
  const ready = await start()
  return {
    url: ready.url.replace(/\/$/, ''),
    apiKey: ready.apiKey,
    workspaceId: ready.workspaceId,
    dataDirectory,
    output: () => output,
    stop: () => end('SIGTERM'),
    kill9: async () => void (await end('SIGKILL')),
    restart: async () => void (await start()),
    dispose: async () => {
      await end('SIGTERM')
      await rm(dataDirectory, { recursive: true, force: true })
    },
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}
