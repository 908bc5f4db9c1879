import { describe, expect, it } from 'vitest'
import type { RevisionAnswer } from '../../src/contract/answers.ts'
import { follow, type FollowOptions } from '../../src/action/follow.ts'
import { httpFailure, requestFailure } from '../support/request-failure.ts'
import { revision } from './support/answers.ts'
import { actionFailureOf } from './support/caught.ts'
import { fakeEffects } from './support/effects.ts'

type Answer = string | Error | RevisionAnswer

/** Follows a revision that answers with these statuses, one each time it is asked; the last one for ever. */
function scene(answers: readonly Answer[], changes: Partial<FollowOptions> = {}) {
  const effects = fakeEffects()
  const start = effects.now()
  const lines: string[] = []
  const seen: { status: string; at: number }[] = []
  let asked = 0
  let rateLimitMs = 0
  const followed = follow({
    getRevision: async () => {
      const answer = answers[Math.min(asked++, answers.length - 1)]!
      if (answer instanceof Error) throw answer
      return typeof answer === 'string' ? revision(answer) : answer
    },
    expected: undefined,
    timeoutMs: 600_000,
    signal: new AbortController().signal,
    effects,
    info: (line) => lines.push(line),
    onStatus: ({ status }, at) => seen.push({ status, at: at - start }),
    onRateLimit: (waited) => {
      rateLimitMs += waited
    },
    ...changes,
  })
  return {
    followed,
    effects,
    lines,
    seen,
    asked: () => asked,
    rateLimitMs: () => rateLimitMs,
    elapsed: () => effects.now() - start,
  }
}

const times = (count: number, answer: Answer): Answer[] => Array.from({ length: count }, () => answer)

