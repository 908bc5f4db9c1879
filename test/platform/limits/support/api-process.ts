import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))

export interface ApiProcess {
  readonly port: number
  readonly dataDirectory: string
  stop(): Promise<void>
}

/** The platform in a process of its own, that trusts this machine as a proxy. */
export async function startApiProcess({ dataDirectory, args = [] }: {
  dataDirectory: string
  args?: readonly string[]
}): Promise<ApiProcess> {
  const command = ['src/platform/main.ts', '--port', '0', '--data-dir', dataDirectory, '--json', ...args]
  const env = { ...process.env, PLATFORM_TRUSTED_PROXIES: '127.0.0.1/32', PLATFORM_LOG_LEVEL: 'warn' }
  const child = spawn(process.execPath, command, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], env })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const ended = once(child, 'exit').then(() => {
    throw new Error(`the platform ended: ${errors}`)
  })
  ended.catch(() => {})
  const [line] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended])) as [string]
  const { url } = JSON.parse(line) as { url: string }
  return { port: Number(new URL(url).port), dataDirectory, stop: () => stop(child) }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}
