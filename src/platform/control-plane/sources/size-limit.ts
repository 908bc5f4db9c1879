import { lstat, readdir } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { BuildFailure } from './source.ts'

/** What a checkout may take on disk, `.git` and submodules included. */
export const CHECKOUT_MAX_BYTES = 2 * 1024 ** 3

export interface SizeLimit {
  readonly directory: string
  readonly maxBytes: number
  readonly signal: AbortSignal
  /** Between two looks. */
  readonly pollMs?: number
}

/**
 * Does work that fills a folder, looks at the folder's size meanwhile and afterwards, and aborts the work's signal when it grows beyond.
 * @throws {BuildFailure} when it has become too large.
 */
export async function withSizeLimit<T>(limit: SizeLimit, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { directory, maxBytes, signal, pollMs = 1000 } = limit
  const done = new AbortController()
  const tooLarge = new AbortController()
  const watch = async () => {
    while (!done.signal.aborted) {
      await sleep(pollMs, undefined, { signal: done.signal }).catch(() => undefined)
      if (!done.signal.aborted && (await isLarger(directory, maxBytes))) return tooLarge.abort(failure(maxBytes))
    }
  }
  const watching = watch()
  try {
    const result = await work(AbortSignal.any([signal, tooLarge.signal]))
    if (await isLarger(directory, maxBytes)) throw failure(maxBytes)
    return result
  } finally {
    done.abort()
    await watching
  }
}

function failure(maxBytes: number): BuildFailure {
  return new BuildFailure(
    `The repository's checkout is larger than this platform allows (${describeBytes(maxBytes)}). Keep large files out of the repository.`,
  )
}

function describeBytes(bytes: number): string {
  const [size, unit] = bytes >= 1024 ** 3 ? [bytes / 1024 ** 3, 'GiB'] : [bytes / 1024 ** 2, 'MiB']
  return `${Number(size.toFixed(1))} ${unit}`
}

/** Whether the files below a folder take more than so many bytes of the disk. Links count as themselves. */
async function isLarger(directory: string, maxBytes: number): Promise<boolean> {
  let bytes = 0
  const folders = [directory]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    // What is being written comes and goes.
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const file = path.join(folder, entry.name)
      if (entry.isDirectory()) folders.push(file)
      else bytes += (await lstat(file).catch(() => ({ blocks: 0 }))).blocks * 512
      if (bytes > maxBytes) return true
    }
  }
  return false
}
