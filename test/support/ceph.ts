import { execFile, type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { accessSync, constants, readdirSync, readFileSync, rmSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const PROGRAMS = ['ceph', 'ceph-authtool', 'ceph-mon', 'ceph-osd', 'monmaptool', 'radosgw', 'radosgw-admin']
const FOLDER = 'test-ceph-'
const READY_MS = 60_000

/** A user of the store, with the two keys that belong to it. */
export interface CephUser {
  readonly name: string
  readonly access_key_id: string
  readonly secret_access_key: string
}

/** An S3 store that really has users and permissions: Ceph's gateway on a cluster of one, all of it in memory and on 127.0.0.1. */
export interface Ceph {
  readonly url: string
  /** Host names `<bucket>.<domain>` mean a bucket, too. */
  readonly domain: string
  readonly port: number
  createUser(name: string): Promise<CephUser>
  stop(): Promise<void>
}

/** Why Ceph cannot be started here; null when it can. */
export function whyNoCeph(): string | null {
  const folders = (process.env['PATH'] ?? '').split(':')
  const missing = PROGRAMS.filter((program) => !folders.some((folder) => isExecutable(path.join(folder, program))))
  return missing.length === 0 ? null : `no ${missing.join(', ')} on this machine: see .ci/packages`
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** @throws {Error} with what the programs said, when the gateway does not answer in time. */
export async function startCeph(): Promise<Ceph> {
  removeAbandoned()
  const directory = await mkdtemp(path.join(tmpdir(), FOLDER))
  await writeFile(path.join(directory, 'owner'), String(process.pid))
  const [monitorPort = 0, port = 0] = await freePorts(2)
  const domain = 's3.test'
  const children: ChildProcess[] = []
  const at = (name: string) => path.join(directory, name)
  const conf = at('ceph.conf')
  const start = (...command: string[]) => children.push(startDaemon(command, at(`${path.basename(command[0] ?? '')}.log`)))
  const stop = async () => {
    await Promise.all(children.map(endDaemon))
    await rm(directory, { recursive: true, force: true })
  }
  try {
    await Promise.all(['mon', 'osd', 'gateway', 'run'].map((name) => mkdir(at(name))))
    const cluster = randomUUID()
    await writeFile(conf, configOf({ directory, cluster, monitorPort, port, domain }))
    await createKeys(at('keyring'))
    await run('monmaptool', ['--create', '--fsid', cluster, '--addv', 'a', `[v2:127.0.0.1:${monitorPort}]`, at('monmap')])
    await run('ceph-mon', ['-c', conf, '-i', 'a', '--mkfs', '--monmap', at('monmap'), '--keyring', at('keyring')])
    start('ceph-mon', '-c', conf, '-i', 'a', '-f')
    await run('ceph-osd', ['-c', conf, '-i', '0', '--mkfs', '--no-mon-config', '--osd-uuid', randomUUID()])
    const disk = (await readFile(at('osd/fsid'), 'utf8')).trim()
    await run('ceph', ['-c', conf, '--connect-timeout', '30', 'osd', 'new', disk], { timeout: READY_MS })
    start('ceph-osd', '-c', conf, '-i', '0', '-f')
    start('radosgw', '-c', conf, '-n', 'client.gateway', '-f')
    await untilAnswering(`http://127.0.0.1:${port}/`, at('radosgw.log'))
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url: `http://127.0.0.1:${port}`,
    domain,
    port,
    createUser: async (name) => {
      const user = {
        name,
        access_key_id: name.toUpperCase().padEnd(20, '0'),
        secret_access_key: `secret-of-${name}-${randomUUID()}`,
      }
      const keys = ['--access-key', user.access_key_id, '--secret-key', user.secret_access_key, '--caps', 'user-policy=*']
      await run('radosgw-admin', ['-c', conf, 'user', 'create', '--uid', name, '--display-name', name, ...keys], {
        timeout: READY_MS,
      })
      return user
    },
    stop,
  }
}

interface ConfigOptions {
  readonly directory: string
  readonly cluster: string
  readonly monitorPort: number
  readonly port: number
  readonly domain: string
}

function configOf({ directory, cluster, monitorPort, port, domain }: ConfigOptions): string {
  return `[global]
fsid = ${cluster}
mon host = v2:127.0.0.1:${monitorPort}
keyring = ${directory}/keyring
run dir = ${directory}/run
admin socket = ${directory}/run/$name.$pid.asok
crash dir = ${directory}/run
pid file =
log file =
log to stderr = true
mon cluster log file = /dev/null
public network = 127.0.0.0/8
cluster network = 127.0.0.0/8
ms bind ipv6 = false
# Without the rest of a cluster: one copy of everything, and no waiting for others to agree.
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 2147483648
mon allow pool size one = true
mon max pg per osd = 1000
paxos propose interval = 0.05
paxos min wait = 0.01
[mon.a]
mon data = ${directory}/mon
[osd.0]
osd data = ${directory}/osd
[client.gateway]
rgw data = ${directory}/gateway
rgw frontends = beast endpoint=127.0.0.1:${port}
rgw dns name = ${domain}
rgw rados pool pg num min = 1
rgw thread pool size = 16
rgw enable gc threads = false
rgw enable lc threads = false
# Temporary credentials.
rgw s3 auth use sts = true
rgw sts key = 0123456789abcdef
rgw s3 auth order = local, sts
`
}

async function createKeys(file: string): Promise<void> {
  const add = (name: string, ...caps: string[]) => {
    const given = caps.flatMap((cap) => ['--cap', cap.slice(0, 3), cap.slice(4)])
    return run('ceph-authtool', [file, ...(name === 'mon.' ? ['--create-keyring'] : []), '--gen-key', '-n', name, ...given])
  }
  await add('mon.', 'mon allow *')
  await add('client.admin', 'mon allow *', 'osd allow *', 'mgr allow *')
  await add('osd.0', 'mon allow profile osd', 'osd allow *')
  await add('client.gateway', 'mon allow rw', 'osd allow rwx')
}

/** A daemon that ends with this process, however this process ends: its shell waits for the end of its own input. */
function startDaemon(command: readonly string[], log: string): ChildProcess {
  const script = `log="$1"; shift; "$@" >"$log" 2>&1 </dev/null & read -r _; kill -9 $!; wait`
  return spawn('/bin/sh', ['-c', script, 'sh', log, ...command], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
}

async function endDaemon(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise((resolve) => void child.once('exit', resolve))
  child.stdin?.end()
  await exited
}

async function untilAnswering(url: string, log: string): Promise<void> {
  const deadline = Date.now() + READY_MS
  for (;;) {
    try {
      await fetch(url, { signal: AbortSignal.timeout(5000) })
      return
    } catch (error) {
      if (Date.now() > deadline) {
        const said = (await readFile(log, 'utf8').catch(() => '')).slice(-2000)
        throw new Error(`Ceph's gateway did not answer within ${READY_MS / 1000} s: ${said}`, { cause: error })
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

/** Folders of test runs that were killed; their daemons have ended with them. */
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(FOLDER))) {
    const folder = path.join(tmpdir(), name)
    try {
      process.kill(Number(readFileSync(path.join(folder, 'owner'), 'utf8')), 0)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') rmSync(folder, { recursive: true, force: true })
    }
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer()
      await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => void server.close(resolve))))
  return ports
}
