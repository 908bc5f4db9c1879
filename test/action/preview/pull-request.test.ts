import { describe, expect, it, vi } from 'vitest'
import { deadlineOf } from '../../../src/client/deadline.ts'
import { GithubFailure } from '../../../src/action/github/failure.ts'
import type { Github, PullRequest } from '../../../src/action/github/github.ts'
import { readPullRequest } from '../../../src/action/preview/pull-request.ts'
import type { PreviewWish } from '../../../src/action/preview/wish.ts'
import { requestFailure } from '../../support/request-failure.ts'
import { fakeDeps } from '../support/deps.ts'

const wish: PreviewWish = {
  baseName: 'agent',
  pullRequest: 7,
  eventState: 'closed',
  headSha: 'abc',
  repositories: [],
  closing: false,
}

function scene(getPullRequest?: Github['getPullRequest']) {
  const deps = fakeDeps()
  const github = getPullRequest === undefined ? undefined : ({ getPullRequest } as Github)
  return { ...deps, github }
}

const doubtful = (why: string) =>
  `Whether the pull request 7 is open could not be read from GitHub (${why}): the event says closed.`

describe('the state of a pull request', () => {
  it('is that of GitHub, which has a minute to tell it', async () => {
    const getPullRequest = vi.fn<Github['getPullRequest']>(
      async () => ({ number: 7, state: 'open', headSha: 'def' }) as PullRequest,
    )
    const deps = scene(getPullRequest)
    expect(await readPullRequest(wish, deps)).toEqual({ state: 'open', headSha: 'def' })
    expect([deps.warnings, deps.journal.notes]).toEqual([[], []])
    const [number, signal] = getPullRequest.mock.calls[0] ?? []
    expect([number, deadlineOf(signal!)]).toEqual([7, deps.effects.now() + 60_000])
    // Nothing listens to the cancellation of the step any more.
    deps.abort()
    expect(signal?.aborted).toBe(false)
  })

  it.each<[string, Github['getPullRequest'] | undefined, string]>([
    ['there is no token', undefined, 'there is no github-token'],
    ['GitHub does not know it', async () => null, 'it knows no such pull request'],
    ['GitHub does not answer', () => Promise.reject(new Error('the network is down')), 'the network is down'],
    ['something odd is thrown', () => Promise.reject('odd' as unknown as Error), 'odd'],
  ])('is that of the event when %s, with one warning and one note', async (_, getPullRequest, why) => {
    const deps = scene(getPullRequest)
    expect(await readPullRequest(wish, deps)).toEqual({ state: 'closed', headSha: undefined })
    expect([deps.warnings, deps.journal.notes]).toEqual([[doubtful(why)], [doubtful(why)]])
    await readPullRequest(wish, deps)
    expect([deps.warnings, deps.journal.notes]).toEqual([[doubtful(why)], [doubtful(why)]])
  })

  it('is not asked for again once the step is cancelled', async () => {
    const deps = scene(async (_, signal) => {
      deps.abort()
      expect(signal.aborted).toBe(true)
      const request = requestFailure({ kind: 'cancelled', path: '/repos/acme/agents/pulls/7', summary: 'was cancelled' })
      throw new GithubFailure({ operation: 'reading a pull request', request, permission: null })
    })
    await expect(readPullRequest(wish, deps)).rejects.toMatchObject({
      code: 'E_CANCELLED',
      message: expect.stringMatching(
        /^Reading the pull request 7 failed: GitHub: reading a pull request failed: GET .* was cancelled\.$/,
      ),
    })
    expect([deps.warnings, deps.journal.notes]).toEqual([[], []])
  })
})
