import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createGitRepository } from './git-repository.ts'

it('makes a repository that can be cloned at a branch and at a tag', async () => {
  const repository = await createGitRepository({ files: { 'langgraph.json': '{}', 'src/a.txt': '1' } })
  const clones = await mkdtemp(join(tmpdir(), 'clones-'))
  try {
    const first = await repository.head()
    await repository.tag('v1')
    await repository.branch('next')
    const second = await repository.commit({ 'src/a.txt': '2', 'langgraph.json': null })
    expect(second).toMatch(/^[0-9a-f]{40}$/)
    const clone = (ref: string) => {
      const path = join(clones, ref)
      execFileSync('git', ['clone', '--quiet', '--branch', ref, repository.url, path], { stdio: 'pipe' })
      return { path, head: execFileSync('git', ['rev-parse', 'HEAD'], { cwd: path }).toString().trim() }
    }
    expect(clone('v1').head).toBe(first)
    const next = clone('next')
    expect(next.head).toBe(second)
    expect(existsSync(join(next.path, 'langgraph.json'))).toBe(false)
  } finally {
    await rm(clones, { recursive: true })
    await repository.dispose()
  }
  expect(existsSync(repository.path)).toBe(false)
})
