import { readdirSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { inRoot } from './root.ts'

/** The files under a directory, as sorted paths relative to it, with `/` between the parts. A missing directory has none. */
export function listFiles(directory: string): string[] {
  return entries(directory)
    .map((path) => relative(directory, path).split(sep).join('/'))
    .toSorted()
}

/** The files under one of the repository's folders, as paths relative to the root. */
export function projectFiles(folder: string): string[] {
  return listFiles(inRoot(folder)).map((path) => `${folder}/${path}`)
}

function entries(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.includes(`${sep}node_modules`))
      .map((entry) => join(entry.parentPath, entry.name))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
