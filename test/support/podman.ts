import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Docker from 'dockerode'
import { startGroup } from '../../src/platform/control-plane/runtimes/process-group.ts'
import { removeContainers } from './containers.ts'
import { findProgram, type TestEngine } from './docker-engine.ts'
import { abandonedFolders, gone, makeOwnedFolder, mountsBelow, processesOf, signal, withDescendants } from './folder-processes.ts'

const PREFIX = 'test-podman-'
const START_LIMIT_MS = 30_000
/** The bridge that Podman makes for its containers and leaves. */
const BRIDGE = '/sys/class/net/cni-podman0'

/** Whether the bridge was there before. */
interface Noted {
  readonly hadBridge: boolean
}

/** Why Podman cannot be started here; null when it can. */
export function podmanMissing(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'starting Podman for a test takes Linux and root'
  const missing = ['podman', 'crun', 'unshare', 'ip'].filter((program) => findProgram(program) === null)
  return missing.length === 0 ? null : `${missing.join(' and ')} is not installed (.ci/packages)`
}

/** Podman's service, with the Docker API, in a temporary folder. */
export async function startPodman(): Promise<TestEngine> {
  for (const { folder, noted } of await abandonedFolders<Noted>(PREFIX)) await remove(folder, noted)
  const hadBridge = existsSync(BRIDGE)
  const folder = await makeOwnedFolder<Noted>(PREFIX, { hadBridge })
  mkdirSync(join(folder, 'run'))
  const settings = { 'containers.conf': CONTAINERS, 'registries.conf': REGISTRIES }
  for (const [file, text] of Object.entries(settings)) writeFileSync(join(folder, file), text)
  const socketPath = join(folder, 'podman.sock')
  const podman = [
    'podman',
    '--root',
    join(folder, 'data'),
    '--runroot',
    join(folder, 'run'),
    '--storage-driver',
    'vfs',
    '--runtime',
    'crun',
  ]
  // In a view of the mounts of its own: crun takes a machine with both kinds of control groups for one with the new kind.
  const script = 'if grep -q " /sys/fs/cgroup tmpfs" /proc/mounts; then umount /sys/fs/cgroup/unified 2>/dev/null; fi; exec "$@"'
  const said: string[] = []
  const service = await startGroup({
    command: 'unshare',
    args: [
      '--mount',
      '--propagation',
      'private',
      'sh',
      '-c',
      script,
      'podman',
      ...podman,
      'system',
      'service',
      '--time',
      '0',
      `unix://${socketPath}`,
    ],
    cwd: folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      CONTAINERS_CONF: join(folder, 'containers.conf'),
      CONTAINERS_REGISTRIES_CONF: join(folder, 'registries.conf'),
    },
    onLine: (line) => said.push(line),
  })
  let ended = false
  void service.exited.then(() => (ended = true))
  const docker = new Docker({ socketPath })
  const stop = async () => {
    await removeContainers(docker)
    await service.terminate()
    await remove(folder, { hadBridge })
  }
  const deadline = Date.now() + START_LIMIT_MS
  for (;;) {
    try {
      return { docker, host: `unix://${socketPath}`, version: (await docker.version()).Version, stop }
    } catch (error) {
      if (ended || Date.now() > deadline) {
        await stop()
        throw new Error(`Podman did not start: ${(error as Error).message}\n${said.slice(-20).join('\n')}`, { cause: error })
      }
      await sleep(100)
    }
  }
}

const CONTAINERS = `[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
`

const REGISTRIES = `[[registry]]
location = "127.0.0.1"
insecure = true
`

async function remove(folder: string, { hadBridge }: Noted): Promise<void> {
  // Containers run below keepers of their own, which outlive the service.
  signal(withDescendants(processesOf(folder)), 'SIGKILL')
  await gone(folder, 5000)
  for (const mount of mountsBelow(folder)) execFileSync('umount', ['-l', mount], { stdio: 'ignore' })
  if (!hadBridge && existsSync(BRIDGE)) execFileSync(findProgram('ip') ?? 'ip', ['link', 'delete', basename(BRIDGE)])
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}
