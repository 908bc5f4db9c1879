import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

export interface GitRepository {
  readonly directory: string
  /** Runs git in it and returns what it printed. */
  git(...args: string[]): string
  write(files: Record<string, string>): void
  /** Writes files, commits everything, returns the commit's SHA. */
  commit(files: Record<string, string>, message?: string): string
}

/** A real repository with a branch `main`, whatever git is configured to on this machine. */
export function createGitRepository(directory: string): GitRepository {
  mkdirSync(directory, { recursive: true })
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', '-c', 'protocol.file.allow=always', ...args], {
      cwd: directory,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
    }).trim()
  const write = (files: Record<string, string>) => {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
      writeFileSync(path.join(directory, name), content)
    }
  }
  git('init', '--quiet', '--initial-branch=main')
  return {
    directory,
    git,
    write,
    commit(files, message = 'change') {
      write(files)
      git('add', '--all')
      git('commit', '--quiet', '--allow-empty', '-m', message)
      return git('rev-parse', 'HEAD')
    },
  }
}
