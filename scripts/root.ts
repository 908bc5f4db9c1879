import { join } from 'node:path'

/** The repository's root, so that every script works from any directory. */
export const ROOT = join(import.meta.dirname, '..')

/** A path inside the repository. */
export function inRoot(...parts: string[]): string {
  return join(ROOT, ...parts)
}
