import { describe, expect, it, vi } from 'vitest'
import type { RevisionAnswer } from '../../../src/contract/answers.ts'
import { GithubFailure } from '../../../src/action/github/failure.ts'
import type { Github, PullRequest } from '../../../src/action/github/github.ts'
import { judge } from '../../../src/action/preview/judge.ts'
import { httpFailure } from '../../support/request-failure.ts'
import { deployment, DEPLOYMENT_ID, revision } from '../support/answers.ts'
import { fakeDeps } from '../support/deps.ts'

const DAY = 86_400_000
const NOW = Date.UTC(2026, 0, 1)
const TTL = 7 * DAY
const signal = new AbortController().signal
const daysAgo = (days: number) => new Date(NOW - days * DAY).toISOString()

function judged({
  state = 'open',
  revisions = [],
  createdAt = null,
  ttlMs = TTL,
  getPullRequest = vi.fn(async () => ({ number: 7, state }) as PullRequest),
  listRevisions = vi.fn(async () => revisions),
}: {
  state?: 'open' | 'closed'
  revisions?: RevisionAnswer[]
  createdAt?: string | null
  ttlMs?: number
  getPullRequest?: Github['getPullRequest']
  listRevisions?: () => Promise<RevisionAnswer[]>
}) {
  const candidate = { deployment: deployment({ created_at: createdAt }), name: 'agent-pr-7', pullRequest: 7 }
  return judge({ candidate, ttlMs, github: { getPullRequest }, deadline: { signal }, deps: fakeDeps({ listRevisions }) })
}

describe('whether a preview has to go', () => {
  it.each([
    ['just made', { revisions: [revision('DEPLOYED', { created_at: daysAgo(0) })] }, 'kept', '0 s'],
    ['from a clock that is ahead', { revisions: [revision('DEPLOYED', { created_at: daysAgo(-1) })] }, 'kept', '0 s'],
    ['an hour old', { revisions: [revision('DEPLOYED', { created_at: daysAgo(1 / 24) })] }, 'kept', '1 h'],
    ['almost two days old', { revisions: [revision('DEPLOYED', { created_at: daysAgo(47.5 / 24) })] }, 'kept', '47 h 30 min'],
    ['two days old', { revisions: [revision('DEPLOYED', { created_at: daysAgo(2) })] }, 'kept', '2 days'],
    ['exactly as old as may be', { revisions: [revision('DEPLOYED', { created_at: daysAgo(7) })] }, 'kept', '7 days'],
    ['not there, and the deployment is a day old', { createdAt: daysAgo(1) }, 'kept', '24 h'],
    [
      'without a time, and the deployment is three days old',
      { createdAt: daysAgo(3), revisions: [revision('DEPLOYED', { created_at: null })] },
      'kept',
      '3 days',
    ],
  ] as const)('is no when the last revision is %s', async (_, options, verdict, age) => {
    const why = `the pull request is open, and the last revision is ${age} old`
    expect(await judged({ ...options, revisions: 'revisions' in options ? [...options.revisions] : [] })).toEqual({
      verdict,
      why,
    })
  })

  it('is yes a millisecond later, and says both ages', async () => {
    const revisions = [revision('DEPLOYED', { created_at: new Date(NOW - TTL - 1).toISOString() })]
    const why = 'the last revision is 7 days old, and preview-ttl is 7 days'
    expect(await judged({ revisions })).toEqual({ verdict: 'to remove', why })
    const short = await judged({ revisions, ttlMs: 5_400_000 })
    expect(short.why).toBe('the last revision is 7 days old, and preview-ttl is 1 h 30 min')
  })

  it.each([
    ['neither has a time', []],
    ['its time cannot be read', [revision('DEPLOYED', { created_at: 'yesterday' })]],
  ])('is no when %s', async (_, revisions) => {
    const why = 'the pull request is open, and the age of the last revision is not known'
    expect(await judged({ revisions })).toEqual({ verdict: 'kept', why })
  })

  it('asks for the last revision only, and for none of a closed pull request', async () => {
    const listRevisions = vi.fn(async () => [])
    await judged({ listRevisions })
    expect(listRevisions.mock.calls).toEqual([[{ deploymentId: DEPLOYMENT_ID, max: 1, signal }]])
    expect(await judged({ state: 'closed', listRevisions })).toEqual({ verdict: 'to remove', why: 'the pull request is closed' })
    expect(listRevisions).toHaveBeenCalledTimes(1)
  })

  it('is not known when GitHub does not know the pull request', async () => {
    const getPullRequest = vi.fn(async () => null)
    expect(await judged({ getPullRequest })).toEqual({ verdict: 'unproven', why: 'this repository has no pull request 7' })
    expect(getPullRequest.mock.calls).toEqual([[7, signal]])
  })

  it('fails when GitHub or the control plane does not answer, and says what was being done', async () => {
    const request = httpFailure(502, { path: '/repos/acme/agents/pulls/7' })
    const failure = new GithubFailure({ operation: 'reading a pull request', request, permission: null })
    await expect(judged({ getPullRequest: () => Promise.reject(failure) })).rejects.toMatchObject({
      code: 'E_UNAVAILABLE',
      message: 'The sweep failed: GitHub: reading a pull request failed: GET /repos/acme/agents/pulls/7 answered 502.',
      cause: failure,
    })
    const refused = httpFailure(403, { path: '/v2/deployments/x/revisions' })
    await expect(judged({ listRevisions: () => Promise.reject(refused) })).rejects.toMatchObject({
      code: 'E_AUTH',
      message: "Reading the last revision of 'agent-pr-7' failed: GET /v2/deployments/x/revisions answered 403.",
      cause: refused,
    })
  })
})
