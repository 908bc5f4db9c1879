import { execFileSync, spawn } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Docker from 'dockerode'
import { removeContainers } from './containers.ts'
import { abandonedFolders, gone, makeOwnedFolder, mountsBelow, processesOf, signal, withDescendants } from './folder-processes.ts'

/** What a folder of an engine that a test has started begins with. */
const PREFIX = 'test-engine-'
const START_LIMIT_MS = 60_000

/** A real container engine for a test file. */
export type TestEngine = {
  docker: Docker
  /** What `DOCKER_HOST` is for it. */
  host: string
  /** The version of what answers. */
  version: string
  /** Removes all that the test has made in it; stops it when the test has started it. */
  stop: () => Promise<void>
}

/** Why there can be no engine here, for the notes of skipped tests; null when there can. */
export function engineMissing(): string | null {
  if (hasSystemEngine()) return null
  if (process.platform !== 'linux') return 'no container engine runs here'
  if (process.getuid?.() !== 0) return 'no container engine runs here, and starting one takes root'
  const missing = ['dockerd', 'ip'].filter((program) => findProgram(program) === null)
  return missing.length === 0
    ? null
    : `no container engine runs here, and ${missing.join(' and ')} is not installed (.ci/packages)`
}

export function findProgram(name: string): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? null
}

const SYSTEM_SOCKET = '/var/run/docker.sock'

function hasSystemEngine(): boolean {
  try {
    accessSync(SYSTEM_SOCKET, constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** The engine of this machine, if one runs; otherwise one of its own, started in a temporary folder with a network of its own. */
export async function startEngine(): Promise<TestEngine> {
  for (const { folder, noted } of await abandonedFolders<{ bridge: string }>(PREFIX)) await endEngine(folder, noted.bridge)
  if (hasSystemEngine()) {
    const docker = new Docker({ socketPath: SYSTEM_SOCKET })
    return { docker, host: `unix://${SYSTEM_SOCKET}`, version: (await docker.version()).Version, stop: () => removeAll(docker) }
  }
  const bridge = `das${randomUUID().slice(0, 8)}`
  const folder = await makeOwnedFolder(PREFIX, { bridge })
  makeBridge(bridge)
  const socketPath = join(folder, 'engine.sock')
  const config = join(folder, 'config.json')
  writeFileSync(config, '{}')
  const log = openSync(join(folder, 'engine.log'), 'a')
  const args = [
    '--data-root',
    join(folder, 'data'),
    '--exec-root',
    join(folder, 'run'),
    '--pidfile',
    join(folder, 'pid'),
    '-H',
    `unix://${socketPath}`,
  ]
  // Nothing outside of the engine is changed: no rules of a firewall, no forwarding.
  const quiet = [
    '--iptables=false',
    '--ip6tables=false',
    '--ip-masq=false',
    '--ip-forward=false',
    '--bridge',
    bridge,
    '--config-file',
    config,
  ]
  const child = spawn(findProgram('dockerd') ?? 'dockerd', [...args, ...quiet], { stdio: ['ignore', log, log], detached: true })
  closeSync(log)
  let ended = false
  child.once('exit', () => (ended = true)).once('error', () => (ended = true))
  child.unref()
  const docker = new Docker({ socketPath })
  const deadline = Date.now() + START_LIMIT_MS
  for (;;) {
    try {
      const version = (await docker.version()).Version
      return { docker, host: `unix://${socketPath}`, version, stop: () => endEngine(folder, bridge) }
    } catch (error) {
      if (ended || Date.now() > deadline) {
        const said = readFileSync(join(folder, 'engine.log'), 'utf8').slice(-3000)
        await endEngine(folder, bridge)
        throw new Error(`the engine did not start: ${(error as Error).message}\n${said}`, { cause: error })
      }
      await sleep(100)
    }
  }
}

/** Every image of the tests has this in its name. */
export const TEST_REPOSITORY = 'deploy-agent-server-test'

/** An engine that was there before keeps nothing of ours. */
async function removeAll(docker: Docker): Promise<void> {
  const containers = await docker.listContainers({ all: true })
  const ours = containers.filter(({ Labels }) => Object.keys(Labels).some((label) => label.startsWith('deploy-agent-server.')))
  for (const { Id } of ours)
    await docker
      .getContainer(Id)
      .remove({ force: true, v: true })
      .catch(() => undefined)
  for (const { Id, RepoTags, RepoDigests } of await docker.listImages()) {
    const names = [...(RepoTags ?? []), ...(RepoDigests ?? [])]
    if (names.some((name) => name.includes(TEST_REPOSITORY)))
      await docker
        .getImage(Id)
        .remove({ force: true })
        .catch(() => undefined)
  }
}

function makeBridge(name: string): void {
  ip('link', 'add', name, 'type', 'bridge')
  for (let attempt = 1; ; attempt += 1) {
    try {
      ip('addr', 'add', `10.${randomInt(200, 250)}.${randomInt(1, 255)}.1/24`, 'dev', name)
      break
    } catch (error) {
      if (attempt === 5) throw error
    }
  }
  ip('link', 'set', name, 'up')
}

function ip(...args: string[]): void {
  execFileSync(findProgram('ip') ?? 'ip', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** Ends the engine of a folder with everything that runs in it, and removes its network, its mounts and its files. */
async function endEngine(folder: string, bridge: string): Promise<void> {
  const docker = new Docker({ socketPath: join(folder, 'engine.sock') })
  await removeContainers(docker)
  signal(processesOf(folder).filter(isDaemon), 'SIGTERM')
  await gone(folder, 15_000)
  // What an engine that was killed itself has left: its containers' keepers, and the containers below them.
  signal(withDescendants(processesOf(folder)), 'SIGKILL')
  await gone(folder, 5000)
  for (const mount of mountsBelow(folder)) execFileSync('umount', ['-l', mount], { stdio: 'ignore' })
  if (existsSync(`/sys/class/net/${bridge}`)) ip('link', 'delete', bridge)
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}

function isDaemon(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`).endsWith('/dockerd')
  } catch {
    return false
  }
}
