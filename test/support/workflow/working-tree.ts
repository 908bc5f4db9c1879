import { execFile } from 'node:child_process'
import { cp, mkdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { REPOSITORY_ROOT } from '../runner.ts'

const run = promisify(execFile)

/** Copies what a checkout of this repository would have, as it stands now; its packages are those that are installed here. */
export async function copyWorkingTree(target: string): Promise<void> {
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const { stdout } = await run('git', list, { cwd: REPOSITORY_ROOT, maxBuffer: 64 * 1024 * 1024 })
  for (const file of stdout.split('\0').filter((name) => name !== '')) {
    await mkdir(join(target, dirname(file)), { recursive: true })
    await cp(join(REPOSITORY_ROOT, file), join(target, file)).catch((error: NodeJS.ErrnoException) => {
      // Removed, and not committed yet.
      if (error.code !== 'ENOENT') throw error
    })
  }
  await symlink(join(REPOSITORY_ROOT, 'node_modules'), join(target, 'node_modules'))
}
