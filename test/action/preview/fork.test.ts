import { describe, expect, it } from 'vitest'
import { reasonToSkip } from '../../../src/action/preview/fork.ts'
import { githubContext } from '../support/github.ts'

const event = (head: unknown, changes: Record<string, unknown> = {}, eventName = 'pull_request') =>
  githubContext({
    eventName,
    payload: { sender: { login: 'octocat' }, pull_request: { number: 7, state: 'open', head }, ...changes },
  })
const own = { ref: 'x', sha: 'b'.repeat(40), repo: { full_name: 'acme/agents' } }
const fork = { ...own, repo: { full_name: 'mallory/agents' } }
const noKey = { mode: 'preview', 'api-key': '' }

describe('reasonToSkip', () => {
  it.each([
    ['from a fork', noKey, event(fork), /comes from a fork/],
    ['from a fork, closed', { ...noKey, mode: 'teardown' }, event(fork, { action: 'closed' }), /comes from a fork/],
    ['from a fork that has been deleted', noKey, event({ ...own, repo: null }), /comes from a fork/],
    [
      'of Dependabot, on any event',
      noKey,
      event(own, { sender: { login: 'dependabot[bot]' } }, 'pull_request_target'),
      /is of Dep/,
    ],
    ['of Dependabot', noKey, event(own, { sender: { login: 'dependabot[bot]' } }), /is of Dependabot/],
  ])('knows that there are no secrets for a pull request %s', (_, raw, context, says) => {
    expect(reasonToSkip(raw, context)).toMatch(says)
  })

  it.each([
    ['a key is there', { ...noKey, 'api-key': 'key' }, event(fork)],
    ['it is a pull request of this repository, whose secret was forgotten', noKey, event(own)],
    ['the event gives forks their secrets, and the key was forgotten', noKey, event(fork, {}, 'pull_request_target')],
    ['another mode needs the key', { ...noKey, mode: 'deploy' }, event(fork)],
    ['a sweep needs the key', { ...noKey, mode: 'sweep' }, event(fork)],
    ['the event is not one of a pull request', noKey, event(fork, {}, 'push')],
    ['the payload is empty', noKey, githubContext({ eventName: 'pull_request' })],
  ])('says nothing when %s', (_, raw, context) => {
    expect(reasonToSkip(raw, context)).toBeUndefined()
  })
})
