import { describe, expect, it } from 'vitest'
import { readGithubContext } from '../../../src/action/github/context.ts'
import { isFromFork, sourceOfEvent } from '../../../src/action/github/event.ts'
import { githubContext as context } from '../support/github.ts'

const SHA = 'a'.repeat(40)
const HEAD = 'b'.repeat(40)
const REPO = 'https://github.com/acme/agents'

function pullRequest(fullName: string | null) {
  return { pull_request: { head: { ref: 'feature/x', sha: HEAD, repo: fullName === null ? null : { full_name: fullName } } } }
}

describe('sourceOfEvent', () => {
  it.each([
    ['a push to a branch', { eventName: 'push', ref: 'refs/heads/feature/x' }, { ref: 'feature/x', commit: SHA }],
    ['a push of a tag', { eventName: 'push', ref: 'refs/tags/v1' }, { ref: 'refs/tags/v1', commit: SHA }],
    [
      'a push of an annotated tag',
      { eventName: 'push', ref: 'refs/tags/v1', payload: { after: SHA, head_commit: { id: HEAD } } },
      { ref: 'refs/tags/v1', commit: HEAD },
    ],
    [
      'a release',
      { eventName: 'release', ref: 'refs/heads/main', payload: { release: { tag_name: 'v2' } } },
      { ref: 'refs/tags/v2', commit: SHA },
    ],
    [
      'a pull request',
      { eventName: 'pull_request', ref: 'refs/pull/7/merge', payload: pullRequest('acme/agents') },
      { ref: 'feature/x', commit: HEAD },
    ],
    [
      'a pull request from its base',
      { eventName: 'pull_request_target', ref: 'refs/heads/main', payload: pullRequest('acme/agents') },
      { ref: 'feature/x', commit: HEAD },
    ],
    ['a start by hand', { eventName: 'workflow_dispatch', ref: 'refs/heads/main' }, { ref: 'main', commit: SHA }],
    ['a schedule', { eventName: 'schedule', ref: 'refs/heads/main' }, { ref: 'main', commit: SHA }],
  ])('%s', (_, changes, expected) => {
    expect(sourceOfEvent(context(changes))).toEqual({ repoUrl: REPO, ...expected })
  })

  it.each([
    ['a pull request without a head', { eventName: 'pull_request', payload: {} }],
    ['a pull request whose head repository is gone', { eventName: 'pull_request', payload: pullRequest(null) }],
    ['a release without a tag', { eventName: 'release', payload: { release: {} } }],
    ['a ref that is neither branch nor tag', { eventName: 'merge_group', ref: 'refs/pull/7/merge' }],
    ['no ref', { eventName: 'repository_dispatch', ref: '' }],
  ])('%s has none, and says why', (_, changes) => {
    const source = sourceOfEvent(context(changes))
    expect(source.ref).toBeUndefined()
    expect(source.problem).toMatch(/\w+/)
  })

  it('does not take anything else for a commit', () => {
    expect(sourceOfEvent(context({ eventName: 'push', ref: 'refs/heads/main', sha: 'HEAD' }))).not.toHaveProperty('commit')
  })

  it('points at the fork for a pull request from one', () => {
    const fork = context({ eventName: 'pull_request', payload: pullRequest('mallory/agents') })
    expect(sourceOfEvent(fork).repoUrl).toBe('https://github.com/mallory/agents')
    expect(isFromFork(fork)).toBe(true)
    expect(isFromFork(context({ eventName: 'pull_request', payload: pullRequest('Acme/Agents') }))).toBe(false)
  })
})

describe('readGithubContext', () => {
  it('lives with an environment that is empty and a payload that cannot be read', () => {
    const broken = () => {
      throw new Error('ENOENT')
    }
    expect(readGithubContext({}, broken).serverUrl).toBe('https://github.com')
    expect(readGithubContext({ GITHUB_EVENT_PATH: '/nowhere' }, broken).payload).toEqual({})
    expect(readGithubContext({ GITHUB_EVENT_PATH: '/x' }, () => '[1]').payload).toEqual({})
  })
})
