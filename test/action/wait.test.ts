import { describe, expect, it, vi } from 'vitest'
import { deadlineOf } from '../../src/client/deadline.ts'
import type { ControlPlane } from '../../src/client/control-plane.ts'
import type { RevisionAnswer } from '../../src/contract/answers.ts'
import type { Inputs } from '../../src/action/inputs.ts'
import { waitForRevision } from '../../src/action/wait.ts'
import { httpFailure, requestFailure } from '../support/request-failure.ts'
import {
  COMMIT,
  deployment,
  DEPLOYMENT_ID,
  NEW_REVISION_ID as ID,
  OLD_REVISION_ID,
  REPO_URL,
  revision,
} from './support/answers.ts'
import { caught } from './support/caught.ts'
import { fakeDeps, inputs, type TestDeps } from './support/deps.ts'

const NEWER = '00000000-0000-4000-8000-000000000003'
const OTHER_COMMIT = 'd'.repeat(40)
const pinned = { kind: 'git_host', repoUrl: REPO_URL, repoRef: 'v1', configPath: 'a.json', commit: COMMIT, pinned: true } as const

function wait(wanted: Partial<Inputs> = {}, deps: TestDeps = fakeDeps()) {
  return waitForRevision({
    inputs: inputs(wanted),
    deploymentId: DEPLOYMENT_ID,
    revisionId: ID,
    previousId: OLD_REVISION_ID,
    deps,
  })
}

/** A control plane whose revision answers with these, one after the other; the last one for ever. */
function answering(...answers: (RevisionAnswer | Error)[]): Pick<ControlPlane, 'getRevision'> {
  let asked = 0
  return {
    getRevision: vi.fn(async () => {
      const answer = answers[Math.min(asked++, answers.length - 1)]!
      if (answer instanceof Error) throw answer
      return answer
    }),
  }
}

const from = (status: string, commit: string | null, changes: Record<string, unknown> = {}) =>
  revision(status, { source_revision_config: { repo_ref: 'v1', repo_commit_sha: commit }, ...changes })
const waiting = `Waiting for the revision ${ID}, 1 min at most.`
const minute = { timeoutMs: 60_000 }

describe('a revision that ends well', () => {
  it('is told from the beginning to the end', async () => {
    const deps = fakeDeps(answering(revision('BUILDING'), revision('DEPLOYED', { status_message: 'all good' })))
    const start = deps.effects.now()
    expect(await wait(minute, deps)).toBe('deployed')
    expect(deps.lines).toEqual([waiting, 'BUILDING after 0 s', 'DEPLOYED after 1 s (all good)', `The revision ${ID} serves.`])
    expect(deps.journal.transitions).toEqual([
      { status: 'BUILDING', at: start },
      { status: 'DEPLOYED', at: start + 1000 },
    ])
    expect(deps.outputs).toEqual({
      'revision-status': 'DEPLOYED',
      'commit-sha': COMMIT,
      'deployment-url': 'https://agent.example.com',
    })
    expect(deps.state).toEqual({ ended: 'true' })
    expect([deps.journal.notes, deps.warnings, deps.groups]).toEqual([[], [], []])
  })

  it('learns from at most ten deployed revisions how long one takes, within five seconds and without its own', async () => {
    const took = (id: string, minutes: number) => revision('DEPLOYED', { id, updated_at: `2026-01-01T00:0${minutes}:00Z` })
    let leftMs: number | undefined
    const deps = fakeDeps({
      listRevisions: vi.fn(async ({ signal }) => {
        leftMs = deadlineOf(signal)! - deps.effects.now()
        return [took(ID, 9), took(OLD_REVISION_ID, 2)]
      }),
    })
    await wait(minute, deps)
    expect(deps.lines[0]).toBe(`Waiting for the revision ${ID}, 1 min at most; earlier revisions took 2 min.`)
    expect(deps.controlPlane.listRevisions).toHaveBeenCalledExactlyOnceWith({
      deploymentId: DEPLOYMENT_ID,
      status: ['DEPLOYED'],
      max: 10,
      signal: expect.any(AbortSignal),
    })
    expect(leftMs).toBe(5000)
  })

  it('is waited for as well where earlier ones cannot be read', async () => {
    const deps = fakeDeps({ listRevisions: async () => Promise.reject(httpFailure(500)) })
    expect(await wait(minute, deps)).toBe('deployed')
    expect([deps.lines[0], deps.journal.notes]).toEqual([waiting, []])
  })

  it('counts the time that the control plane asked for', async () => {
    const deps = fakeDeps(answering(httpFailure(429, { retryAfterMs: 7000 }), revision('DEPLOYED')))
    await wait(minute, deps)
    expect(deps.journal.rateLimitWaitMs()).toBe(7000)
  })
})

