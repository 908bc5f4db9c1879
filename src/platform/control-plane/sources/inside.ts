import { constants } from 'node:fs'
import { open, realpath } from 'node:fs/promises'
import path from 'node:path'

/** True when the path is the folder itself or lies in it; both must be real paths. */
export function isInside(folder: string, file: string): boolean {
  const relative = path.relative(folder, file)
  return relative === '' || (relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative))
}

/**
 * The real path of something that a repository names, or why it is none: links may lead about in the checkout, never out of it.
 */
export async function resolveInside(root: string, file: string): Promise<{ path: string } | { fault: 'missing' | 'outside' }> {
  const top = await realpath(root)
  if (!isInside(top, path.resolve(top, file))) return { fault: 'outside' }
  try {
    const real = await realpath(path.resolve(top, file))
    return isInside(top, real) ? { path: real } : { fault: 'outside' }
  } catch {
    return { fault: 'missing' }
  }
}

/** A text file of at most `limit` bytes; null when it is longer, or no plain file. */
export async function readBounded(file: string, limit: number): Promise<string | null> {
  // Not to wait for a writer where a repository or its build has put a pipe.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const { size } = await handle.stat().then((stats) => (stats.isFile() ? stats : { size: Number.POSITIVE_INFINITY }))
    return size > limit ? null : await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}
