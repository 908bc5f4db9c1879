import { describe, expect, it } from 'vitest'
import { pullRequestNumberOf } from '../../../src/action/github/pull-request.ts'
import { workflowEvent } from '../../support/events.ts'
import { githubContext } from '../support/github.ts'

const numberOf = (payload: unknown): number | undefined =>
  pullRequestNumberOf(githubContext({ payload: payload as Record<string, unknown> }))

describe('the pull request of an event', () => {
  it.each([
    ['a pull request', workflowEvent('pull-request').payload, 7],
    ['a comment on one', { issue: { number: 8, pull_request: { url: 'x' } }, comment: {} }, 8],
    ['a comment on an issue', { issue: { number: 8 }, comment: {} }, undefined],
    ['a workflow run of one', { workflow_run: { pull_requests: [{ number: 9 }] } }, 9],
    ['a workflow run of several', { workflow_run: { pull_requests: [{ number: 9 }, { number: 10 }] } }, undefined],
    ['a workflow run of a fork', { workflow_run: { pull_requests: [] } }, undefined],
    ['a push', workflowEvent('push').payload, undefined],
    ['a release', workflowEvent('release').payload, undefined],
    ['nothing', {}, undefined],
    ['nonsense', { pull_request: { number: '7; rm -rf /' } }, undefined],
  ])('of %s', (_, payload, expected) => {
    expect(numberOf(payload)).toBe(expected)
  })
})