describe('the time that is over', () => {
  const asked = `The control plane was asked to interrupt the revision ${ID}.`

  it.each([
    ['leave', 'on-timeout is leave: the revision goes on by itself.', [], {}],
    ['interrupt', asked, [asked], { interrupt: '' }],
  ] as const)('%s', async (onTimeout, tried, notes, state) => {
    const deps = fakeDeps(answering(revision('BUILDING')))
    expect(await caught(wait({ ...minute, onTimeout }, deps))).toEqual({
      code: 'E_TIMEOUT',
      message: `The revision ${ID} was still BUILDING after 1 min.`,
      tried,
    })
    expect(deps.journal.notes).toEqual(notes)
    expect(deps.lines.slice(2)).toEqual(notes)
    expect(deps.state).toEqual(state)
    expect(vi.mocked(deps.controlPlane.interruptRevision).mock.calls.map(([asked]) => asked)).toEqual(
      notes.map(() => ({ deploymentId: DEPLOYMENT_ID, revisionId: ID, timeoutMs: 10_000, signal: expect.any(AbortSignal) })),
    )
  })

  it('does not invent a status that was never seen', async () => {
    const getRevision: ControlPlane['getRevision'] = async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw requestFailure({ kind: 'deadline' })
    }
    expect((await caught(wait({ timeoutMs: 2 }, fakeDeps({ getRevision }))))['message']).toMatch(
      new RegExp(`^The revision ${ID} was still without a status after `),
    )
  })

  it('interrupts a revision of which nothing more was heard, and says so', async () => {
    const deps = fakeDeps(answering(revision('BUILDING'), requestFailure()))
    expect((await caught(wait({ ...minute, onTimeout: 'interrupt' }, deps)))['code']).toBe('E_UNAVAILABLE')
    expect(deps.journal.notes).toEqual([asked])
    const left = fakeDeps(answering(revision('BUILDING'), requestFailure()))
    expect((await caught(wait(minute, left)))['code']).toBe('E_UNAVAILABLE')
    expect(left.journal.notes).toEqual(['on-timeout is leave: the revision goes on by itself.'])
  })

  it.each([
    ['deleted meanwhile', httpFailure(404), 'E_NOT_FOUND'],
    ['refused before the time is over', httpFailure(401), 'E_AUTH'],
  ])('does not interrupt one that was %s', async (_, error, code) => {
    const deps = fakeDeps(answering(revision('BUILDING'), error))
    expect((await caught(wait({ ...minute, onTimeout: 'interrupt' }, deps)))['code']).toBe(code)
    expect(deps.controlPlane.interruptRevision).not.toHaveBeenCalled()
    expect([deps.journal.notes, deps.state]).toEqual([[], {}])
  })
})

