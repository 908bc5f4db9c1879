import { execFile } from 'node:child_process'
import { cp, mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A real git repository in a temporary folder. */
export type GitRepository = {
  path: string
  /** `file://…`, to clone from. */
  url: string
  /** Writes the files (null removes one), commits all changes and returns the new commit's SHA. */
  commit: (files: Readonly<Record<string, string | null>>, message?: string) => Promise<string>
  tag: (name: string) => Promise<void>
  /** Moves a tag to the current commit. */
  retag: (name: string) => Promise<void>
  /** Makes the branch at the current commit and moves to it. */
  branch: (name: string) => Promise<void>
  checkout: (ref: string) => Promise<void>
  head: () => Promise<string>
  dispose: () => Promise<void>
}

export type RepositoryContent = { from?: string; files?: Readonly<Record<string, string>> }

/** Makes a repository whose first commit, on `main`, holds the folder `from` (without node_modules) and `files`. */
export async function createGitRepository(options: RepositoryContent = {}): Promise<GitRepository> {
  const path = await mkdtemp(join(tmpdir(), 'agent-repository-'))
  const git = async (...args: string[]) => (await run('git', args, { cwd: path, env: gitEnvironment() })).stdout.trim()
  const commit: GitRepository['commit'] = async (files, message = 'Change the agent') => {
    for (const [name, content] of Object.entries(files)) {
      if (content === null) await rm(join(path, name))
      else {
        await mkdir(dirname(join(path, name)), { recursive: true })
        await writeFile(join(path, name), content)
      }
    }
    await git('add', '--all')
    await git('commit', '--quiet', '--allow-empty', '--message', message)
    return git('rev-parse', 'HEAD')
  }
  await git('init', '--quiet', '--initial-branch', 'main')
  if (options.from !== undefined) {
    await cp(options.from, path, { recursive: true, filter: (source) => !source.split(/[\\/]/).includes('node_modules') })
  }
  await commit(options.files ?? {}, 'Add the agent')
  return {
    path,
    url: pathToFileURL(path).href,
    commit,
    tag: async (name) => void (await git('tag', name)),
    retag: async (name) => void (await git('tag', '--force', name)),
    branch: async (name) => void (await git('checkout', '--quiet', '-b', name)),
    checkout: async (ref) => void (await git('checkout', '--quiet', ref)),
    head: () => git('rev-parse', 'HEAD'),
    dispose: () => rm(path, { recursive: true, force: true }),
  }
}

/** The machine's own git configuration must not matter: no hooks, no signing, no templates. */
function gitEnvironment(): NodeJS.ProcessEnv {
  const identity = { NAME: 'Test', EMAIL: 'test@example.com', DATE: '2026-01-01T00:00:00Z' }
  const roles = ['AUTHOR', 'COMMITTER']
  const fields = roles.flatMap((role) => Object.entries(identity).map(([name, value]) => [`GIT_${role}_${name}`, value]))
  return {
    PATH: process.env['PATH'],
    HOME: tmpdir(),
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    ...Object.fromEntries(fields),
  }
}
