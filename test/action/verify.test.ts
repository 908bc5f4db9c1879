import { describe, expect, it, vi } from 'vitest'
import { deadlineOf } from '../../src/client/deadline.ts'
import type { ControlPlane } from '../../src/client/control-plane.ts'
import type { Inputs } from '../../src/action/inputs.ts'
import { checkCommit, otherCommit, verifyServing } from '../../src/action/verify.ts'
import { requestFailure } from '../support/request-failure.ts'
import {
  COMMIT,
  deployment,
  DEPLOYMENT_ID,
  DIGEST,
  NEW_REVISION_ID as ID,
  OLD_REVISION_ID,
  REPO_URL,
  revision,
} from './support/answers.ts'
import { caught } from './support/caught.ts'
import { fakeDeps, inputs, type TestDeps } from './support/deps.ts'

const OTHER = '00000000-0000-4000-8000-000000000003'
const OTHER_COMMIT = 'd'.repeat(40)
const git = { kind: 'git_host', repoUrl: REPO_URL, repoRef: 'v1', configPath: 'a.json', commit: COMMIT } as const

function verify(deps: TestDeps, previousId: string | null = OLD_REVISION_ID) {
  return verifyServing({ deploymentId: DEPLOYMENT_ID, revisionId: ID, previousId, deps })
}

/** A control plane on which these revisions serve, one after the other; the last one for ever. */
function serving(...active: (string | null | undefined)[]): Pick<ControlPlane, 'getDeployment'> {
  let asked = 0
  return {
    getDeployment: vi.fn(async () =>
      deployment({ active_revision_id: active[Math.min(asked++, active.length - 1)], latest_revision_id: ID }),
    ),
  }
}

describe('verifyServing', () => {
  it.each([ID, undefined])('is done at once when %s serves', async (active) => {
    const deps = fakeDeps(serving(active))
    await verify(deps)
    expect(deps.outputs).toEqual({ 'deployment-url': 'https://agent.example.com' })
    expect([deps.effects.slept, deps.lines, deps.journal.notes]).toEqual([[], [], []])
  })

  it('asks within one minute', async () => {
    let leftMs: number | undefined
    const deps = fakeDeps({
      getDeployment: async (_, signal) => {
        leftMs = deadlineOf(signal)! - deps.effects.now()
        return deployment({ active_revision_id: ID, latest_revision_id: ID })
      },
    })
    await verify(deps)
    expect(leftMs).toBe(60_000)
  })

  it('asks every two seconds until the one before it serves no longer', async () => {
    const deps = fakeDeps(serving(OLD_REVISION_ID, OLD_REVISION_ID, ID))
    await verify(deps)
    expect(deps.effects.slept).toEqual([2000, 2000])
  })

  it('asks on while none serves yet, and gives up after half a minute', async () => {
    const first = fakeDeps(serving(null, null, ID))
    await verify(first, null)
    expect(first.effects.slept).toEqual([2000, 2000])
    const never = fakeDeps(serving(null))
    expect(await caught(verify(never, null))).toEqual({
      code: 'E_PROTOCOL',
      message: `The revision ${ID} is DEPLOYED, but the control plane says that no revision serves.`,
      tried: 'The deployment was read again and again for 30 s.',
      next: 'Look at the deployment on the control plane, and run the step again.',
    })
    expect(never.effects.slept).toEqual(Array.from({ length: 15 }, () => 2000))
  })

  it('gives up after half a minute', async () => {
    const deps = fakeDeps(serving(OLD_REVISION_ID))
    expect(await caught(verify(deps))).toEqual({
      code: 'E_PROTOCOL',
      message: `The revision ${ID} is DEPLOYED, but the one before it still serves: ${OLD_REVISION_ID}.`,
      tried: 'The deployment was read again and again for 30 s.',
      next: 'Look at the deployment on the control plane, and run the step again.',
    })
    expect(deps.effects.slept).toEqual(Array.from({ length: 15 }, () => 2000))
  })

  it.each([OTHER, null])('says that a newer revision is on its way: %s', async (latest) => {
    const deps = fakeDeps({ getDeployment: async () => deployment({ active_revision_id: ID, latest_revision_id: latest }) })
    await verify(deps)
    const sentences = latest === null ? [] : [`A newer revision, ${OTHER}, is already on its way.`]
    expect([deps.lines, deps.journal.notes]).toEqual([sentences, sentences])
  })

  it.each<[string, string | null, string | null]>([
    ['younger', '2026-01-01T00:00:03Z', '2026-01-01T00:00:02Z'],
    ['as old', '2026-01-01T00:00:02Z', '2026-01-01T00:00:02Z'],
    ['of an age that nobody tells', null, '2026-01-01T00:00:02Z'],
    ['not known to be older than this one', '2026-01-01T00:00:02Z', null],
  ])('is superseded when another one serves that is %s', async (_, its, own) => {
    const getRevision: ControlPlane['getRevision'] = async ({ revisionId: id }) =>
      revision('DEPLOYED', { id, created_at: id === ID ? own : its })
    const deps = fakeDeps({ ...serving(OTHER), getRevision })
    expect(await caught(verify(deps))).toEqual({
      code: 'E_SUPERSEDED',
      message: `The revision ${ID} was deployed, but another one serves by now: ${OTHER}.`,
    })
  })

  it('waits for a revision of somebody else that is older', async () => {
    const getRevision = vi.fn<ControlPlane['getRevision']>(async ({ revisionId: id }) =>
      revision('DEPLOYED', { id, created_at: `2026-01-01T00:00:0${id === ID ? 2 : 1}Z` }),
    )
    const deps = fakeDeps({ ...serving(OTHER, ID), getRevision })
    await verify(deps, null)
    expect(getRevision.mock.calls.map(([{ deploymentId, revisionId }]) => [deploymentId, revisionId])).toEqual([
      [DEPLOYMENT_ID, OTHER],
      [DEPLOYMENT_ID, ID],
    ])
    expect(deps.effects.slept).toEqual([2000])
  })

  it('says what was being verified when the control plane fails', async () => {
    const deps = fakeDeps({ getDeployment: async () => Promise.reject(requestFailure()) })
    expect(await caught(verify(deps))).toEqual({
      code: 'E_UNAVAILABLE',
      message: `The revision ${ID} is DEPLOYED, but verifying that it serves failed: GET /v2/deployments got no answer.`,
      tried: 'GET /v2/deployments was sent once.',
    })
  })

  it('is cancelled in a sleep and in a request', async () => {
    const message = 'The step was cancelled while it verified the deployment.'
    const asleep: TestDeps = fakeDeps(serving(OLD_REVISION_ID), () => asleep.abort())
    expect(await caught(verify(asleep))).toEqual({ code: 'E_CANCELLED', message })
    const asking: TestDeps = fakeDeps({
      getDeployment: async () => {
        asking.abort()
        throw requestFailure({ kind: 'cancelled' })
      },
    })
    expect(await caught(verify(asking))).toEqual({ code: 'E_CANCELLED', message })
  })
})

