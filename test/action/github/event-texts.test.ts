import { describe, expect, it } from 'vitest'
import { isFromFork, sourceOfEvent } from '../../../src/action/github/event.ts'
import { pullRequestNumberOf } from '../../../src/action/github/pull-request.ts'
import { githubContext } from '../support/github.ts'

const HEX = 'b'.repeat(40)
const HERE = { repoUrl: 'https://github.com/acme/agents' }

function head(fullName: string | null) {
  return { pull_request: { head: { ref: 'x', sha: HEX, repo: fullName === null ? null : { full_name: fullName } } } }
}

describe('an event without a source', () => {
  it.each([
    ['pull_request', {}, 'the payload of the pull_request event has no head branch', HERE],
    ['pull_request_target', {}, 'the payload of the pull_request_target event has no head branch', HERE],
    ['pull_request', head(null), 'the head repository of the pull request has been deleted', HERE],
    ['release', { release: { tag_name: '' } }, 'the payload of the release event has no tag name', HERE],
    ['merge_group', {}, "the event merge_group has no branch or tag (GITHUB_REF is 'refs/pull/7/merge')", HERE],
    ['', {}, "the event (none) has no branch or tag (GITHUB_REF is 'refs/pull/7/merge')", HERE],
  ])('%s says: %#', (eventName, payload, problem, here) => {
    expect(sourceOfEvent(githubContext({ eventName, payload, ref: 'refs/pull/7/merge' }))).toEqual({ ...here, problem })
  })

  it('outside a repository has no address either', () => {
    const source = sourceOfEvent(githubContext({ repository: '', sha: HEX }))
    expect(source).toStrictEqual({ ref: 'main', commit: HEX })
  })
})

describe('the commit of an event', () => {
  it('is only that of a push in head_commit', () => {
    const payload = { head_commit: { id: HEX } }
    const ref = 'refs/heads/main'
    expect(sourceOfEvent(githubContext({ eventName: 'workflow_dispatch', ref, payload })).commit).toBe('a'.repeat(40))
    expect(sourceOfEvent(githubContext({ eventName: 'push', ref, payload })).commit).toBe(HEX)
  })

  it.each([
    [40, true],
    [64, true],
    [39, false],
    [41, false],
    [63, false],
    [65, false],
  ])('has 40 or 64 digits: %s', (length, taken) => {
    const sha = '0a9f'.repeat(20).slice(0, length)
    expect(sourceOfEvent(githubContext({ sha })).commit).toBe(taken ? sha : undefined)
  })

  it.each([`${HEX} `, ` ${HEX}`, 'B'.repeat(40), `${HEX}${'z'.repeat(24)}`, `z${HEX}`])('is not %j', (sha) => {
    expect(sourceOfEvent(githubContext({ sha }))).not.toHaveProperty('commit')
  })
})

describe('a fork', () => {
  it.each([
    ['pull_request', head('mallory/agents'), true],
    ['pull_request_target', head('mallory/agents'), true],
    ['push', head('mallory/agents'), false],
    ['pull_request', head('ACME/agents'), false],
    ['pull_request', head(null), false],
    ['pull_request', {}, false],
  ])('by a %s: %#', (eventName, payload, expected) => {
    expect(isFromFork(githubContext({ eventName, payload }))).toBe(expected)
  })
})

describe('the number of a pull request', () => {
  it.each([
    [{ pull_request: { number: 1 } }, 1],
    [{ pull_request: { number: 0 } }, undefined],
    [{ pull_request: { number: 1.5 } }, undefined],
    [{ issue: { number: 0, pull_request: {} } }, undefined],
    [{ pull_request: { number: 0 }, issue: { number: 3, pull_request: {} } }, 3],
    [{ workflow_run: { pull_requests: [{ number: 0 }] } }, undefined],
  ])('of %j', (payload, expected) => {
    expect(pullRequestNumberOf({ payload })).toBe(expected)
  })
})
