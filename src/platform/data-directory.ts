import { randomUUID } from 'node:crypto'
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { isSameProcess, processStartedAt } from './process-identity.ts'

/** Everything that the platform keeps on disk, by purpose. */
export interface DataDirectory {
  readonly root: string
  /** The embedded PostgreSQL cluster. */
  readonly database: string
  /** One folder a revision: its checkout with what was installed in it. */
  readonly builds: string
  /** The package managers' caches, shared by all builds. */
  readonly cache: string
  /** The key that secrets are encrypted with; never in the database. */
  readonly keyFile: string
  /** Names this installation in the database, over restarts. */
  readonly nodeId: string
  release(): Promise<void>
}

/**
 * Opens the data directory, makes it where it is missing, and takes its lock: two platforms on one directory would corrupt it.
 * A lock whose process is gone (a crash, a restart of the machine) is taken over.
 * @throws {Error} when another platform runs on it.
 */
export async function openDataDirectory(directory: string): Promise<DataDirectory> {
  const root = path.resolve(directory)
  await mkdir(root, { recursive: true, mode: 0o700 })
  const lockFile = path.join(root, 'platform.lock')
  await takeLock(lockFile, root)
  const folders = { database: path.join(root, 'database'), builds: path.join(root, 'builds'), cache: path.join(root, 'cache') }
  await mkdir(folders.builds, { recursive: true, mode: 0o700 })
  await mkdir(folders.cache, { recursive: true, mode: 0o700 })
  return {
    root,
    ...folders,
    keyFile: path.join(root, 'secret.key'),
    nodeId: await readOrCreate(path.join(root, 'node-id'), randomUUID),
    release: () => rm(lockFile, { force: true }),
  }
}

async function takeLock(lockFile: string, root: string): Promise<void> {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    // Written aside and linked into place, so that nobody ever reads half a lock.
    const mine = `${lockFile}.${randomUUID()}`
    await writeFile(mine, JSON.stringify({ pid: process.pid, startedAt: await processStartedAt(process.pid) }), { mode: 0o600 })
    try {
      await link(mine, lockFile)
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      await rm(mine, { force: true })
    }
    const holder = await readHolder(lockFile)
    if (holder !== null && (await isSameProcess(holder))) {
      throw new Error(`another platform (process ${holder.pid}) uses ${root}: stop it, or choose another --data-dir`)
    }
    await removeStaleLock(lockFile)
  }
  throw new Error(`could not take the lock ${lockFile}: remove it if no platform runs on ${root}`)
}

/**
 * Takes a stale lock away. Of two platforms that find the same one at once only one gets it by this rename; the other may have caught the
 * first's fresh lock, and puts it back.
 */
async function removeStaleLock(lockFile: string): Promise<void> {
  const aside = `${lockFile}.${randomUUID()}`
  try {
    await rename(lockFile, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  const holder = await readHolder(aside)
  if (holder !== null && (await isSameProcess(holder))) {
    await link(aside, lockFile).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  }
  await rm(aside, { force: true })
}

async function readHolder(lockFile: string): Promise<{ pid: number; startedAt: string } | null> {
  try {
    const holder = JSON.parse(await readFile(lockFile, 'utf8')) as { pid?: unknown; startedAt?: unknown }
    return typeof holder.pid === 'number' && typeof holder.startedAt === 'string' ? { pid: holder.pid, startedAt: holder.startedAt } : null
  } catch {
    // Gone meanwhile, or not ours.
    return null
  }
}

/** The content of a small file that is written once; a crash while writing leaves either nothing or the whole. */
async function readOrCreate(file: string, create: () => string): Promise<string> {
  try {
    const content = (await readFile(file, 'utf8')).trim()
    if (content !== '') return content
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const content = create()
  const fresh = `${file}.${randomUUID()}`
  await writeFile(fresh, content, { mode: 0o600, flush: true })
  await rename(fresh, file)
  return content
}