describe('a revision of a commit that nobody has proven', () => {
  const built = `The revision ${ID} was to be built from ${COMMIT}, which was proven, and was built from ${OTHER_COMMIT}: v1 has moved.`
  const sentence = `The control plane was asked to interrupt the revision ${ID}.`
  const moved = 'Find out who moved the tag. Make a new tag at the commit that was proven, and promote that.'

  it('is interrupted once, and is a conflict', async () => {
    const other = from('BUILDING', OTHER_COMMIT)
    const deps = fakeDeps(answering(from('QUEUED', null), other, other, from('INTERRUPTED', OTHER_COMMIT)))
    expect(await caught(wait({ source: pinned }, deps))).toEqual({
      code: 'E_CONFLICT',
      message: `${built} It is INTERRUPTED.`,
      next: moved,
    })
    expect(deps.controlPlane.interruptRevision).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ deploymentId: DEPLOYMENT_ID, revisionId: ID, timeoutMs: 10_000 }),
    )
    expect(deps.lines).toContain(`${built} ${sentence}`)
    expect(deps.journal.notes).toEqual([sentence])
  })

  it('is no longer interrupted once it has ended', async () => {
    const deps = fakeDeps(answering(from('DEPLOYED', OTHER_COMMIT)))
    expect(await caught(wait({ source: pinned }, deps))).toEqual({
      code: 'E_CONFLICT',
      message: `${built} It is DEPLOYED.`,
      next: moved,
    })
    expect(deps.controlPlane.interruptRevision).not.toHaveBeenCalled()
  })

  it('is told by its failure where it failed', async () => {
    const deps = fakeDeps(answering(from('BUILD_FAILED', OTHER_COMMIT)))
    expect((await caught(wait({ source: pinned }, deps)))['code']).toBe('E_BUILD_FAILED')
  })

  it('does not stop the one that was proven', async () => {
    const deps = fakeDeps(answering(from('BUILDING', COMMIT), from('DEPLOYED', COMMIT)))
    expect(await wait({ source: pinned }, deps)).toBe('deployed')
    expect(deps.controlPlane.interruptRevision).not.toHaveBeenCalled()
  })
})

describe('a revision that ends badly', () => {
  it.each([
    ['CREATE_FAILED', 'E_CREATE_FAILED', 'Look at the deployment on the control plane; the quota of the plan is a usual cause.'],
    ['BUILD_FAILED', 'E_BUILD_FAILED', 'Look at the revision on the control plane, correct the source, and deploy again.'],
    [
      'DEPLOY_FAILED',
      'E_DEPLOY_FAILED',
      'Look at the revision on the control plane; a missing variable in `secrets` is a usual cause.',
    ],
    [
      'WARMUP_FAILED',
      'E_DEPLOY_FAILED',
      'Look at the revision on the control plane; a missing variable in `secrets` is a usual cause.',
    ],
    ['INTERRUPTED', 'E_INTERRUPTED', undefined],
  ])('%s is %s', async (status, code, next) => {
    const advice = next === undefined ? {} : { next }
    const message = `The revision ${ID} ended in ${status}.`
    const silent = fakeDeps(answering(revision(status)))
    expect(await caught(wait({}, silent))).toEqual({ code, message, ...advice })
    expect([silent.groups, silent.journal.logTail, silent.state]).toEqual([[], undefined, { ended: 'true' }])
    const told = fakeDeps(answering(revision(status, { status_message: 'no space left.' })))
    expect(await caught(wait({}, told))).toEqual({
      code,
      message: `${message} The control plane says: no space left.`,
      ...advice,
    })
  })

  it.each([
    [{ latest_revision_id: NEWER }, `a newer revision, ${NEWER}, took its place`],
    [{ latest_revision_id: ID }, 'a newer revision took its place'],
    [{ latest_revision_id: null }, 'a newer revision took its place'],
  ])('is skipped: %j', async (latest, words) => {
    let leftMs: number | undefined
    const deps = fakeDeps({
      ...answering(revision('SKIPPED')),
      getDeployment: async (_, signal) => {
        leftMs = deadlineOf(signal)! - deps.effects.now()
        return deployment(latest)
      },
    })
    expect(await caught(wait({}, deps))).toEqual({ code: 'E_SUPERSEDED', message: `The revision ${ID} was SKIPPED: ${words}.` })
    expect(leftMs).toBe(5000)
    expect(deps.controlPlane.revisionLogs).not.toHaveBeenCalled()
  })

  it('is skipped, where nobody tells what took its place', async () => {
    const deps = fakeDeps({ ...answering(revision('SKIPPED')), getDeployment: async () => Promise.reject(httpFailure(500)) })
    expect((await caught(wait({}, deps)))['message']).toBe(`The revision ${ID} was SKIPPED: a newer revision took its place.`)
  })

  it('shows and keeps the end of its log', async () => {
    const entries = [{ message: 'exit code 1', level: null, timestamp: null }]
    const deps = fakeDeps({
      ...answering(revision('BUILD_FAILED')),
      revisionLogs: async () => ({ entries, nextOffset: null }),
    })
    expect(await caught(wait({}, deps))).toEqual({ code: 'E_BUILD_FAILED', message: `The revision ${ID} ended in BUILD_FAILED.` })
    const tail = { title: 'The end of the build log', lines: ['exit code 1'] }
    expect([deps.groups, deps.journal.logTail]).toEqual([[tail], tail])
  })

  it('names the inputs of the fields in the last ten lines of its log, and of no others', async () => {
    const adviceOf = async (message: string) => {
      const entries = [{ message, level: null, timestamp: null }]
      const deps = fakeDeps({
        ...answering(revision('BUILD_FAILED')),
        revisionLogs: async () => ({ entries, nextOffset: null }),
      })
      return (await caught(wait({}, deps)))['next'] ?? ''
    }
    expect(await adviceOf(`repo_ref\n${'line\n'.repeat(9)}`)).toMatch(/ In the workflow `repo_ref` is `repo-ref` or `tag`\.$/)
    expect(await adviceOf(`repo_ref\n${'line\n'.repeat(10)}`)).toBe('')
  })

  it('still says how it ended when the step is cancelled while its log is read', async () => {
    const deps: TestDeps = fakeDeps({
      ...answering(revision('BUILD_FAILED', { status_message: 'no space left.' })),
      revisionLogs: async () => {
        deps.abort()
        throw requestFailure({ kind: 'cancelled' })
      },
    })
    expect(await caught(wait({}, deps))).toEqual({
      code: 'E_CANCELLED',
      message: `The step was cancelled. The revision ${ID} ended in BUILD_FAILED. The control plane says: no space left.`,
    })
  })
})