describe('follow', () => {
  it('reports each status once, when it is first seen', async () => {
    const { followed, lines, seen } = scene(['QUEUED', 'BUILDING', 'BUILDING', 'DEPLOYING', 'DEPLOYED'])
    expect(await followed).toMatchObject({ end: 'final', revision: { status: 'DEPLOYED' } })
    expect(seen).toEqual([
      { status: 'QUEUED', at: 0 },
      { status: 'BUILDING', at: 1000 },
      { status: 'DEPLOYING', at: 3000 },
      { status: 'DEPLOYED', at: 4000 },
    ])
    expect(lines).toEqual(['QUEUED after 0 s', 'BUILDING after 1 s', 'DEPLOYING after 3 s', 'DEPLOYED after 4 s'])
  })

  it.each(['DEPLOYED', 'CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED', 'SKIPPED', 'INTERRUPTED', 'WARMUP_FAILED'])(
    'ends at %s',
    async (status) => {
      const { followed, asked } = scene([status])
      expect(await followed).toMatchObject({ end: 'final', revision: { status } })
      expect(asked()).toBe(1)
    },
  )

  it('waits on through UNKNOWN and statuses that it has never heard of, and reports each once', async () => {
    const { followed, lines } = scene(['UNKNOWN', 'BUILDING', 'UNKNOWN', 'WARMING', 'BUILDING', 'WARMING', 'DEPLOYED'])
    expect(await followed).toMatchObject({ end: 'final' })
    expect(lines.filter((line) => line.includes('does not know'))).toHaveLength(1)
    expect(lines.filter((line) => line.includes('not known to this version'))).toEqual([
      'The status WARMING is not known to this version: waiting on.',
    ])
  })

  it('prints a heartbeat a minute with the elapsed time, and nothing else while nothing changes', async () => {
    const { followed, lines } = scene(['BUILDING'], { expected: 400_000 })
    expect(await followed).toEqual({ end: 'timeout', lastStatus: 'BUILDING' })
    const beats = lines.filter((line) => line.startsWith('Still'))
    expect(beats.length).toBeGreaterThanOrEqual(7)
    expect(beats.length).toBeLessThanOrEqual(10)
    expect(beats[0]).toMatch(/^Still BUILDING after 1 min( \d+ s)? \(earlier revisions took 6 min 40 s\)\.$/)
    expect(lines).toHaveLength(beats.length + 1)
  })

  it('ends at the timeout to the millisecond', async () => {
    const { followed, elapsed } = scene(['QUEUED'], { timeoutMs: 123_456 })
    expect(await followed).toEqual({ end: 'timeout', lastStatus: 'QUEUED' })
    expect(elapsed()).toBe(123_456)
  })

  it('says when the connection is lost and when it is back', async () => {
    const { followed, lines } = scene(['BUILDING', ...times(5, requestFailure()), httpFailure(503), 'BUILDING', 'DEPLOYED'])
    expect(await followed).toMatchObject({ end: 'final' })
    expect(lines.filter((line) => line.startsWith('The status could not be read'))).toHaveLength(1)
    expect(lines.filter((line) => line.startsWith('The control plane answers again, after 6 s'))).toHaveLength(1)
  })

  it('is unavailable when the connection is lost for good, and says for how long', async () => {
    const { followed, elapsed } = scene(['BUILDING', requestFailure({ code: 'ECONNREFUSED' })], { timeoutMs: 60_000 })
    const error = await actionFailureOf(followed)
    expect(error.code).toBe('E_UNAVAILABLE')
    expect(error.message).toContain('for the last 59 s of the 1 min')
    expect(error.message).toContain('The last status that was seen is BUILDING')
    expect(elapsed()).toBe(60_000)
  })

  it('is a plain timeout when only the last answer was missing', async () => {
    const { followed } = scene([...times(13, 'BUILDING'), requestFailure()], { timeoutMs: 14_000 })
    expect(await followed).toEqual({ end: 'timeout', lastStatus: 'BUILDING' })
  })

  it('tells an endless 429 and an endless page of HTML apart from a lost connection', async () => {
    expect((await actionFailureOf(scene(['BUILDING', httpFailure(429)]).followed)).code).toBe('E_RATE_LIMITED')
    expect((await actionFailureOf(scene([requestFailure({ kind: 'protocol', code: 'html' })]).followed)).code).toBe('E_PROTOCOL')
  })

  it('waits as long as Retry-After says, with heartbeats, and counts it', async () => {
    const { followed, effects, lines, rateLimitMs } = scene(['QUEUED', httpFailure(429, { retryAfterMs: 150_000 }), 'DEPLOYED'])
    expect(await followed).toMatchObject({ end: 'final' })
    expect(rateLimitMs()).toBe(150_000)
    expect(effects.slept).toEqual([1000, 60_000, 60_000, 30_000])
    expect(lines.filter((line) => line.startsWith('No answer for'))).toHaveLength(2)
  })

  it('never waits beyond the timeout, whatever Retry-After says', async () => {
    const { followed, elapsed } = scene(['QUEUED', httpFailure(429, { retryAfterMs: 86_400_000 })], { timeoutMs: 30_000 })
    expect((await actionFailureOf(followed)).code).toBe('E_RATE_LIMITED')
    expect(elapsed()).toBe(30_000)
  })

  it.each([
    [401, 'E_AUTH'],
    [403, 'E_AUTH'],
    [404, 'E_NOT_FOUND'],
    [422, 'E_VALIDATION'],
  ])('believes a %d when it comes twice in a row', async (status, code) => {
    const { followed, asked } = scene(['BUILDING', ...times(2, httpFailure(status))])
    expect((await actionFailureOf(followed)).code).toBe(code)
    expect(asked()).toBe(3)
  })

  it('does not believe one that comes alone', async () => {
    const { followed } = scene([
      'BUILDING',
      httpFailure(404),
      'BUILDING',
      httpFailure(401),
      httpFailure(503),
      httpFailure(401),
      'DEPLOYED',
    ])
    expect(await followed).toMatchObject({ end: 'final' })
  })

  it('says that the deployment was deleted meanwhile', async () => {
    expect((await actionFailureOf(scene(['BUILDING', httpFailure(404)]).followed)).message).toContain('deleted meanwhile')
  })

  it('ends as cancelled in the middle of a sleep and in the middle of a request', async () => {
    for (const asleep of [true, false]) {
      const controller = new AbortController()
      const cancel = () => controller.abort(new DOMException('received SIGINT', 'AbortError'))
      const effects = fakeEffects(() => {
        if (asleep) cancel()
      })
      const getRevision = async () => {
        if (asleep) return revision('BUILDING')
        cancel()
        throw requestFailure({ kind: 'cancelled' })
      }
      expect((await actionFailureOf(scene([], { getRevision, effects, signal: controller.signal }).followed)).code).toBe(
        'E_CANCELLED',
      )
    }
  })

  it('ends as timed out when the deadline ends a request', async () => {
    const controller = new AbortController()
    const getRevision = async () => {
      controller.abort(new DOMException('the time is over', 'TimeoutError'))
      throw requestFailure({ kind: 'deadline' })
    }
    expect(await scene([], { getRevision, signal: controller.signal }).followed).toEqual({
      end: 'timeout',
      lastStatus: undefined,
    })
  })

  it('says what the control plane says about a status', async () => {
    const { followed, lines } = scene(['QUEUED', revision('BUILD_FAILED', { status_message: 'no space left' })])
    expect(await followed).toMatchObject({ end: 'final' })
    expect(lines).toEqual(['QUEUED after 0 s', 'BUILD_FAILED after 1 s (no space left)'])
  })

  it('prints a heartbeat without a usual time, where none is known', async () => {
    const { followed, lines } = scene(['BUILDING'], { timeoutMs: 90_000 })
    expect(await followed).toMatchObject({ end: 'timeout' })
    expect(lines).toEqual(['BUILDING after 0 s', expect.stringMatching(/^Still BUILDING after 1 min( \d+ s)?\.$/)])
  })

  it('says that the revision was being waited for when the step was cancelled', async () => {
    const controller = new AbortController()
    const effects = fakeEffects(() => controller.abort(new DOMException('received SIGINT', 'AbortError')))
    const error = await actionFailureOf(scene(['BUILDING'], { effects, signal: controller.signal }).followed)
    expect(error.message).toBe('The step was cancelled while it waited for the revision.')
  })

  it('says how it knows that the deployment was deleted, and what to do', async () => {
    const gone = httpFailure(404, { path: '/v2/deployments/x/revisions/y' })
    const error = await actionFailureOf(scene(['BUILDING', gone]).followed)
    expect(error).toMatchObject({
      code: 'E_NOT_FOUND',
      message: `The deployment or its revision was deleted meanwhile: ${gone.message}.`,
      tried: 'GET /v2/deployments/x/revisions/y was answered with 404 twice in a row.',
      next: 'Find out who deleted it, then run the step again.',
      cause: gone,
    })
  })

  it('says that it was reading the status when it was refused', async () => {
    const error = await actionFailureOf(scene(['BUILDING', httpFailure(403)]).followed)
    expect(error.message).toMatch(/^Reading the status of the revision failed: /)
  })

  it('says once that the status is unknown, in its own words', async () => {
    const { followed, lines } = scene(['UNKNOWN', 'UNKNOWN', 'DEPLOYED'])
    await followed
    expect(lines).toEqual([
      'UNKNOWN after 0 s',
      'The control plane does not know the status of the revision: waiting on.',
      'DEPLOYED after 2 s',
    ])
  })

  it('passes a fault of its own on', async () => {
    await expect(scene([new TypeError('bug')]).followed).rejects.toThrow('bug')
  })
})
