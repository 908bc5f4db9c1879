import { describe, expect, it } from 'vitest'
import { pullRequestOfEvent } from '../../../src/action/preview/event.ts'
import { githubContext } from '../support/github.ts'

const event = (payload: Record<string, unknown>, eventName = 'pull_request') =>
  pullRequestOfEvent(githubContext({ eventName, payload }))

describe('pullRequestOfEvent', () => {
  it.each([
    ['its head', { pull_request: { number: 7, state: 'open', head: { sha: 'abc' } } }, 'open', 'abc', false],
    ['no head', { pull_request: { number: 7, state: 'open' } }, 'open', undefined, false],
    ['that it was closed', { action: 'closed', pull_request: { number: 7, state: 'closed' } }, 'closed', undefined, true],
    [
      'that it is a comment on it',
      { action: 'closed', issue: { number: 7, state: 'closed', pull_request: {} } },
      'closed',
      undefined,
      true,
    ],
  ] as const)('reads the pull request of an event that tells %s', (_, payload, state, headSha, closing) => {
    expect(event(payload)).toEqual({ number: 7, state, headSha, closing })
  })

  it('takes no other event for the closing of a pull request', () => {
    const payload = { action: 'closed', pull_request: { number: 7, state: 'closed' } }
    expect(event(payload, 'workflow_run')).toMatchObject({ closing: false })
    expect(event({ ...payload, action: 'edited' })).toMatchObject({ closing: false })
  })
})