describe('wait: false', () => {
  const accepted = `wait: false: the revision ${ID} was accepted and is not followed.`

  it('looks once, and tells what it saw', async () => {
    const deps = fakeDeps(answering(revision('QUEUED')))
    const start = deps.effects.now()
    expect(await wait({ wait: false }, deps)).toBe('deployed')
    expect(deps.lines).toEqual([accepted])
    expect(deps.journal.transitions).toEqual([{ status: 'QUEUED', at: start }])
    expect(deps.outputs).toEqual({ 'revision-status': 'QUEUED', 'commit-sha': COMMIT })
    expect([deps.state, deps.journal.notes]).toEqual([{}, []])
    expect(deps.controlPlane.getRevision).toHaveBeenCalledExactlyOnceWith({
      deploymentId: DEPLOYMENT_ID,
      revisionId: ID,
      signal: deps.signal,
    })
    expect(deps.controlPlane.getDeployment).not.toHaveBeenCalled()
  })

  it('is green when the look failed, with a note', async () => {
    const deps = fakeDeps(answering(requestFailure()))
    expect(await wait({ wait: false }, deps)).toBe('deployed')
    expect(deps.journal.notes).toEqual(['The status of the revision could not be read: GET /v2/deployments got no answer'])
    expect(deps.lines).toEqual([accepted])
  })

  it('is red when the revision has failed or is of another commit', async () => {
    expect(await caught(wait({ wait: false }, fakeDeps(answering(revision('INTERRUPTED')))))).toEqual({
      code: 'E_INTERRUPTED',
      message: `The revision ${ID} ended in INTERRUPTED.`,
    })
    const other = fakeDeps(answering(from('QUEUED', OTHER_COMMIT)))
    expect((await caught(wait({ wait: false, source: pinned }, other)))['code']).toBe('E_CONFLICT')
    expect(other.lines).toEqual([])
  })

  it('is cancelled when the signal comes during the look', async () => {
    const error = requestFailure({ kind: 'cancelled' })
    const deps: TestDeps = fakeDeps({
      getRevision: async () => {
        deps.abort()
        throw error
      },
    })
    await expect(wait({ wait: false }, deps)).rejects.toBe(error)
    expect([deps.lines, deps.journal.notes]).toEqual([[], []])
  })
})
