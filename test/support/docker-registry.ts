import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startGroup } from '../../src/platform/control-plane/runtimes/process-group.ts'
import { findProgram } from './docker-engine.ts'
import { abandonedFolders, makeOwnedFolder } from './folder-processes.ts'
import { startServer } from './http-server.ts'

const PREFIX = 'test-registry-'

/** A real image registry on this machine. */
export type TestRegistry = {
  /** Host and port, as they stand in image references. */
  address: string
  /** Calls its API as its user. */
  ask: (path: string, init?: RequestInit) => Promise<Response>
  stop: () => Promise<void>
}

/** The one user of a registry that asks for a login. */
export const REGISTRY_LOGIN = { username: 'robot', password: 'registry-password-1' }
/** bcrypt of that password. */
const HASH = '$2b$04$Q9UPPZejM/PfOd8SgojDX.DrJy40c72NtSGgKYeuUBdAZFC0ADUQa'

export function registryMissing(): string | null {
  return findProgram('docker-registry') === null ? 'docker-registry is not installed (.ci/packages)' : null
}

/** Starts one; with `login` it refuses whoever does not know the password. */
export async function startRegistry({ login = false }: { login?: boolean } = {}): Promise<TestRegistry> {
  for (const { folder } of await abandonedFolders(PREFIX)) rmSync(folder, { recursive: true, force: true })
  const folder = await makeOwnedFolder(PREFIX, {})
  const address = `127.0.0.1:${await freePort()}`
  const htpasswd = join(folder, 'htpasswd')
  writeFileSync(htpasswd, `${REGISTRY_LOGIN.username}:${HASH}\n`)
  const config = {
    version: 0.1,
    log: { level: 'warn' },
    storage: { filesystem: { rootdirectory: join(folder, 'data') }, delete: { enabled: true } },
    http: { addr: address },
    ...(login ? { auth: { htpasswd: { realm: 'test', path: htpasswd } } } : {}),
  }
  const file = join(folder, 'config.yml')
  // JSON is YAML, too.
  writeFileSync(file, JSON.stringify(config))
  const said: string[] = []
  // With the test process it ends as well, however that ends.
  const server = await startGroup({
    command: findProgram('docker-registry') ?? 'docker-registry',
    args: ['serve', file],
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '' },
    onLine: (line) => said.push(line),
  })
  let ended = false
  void server.exited.then(() => (ended = true))
  const headers = login
    ? { Authorization: `Basic ${Buffer.from(`${REGISTRY_LOGIN.username}:${REGISTRY_LOGIN.password}`).toString('base64')}` }
    : {}
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`http://${address}${path}`, { ...init, headers: { ...headers, ...init.headers } })
  const stop = async () => {
    server.kill()
    await server.exited
    rmSync(folder, { recursive: true, force: true })
  }
  const deadline = Date.now() + 20_000
  while (
    !(await ask('/v2/').then(
      (response) => response.ok,
      () => false,
    ))
  ) {
    if (ended || Date.now() > deadline) {
      await stop()
      throw new Error(`the registry did not start: ${said.slice(-20).join('\n')}`)
    }
    await sleep(50)
  }
  return { address, ask, stop }
}

async function freePort(): Promise<number> {
  const server = await startServer(() => undefined)
  await server.stop()
  return server.port
}
