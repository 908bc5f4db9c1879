import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { resolveGitHead } from '../../src/platform/control-plane/sources/git.ts'
import { GitTokensError, parseGitTokens } from '../../src/platform/git-tokens.ts'
import { type PlatformProcess, reach, startPlatformProcess } from './lifecycle-support/platform-process.ts'
import { serveGit, type GitServer } from './lifecycle-support/git-server.ts'
import { until } from './support/processes.ts'
import { createGitRepository, type GitRepository } from './support/git-repository.ts'

describe('PLATFORM_GIT_TOKENS', () => {
  test('the longest beginning that fits wins, at the borders of path segments', () => {
    const { tokenFor } = parseGitTokens(`
      git.example.com=whole-host
      https://git.example.com/acme=acme==
      https://git.example.com/acme/app.git=app , https://git.example.com:8443=other-port
      # a comment=nothing
    `)
    expect(tokenFor('https://git.example.com/else/where')).toBe('whole-host')
    expect(tokenFor('https://git.example.com/acme/agent.git')).toBe('acme==')
    expect(tokenFor('https://GIT.example.com/acme/app/')).toBe('app')
    expect(tokenFor('https://git.example.com/acme-private/x')).toBe('whole-host')
    expect(tokenFor('https://git.example.com:8443/acme/app')).toBe('other-port')
  })

  test('a token goes nowhere but to its own origin', () => {
    const { tokenFor } = parseGitTokens('git.example.com=secret\nhttp://127.0.0.1:3000=local')
    const others = ['http://git.example.com/a/b', 'https://git.example.com.evil.org/a/b', 'https://evil.org/git.example.com']
    expect([...others, 'not an address', 'file:///git.example.com'].map(tokenFor)).toEqual(Array(5).fill(undefined))
    expect(tokenFor('http://127.0.0.1:3000/a/b')).toBe('local')
    expect(tokenFor('http://127.0.0.1:3001/a/b')).toBeUndefined()
  })

  test.each(['', undefined, '\n , \n'])('nothing is no token', (text) => {
    expect(parseGitTokens(text).tokenFor('https://git.example.com/a')).toBeUndefined()
  })

  test.each([
    ['sec-ret', 'should look like host=token'],
    ['=sec-ret', 'should look like host=token'],
    ['git.example.com=', 'names no token for git.example.com'],
    ['http://git.example.com=sec-ret', 'only https is allowed'],
    ['ssh://git.example.com=sec-ret', 'only https is allowed'],
    ['https://user@git.example.com=sec-ret', 'nothing but a host and a path'],
    ['https://=sec-ret', 'no host and no address'],
    ['git.example.com=sec-ret other', 'spaces or control characters'],
  ])('refuses %j, and tells no token', (text, message) => {
    const parse = () => parseGitTokens(`good.example.com=x\n${text}`)
    expect(parse).toThrow(GitTokensError)
    expect(parse).toThrow(message)
    expect(parse).toThrow('entry 2')
    try {
      parse()
    } catch (error) {
      expect((error as Error).message).not.toContain('sec-ret')
    }
  })
})

describe('a private repository', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'platform-private-'))
  let repository: GitRepository
  let server: GitServer
  let platform: PlatformProcess | undefined

  beforeAll(async () => {
    repository = createGitRepository(path.join(folder, 'team', 'agent'))
    repository.commit({ 'langgraph.json': '{}' })
    server = await serveGit({ root: folder, token: 't0ken-of-the-team' })
  })

  afterAll(async () => {
    await platform?.stop()
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test('is watched with its token, and refused without', async () => {
    const repoUrl = `${server.url}/team/agent`
    const { signal } = new AbortController()
    const token = parseGitTokens(`${server.url}/team=t0ken-of-the-team`).tokenFor(repoUrl)
    expect(await resolveGitHead({ repoUrl, ref: 'main', token }, { signal })).toBe(repository.git('rev-parse', 'HEAD'))
    await expect(resolveGitHead({ repoUrl, ref: 'main' }, { signal })).rejects.toThrow('no token was given')
    await expect(resolveGitHead({ repoUrl, ref: 'main', token: 'wrong' }, { signal })).rejects.toThrow('does not open it')
  })

  test('is cloned through the whole platform, and the token shows nowhere', async () => {
    platform = await startPlatformProcess(path.join(folder, 'data'), {
      PLATFORM_GIT_TOKENS: `${server.url}/team=t0ken-of-the-team`,
      PLATFORM_TIME_SCALE: '100',
    })
    const deployment = await platform.ask<{ id: string; latest_revision_id: string; url: string }>('/v2/deployments', {
      method: 'POST',
      body: {
        name: 'private',
        source: 'git_host',
        source_config: { repo_url: `${server.url}/team/agent`, build_on_push: true },
        source_revision_config: { repo_ref: 'main' },
        secrets: [],
      },
    })
    // The clone works: what fails is the empty configuration in it.
    const revision = await reach(platform, deployment as never, ['BUILD_FAILED'])
    const logs = await platform.ask<object>(`/v2/deployments/${deployment.id}/revisions/${revision.id}/logs?type=build&limit=100`)
    expect(JSON.stringify(logs)).toContain('Checked out commit')
    expect(JSON.stringify([revision, logs])).toContain('graphs')
    for (const text of [JSON.stringify([revision, logs, deployment]), platform.log()]) {
      expect(text).not.toContain('t0ken-of-the-team')
      expect(text).not.toContain(Buffer.from('x-access-token:t0ken-of-the-team').toString('base64'))
    }
    // A push is noticed, with the same token.
    const list = () => platform?.ask<{ resources: { id: string }[] }>(`/v2/deployments/${deployment.id}/revisions`)
    expect((await list())?.resources).toHaveLength(1)
    repository.commit({ 'langgraph.json': '{"graphs":{}}' })
    await until(async () => (await list())?.resources.length === 2, 30_000)
    const found = await new Promise<string>((resolve) =>
      execFile('grep', ['-rl', 't0ken-of-the-team', path.join(folder, 'data', 'builds')], (_error, stdout) => resolve(stdout)),
    )
    expect(found, 'not in the checkout either').toBe('')
  })
})