const built = (commit: string | null, status = 'DEPLOYED') =>
  revision(status, { source_revision_config: { repo_ref: 'v1', repo_commit_sha: commit } })
const proven = `The revision ${ID} was to be built from ${COMMIT}, which was proven`
const moved = `${proven}, and was built from ${OTHER_COMMIT}: v1 has moved.`
const untold = `${proven}, and the control plane does not tell which commit it was built from.`

describe('otherCommit', () => {
  const image = { kind: 'external_docker', imageUri: DIGEST } as const
  const pinned = { ...git, pinned: true } as const
  const { commit: _, ...withoutCommit } = pinned
  it.each<[string, Inputs['source'], string | null, string | undefined]>([
    ['the proven one', pinned, COMMIT, undefined],
    ['the proven one in capitals', pinned, COMMIT.toUpperCase(), undefined],
    ['another one', pinned, OTHER_COMMIT, moved],
    ['one that nobody tells', pinned, null, untold],
    ['another one, where any will do', git, OTHER_COMMIT, undefined],
    ['that of an image', image, null, undefined],
    [
      'one where none was proven',
      withoutCommit,
      OTHER_COMMIT,
      `The revision ${ID} was to be built from none, which was proven, and was built from ${OTHER_COMMIT}: v1 has moved.`,
    ],
  ])('%s', (_name, source, commit, sentence) => {
    expect(otherCommit({ source }, built(commit))).toBe(sentence)
  })
})

describe('checkCommit', () => {
  const check = (source: Inputs['source'], answer = built(COMMIT)) => {
    const deps = fakeDeps()
    const checked = Promise.resolve().then(() => checkCommit({ inputs: inputs({ source }), revision: answer, deps }))
    return { deps, checked }
  }

  it('takes over what the revision was made from', async () => {
    const { deps, checked } = check(
      { kind: 'external_docker', imageUri: DIGEST },
      revision('DEPLOYED', { source_revision_config: { image_uri: DIGEST } }),
    )
    await checked
    expect(deps.outputs).toEqual({ 'image-uri': DIGEST })
    const git_ = check(git)
    await git_.checked
    expect(git_.deps.outputs).toEqual({ 'commit-sha': COMMIT })
  })

  const warning = `The revision was built from ${OTHER_COMMIT}, and the workflow runs on ${COMMIT}: v1 has moved meanwhile.`
  const { commit: _, ...withoutCommit } = git
  it.each<[string, Inputs['source'], string | null, string[]]>([
    ['another commit', git, OTHER_COMMIT, [warning]],
    ['the same in capitals', git, COMMIT.toUpperCase(), []],
    ['no commit that is told', git, null, []],
    ['any commit, where the workflow names none', withoutCommit, OTHER_COMMIT, []],
  ])('warns of %s', async (_name, source, commit, sentences) => {
    const { deps, checked } = check(source, built(commit))
    await checked
    expect([deps.warnings, deps.journal.notes]).toEqual([sentences, sentences])
  })

  const pinned = { ...git, pinned: true } as const
  it.each<[string, string | null, string, string]>([
    [
      'DEPLOYED',
      OTHER_COMMIT,
      moved,
      'Find out who moved the tag. Make a new tag at the commit that was proven, and promote that.',
    ],
    [
      'INTERRUPTED',
      OTHER_COMMIT,
      moved,
      'Find out who moved the tag. Make a new tag at the commit that was proven, and promote that.',
    ],
    ['DEPLOYED', null, untold, 'Look at the revision on the control plane: without its commit nothing is proven.'],
  ])('refuses one that is %s from %s and was to be another', async (status, commit, words, next) => {
    const { deps, checked } = check(pinned, built(commit, status))
    expect(await caught(checked)).toEqual({ code: 'E_CONFLICT', message: `${words} It is ${status}.`, next })
    expect(deps.warnings).toEqual([])
  })

  it('does not ask for the commit of one that was not built', async () => {
    const { deps, checked } = check(pinned, built(null, 'QUEUED'))
    await checked
    expect([deps.warnings, deps.journal.notes]).toEqual([[], []])
  })
})
