import { describe, expect, it, vi } from 'vitest'
import type { ControlPlane } from '../../src/client/control-plane.ts'
import type { Inputs } from '../../src/action/inputs.ts'
import { run } from '../../src/action/main.ts'
import {
  COMMIT,
  deployment,
  DEPLOYMENT_ID,
  httpFailure,
  NEW_REVISION_ID,
  OLD_REVISION_ID,
  REPO_URL,
  requestFailure,
  revision,
} from './support/answers.ts'
import { fakeDeps, inputs, TARGET_BY_ID, type TestDeps } from './support/deps.ts'

const THIRD_REVISION_ID = '00000000-0000-4000-8000-000000000003'
const git = {
  kind: 'git_host',
  repoUrl: REPO_URL,
  repoRef: 'main',
  configPath: 'langgraph.json',
  commit: COMMIT,
  eventCommit: COMMIT,
} as const

/** Runs a step and gives what it came to: its status, or the code of its failure. */
async function step(wanted: Partial<Inputs> = {}, deps: TestDeps = fakeDeps()) {
  const outcome = await run(inputs(wanted), deps)
  const failure = 'failure' in outcome ? outcome.failure : undefined
  return { ...deps, ended: 'status' in outcome ? outcome.status : outcome.failure.code, message: failure?.message ?? '', failure }
}

const changing = ({ controlPlane }: { controlPlane: ControlPlane }) => [
  controlPlane.createDeployment,
  controlPlane.patchDeployment,
  controlPlane.interruptRevision,
]

describe('a step that deploys', () => {
  it('updates the deployment that is there', async () => {
    const { ended, outputs, controlPlane, state } = await step()
    expect(ended).toBe('deployed')
    expect(controlPlane.createDeployment).not.toHaveBeenCalled()
    expect(controlPlane.patchDeployment).toHaveBeenCalledWith(
      expect.objectContaining({
        id: DEPLOYMENT_ID,
        body: { source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' } },
        previousLatestRevisionId: OLD_REVISION_ID,
      }),
    )
    expect(outputs).toEqual({
      'deployment-id': DEPLOYMENT_ID,
      'deployment-name': 'agent',
      'deployment-url': 'https://agent.example.com',
      created: 'false',
      'previous-revision-id': OLD_REVISION_ID,
      'revision-id': NEW_REVISION_ID,
      'revision-status': 'DEPLOYED',
      'commit-sha': COMMIT,
    })
    expect(state).toMatchObject({ deploymentId: DEPLOYMENT_ID, revisionId: NEW_REVISION_ID, pending: '', ended: 'true' })
  })

  it('creates the one that is not', async () => {
    const { ended, outputs, controlPlane } = await step({}, fakeDeps({ findDeploymentByName: async () => null }))
    expect(ended).toBe('deployed')
    expect(controlPlane.createDeployment).toHaveBeenCalledTimes(1)
    expect(outputs).toMatchObject({ created: 'true', 'revision-id': NEW_REVISION_ID })
    expect(outputs).not.toHaveProperty('previous-revision-id')
  })

  it('never creates by an id', async () => {
    const deps = fakeDeps({
      getDeployment: vi.fn(async () => Promise.reject(httpFailure(404, { detail: 'Deployment ID x not found.' }))),
    })
    const { ended, controlPlane } = await step({ target: TARGET_BY_ID }, deps)
    expect(ended).toBe('E_NOT_FOUND')
    for (const change of changing({ controlPlane })) expect(change).not.toHaveBeenCalled()
  })

  it('leaves for post what it asks for, before it asks', async () => {
    const deps = fakeDeps({ findDeploymentByName: async () => null })
    deps.controlPlane.createDeployment = async () => {
      expect(deps.state['pending']).toBe("create the deployment 'agent'")
      throw requestFailure({ kind: 'network', method: 'POST', ambiguous: true })
    }
    expect((await step({}, deps)).ended).toBe('E_UNAVAILABLE')
  })

  it('refuses what would have to be another deployment, and sends nothing', async () => {
    const deps = fakeDeps({ findDeploymentByName: async () => deployment({ source: 'external_docker' }) })
    const { ended, controlPlane } = await step({}, deps)
    expect(ended).toBe('E_CONFLICT')
    for (const change of changing({ controlPlane })) expect(change).not.toHaveBeenCalled()
  })

  it.each([
    ['a 422', httpFailure(422, { detail: 'body.name: too long' }), 'E_VALIDATION'],
    ['a 409', httpFailure(409), 'E_CONFLICT'],
    ['a refused key', httpFailure(401), 'E_AUTH'],
    ['an answer that is not one', requestFailure({ kind: 'protocol', code: 'html' }), 'E_PROTOCOL'],
  ])('fails with the code of %s', async (_, error, code) => {
    expect((await step({}, fakeDeps({ patchDeployment: async () => Promise.reject(error) }))).ended).toBe(code)
    expect((await step({}, fakeDeps({ findDeploymentByName: async () => Promise.reject(error) }))).ended).toBe(code)
  })

  it.each([null, OLD_REVISION_ID])('does not take %s for the revision that it made', async (revisionId) => {
    const deps = fakeDeps({ patchDeployment: async () => ({ deployment: deployment(), revisionId, recovered: false }) })
    const { ended, message } = await step({}, deps)
    expect(ended).toBe('E_PROTOCOL')
    expect(message).toContain('made no new revision')
  })

  it('warns about variables that secrets takes away, by name', async () => {
    const deps = fakeDeps({ findDeploymentByName: async () => deployment({ secrets: [{ name: 'KEPT' }, { name: 'GONE' }] }) })
    const { warnings } = await step({ secrets: [{ name: 'KEPT', value: 'hunter2' }] }, deps)
    expect(warnings).toEqual([expect.stringContaining(': GONE is not among them')])
  })
})

describe('the end of a revision', () => {
  it.each([
    ['CREATE_FAILED', 'E_CREATE_FAILED', ['build']],
    ['BUILD_FAILED', 'E_BUILD_FAILED', ['build']],
    ['DEPLOY_FAILED', 'E_DEPLOY_FAILED', ['deploy', 'build']],
    ['WARMUP_FAILED', 'E_DEPLOY_FAILED', ['deploy', 'build']],
    ['INTERRUPTED', 'E_INTERRUPTED', []],
    ['SKIPPED', 'E_SUPERSEDED', []],
  ])('%s is %s, and reads the logs %j', async (status, code, types) => {
    const deps = fakeDeps({ getRevision: async () => revision(status, { status_message: 'no space left' }) })
    const { ended, message, controlPlane, outputs } = await step({}, deps)
    expect(ended).toBe(code)
    expect(message).toContain(status)
    expect(message).toContain('no space left')
    expect(outputs['revision-status']).toBe(status)
    expect(vi.mocked(controlPlane.revisionLogs).mock.calls.map(([{ type }]) => type)).toEqual(types)
  })

  it('shows the end of the log in the order in which it was written', async () => {
    const entry = (message: string, second: number) => ({
      message,
      level: 'ERROR',
      timestamp: Date.UTC(2026, 0, 1, 12, 0, second),
    })
    const revisionLogs = vi.fn(async () => ({
      entries: [entry('third\nfourth', 2), entry('second', 1), entry('first', 0)],
      nextOffset: null,
    }))
    const { groups, journal } = await step({}, fakeDeps({ getRevision: async () => revision('BUILD_FAILED'), revisionLogs }))
    const lines = ['12:00:00 ERROR first', '12:00:01 ERROR second', '12:00:02 ERROR third', '12:00:02 ERROR fourth']
    expect(groups).toEqual([{ title: 'The end of the build log', lines }])
    expect(journal.logTail?.lines).toEqual(lines)
    expect(revisionLogs).toHaveBeenCalledWith(expect.objectContaining({ order: 'desc', limit: 200 }))
  })

  it('keeps the code of the failure when the log cannot be read', async () => {
    const deps = fakeDeps({
      getRevision: async () => revision('BUILD_FAILED'),
      revisionLogs: async () => Promise.reject(httpFailure(500)),
    })
    const { ended, journal } = await step({}, deps)
    expect(ended).toBe('E_BUILD_FAILED')
    expect(journal.notes).toEqual([expect.stringContaining('could not be read')])
  })

  it('is cancelled when the signal comes while the log is read, and still says how the revision ended', async () => {
    const deps: TestDeps = fakeDeps({
      getRevision: async () => revision('BUILD_FAILED'),
      revisionLogs: async () => {
        deps.abort()
        throw requestFailure({ kind: 'cancelled' })
      },
    })
    const { ended, message, controlPlane } = await step({ onCancel: 'interrupt' }, deps)
    expect(ended).toBe('E_CANCELLED')
    expect(message).toContain('ended in BUILD_FAILED')
    expect(controlPlane.interruptRevision).not.toHaveBeenCalled()
  })

  it('is superseded when another revision serves', async () => {
    const deps = fakeDeps({ getDeployment: async () => deployment({ active_revision_id: THIRD_REVISION_ID }) })
    const { ended, message } = await step({}, deps)
    expect(ended).toBe('E_SUPERSEDED')
    expect(message).toContain(THIRD_REVISION_ID)
  })

  it('waits for the control plane to switch, but not for ever', async () => {
    const answers = [deployment(), deployment(), deployment({ active_revision_id: NEW_REVISION_ID })]
    const patient = fakeDeps({ getDeployment: async () => answers.shift()! })
    expect((await step({}, patient)).ended).toBe('deployed')
    const { ended, message } = await step({}, fakeDeps({ getDeployment: async () => deployment() }))
    expect(ended).toBe('E_PROTOCOL')
    expect(message).toContain('still serves')
  })

  it('names the revision that took the place of a skipped one, where it is told', async () => {
    const skipped = { getRevision: async () => revision('SKIPPED') }
    const told = fakeDeps({ ...skipped, getDeployment: async () => deployment({ latest_revision_id: THIRD_REVISION_ID }) })
    expect((await step({}, told)).message).toContain(`a newer revision, ${THIRD_REVISION_ID}, took its place`)
    const silent = fakeDeps({ ...skipped, getDeployment: async () => Promise.reject(requestFailure()) })
    expect(await step({}, silent)).toMatchObject({
      ended: 'E_SUPERSEDED',
      message: expect.stringContaining('a newer revision took'),
    })
  })

  it('waits as well when an older one of somebody else has come into service meanwhile', async () => {
    const third = { active_revision_id: THIRD_REVISION_ID }
    const answers = [deployment(third), deployment({ active_revision_id: NEW_REVISION_ID })]
    const made = (second: number) => ({ created_at: `2026-01-01T00:00:0${second}Z` })
    const getRevision: ControlPlane['getRevision'] = async ({ revisionId: id }) =>
      revision('DEPLOYED', { id, ...made(id === THIRD_REVISION_ID ? 1 : 2) })
    expect((await step({}, fakeDeps({ getRevision, getDeployment: async () => answers.shift()! }))).ended).toBe('deployed')
    expect((await step({}, fakeDeps({ getRevision, getDeployment: async () => deployment(third) }))).ended).toBe('E_PROTOCOL')
  })

  it('is good where the control plane does not tell which one serves', async () => {
    expect((await step({}, fakeDeps({ getDeployment: async () => deployment({ active_revision_id: null }) }))).ended).toBe(
      'deployed',
    )
  })

  it('is not green when it could not be verified', async () => {
    const { ended, message } = await step({}, fakeDeps({ getDeployment: async () => Promise.reject(requestFailure()) }))
    expect(ended).toBe('E_UNAVAILABLE')
    expect(message).toContain('is DEPLOYED, but verifying')
  })

  it('warns when the branch has moved', async () => {
    const { ended, warnings } = await step({ source: { ...git, commit: 'b'.repeat(40), eventCommit: 'b'.repeat(40) } })
    expect(ended).toBe('deployed')
    expect(warnings).toEqual([expect.stringMatching(new RegExp(`${COMMIT}.*${'b'.repeat(40)}`))])
    expect((await step({ source: git })).warnings).toEqual([])
  })
})

describe('the timeout', () => {
  const endless = { getRevision: async () => revision('BUILDING') }

  it('leaves the revision alone', async () => {
    const { ended, failure, controlPlane } = await step({ timeoutMs: 60_000 }, fakeDeps(endless))
    expect(ended).toBe('E_TIMEOUT')
    expect(failure?.message).toContain('was still BUILDING after 1 min')
    expect(failure?.tried).toContain('goes on by itself')
    expect(controlPlane.interruptRevision).not.toHaveBeenCalled()
  })

  it('interrupts it when it is told to', async () => {
    const { ended, failure, controlPlane, state } = await step({ timeoutMs: 60_000, onTimeout: 'interrupt' }, fakeDeps(endless))
    expect(ended).toBe('E_TIMEOUT')
    expect(controlPlane.interruptRevision).toHaveBeenCalledWith(expect.objectContaining({ revisionId: NEW_REVISION_ID }))
    expect(failure?.tried).toContain('asked to interrupt')
    expect(state['interrupt']).toBe('')
  })

  it('says that the control plane cannot interrupt, and leaves the rest to post when it merely did not', async () => {
    const wanted = { timeoutMs: 60_000, onTimeout: 'interrupt' } as const
    const without = fakeDeps({
      ...endless,
      interruptRevision: async () => Promise.reject(requestFailure({ kind: 'unsupported' })),
    })
    const first = await step(wanted, without)
    expect([first.ended, first.state['interrupt']]).toEqual(['E_TIMEOUT', ''])
    expect(first.failure?.tried).toContain('has no way to interrupt')
    const second = await step(wanted, fakeDeps({ ...endless, interruptRevision: async () => Promise.reject(httpFailure(503)) }))
    expect([second.ended, second.state['interrupt']]).toEqual(['E_TIMEOUT', 'timeout'])
  })

  it('interrupts as well when the connection is lost for good', async () => {
    const deps = fakeDeps({ getRevision: async () => Promise.reject(requestFailure()) })
    const { ended } = await step({ timeoutMs: 60_000, onTimeout: 'interrupt' }, deps)
    expect(ended).toBe('E_UNAVAILABLE')
    expect(deps.controlPlane.interruptRevision).toHaveBeenCalledTimes(1)
  })
})

describe('a cancellation', () => {
  const cancelledWhileWaiting = (changes: Partial<ControlPlane> = {}) => {
    const deps: TestDeps = fakeDeps({ getRevision: async () => revision('BUILDING'), ...changes }, () => deps.abort())
    return deps
  }

  it('leaves the revision alone, and says so', async () => {
    const { ended, controlPlane, journal } = await step({}, cancelledWhileWaiting())
    expect(ended).toBe('E_CANCELLED')
    expect(controlPlane.interruptRevision).not.toHaveBeenCalled()
    expect(journal.notes).toEqual([expect.stringContaining('goes on by itself')])
  })

  it('interrupts it when it is told to, within two seconds', async () => {
    const { ended, controlPlane, state } = await step({ onCancel: 'interrupt' }, cancelledWhileWaiting())
    expect(ended).toBe('E_CANCELLED')
    expect(controlPlane.interruptRevision).toHaveBeenCalledWith(expect.objectContaining({ timeoutMs: 2000 }))
    expect(state['interrupt']).toBe('')
  })

  it('leaves the interruption to post when it did not succeed', async () => {
    const deps = cancelledWhileWaiting({ interruptRevision: async () => Promise.reject(requestFailure({ kind: 'deadline' })) })
    expect((await step({ onCancel: 'interrupt' }, deps)).state['interrupt']).toBe('cancel')
  })

  it('changes nothing when it comes before the change', async () => {
    const deps = fakeDeps({
      findDeploymentByName: async () => {
        deps.abort()
        return deployment()
      },
    })
    const { ended, controlPlane } = await step({}, deps)
    expect(ended).toBe('E_CANCELLED')
    for (const change of changing({ controlPlane })) expect(change).not.toHaveBeenCalled()
  })

  it('waits a moment for the answer to a change, so that the revision is known', async () => {
    const deps = fakeDeps({
      patchDeployment: async ({ signal }) => {
        deps.abort()
        expect(signal.aborted).toBe(false)
        return { deployment: deployment(), revisionId: NEW_REVISION_ID, recovered: false }
      },
      getRevision: async () => Promise.reject(requestFailure({ kind: 'cancelled' })),
    })
    const { ended, outputs, state, controlPlane } = await step({ onCancel: 'interrupt' }, deps)
    expect(ended).toBe('E_CANCELLED')
    expect(outputs['revision-id']).toBe(NEW_REVISION_ID)
    expect(state['revisionId']).toBe(NEW_REVISION_ID)
    expect(controlPlane.interruptRevision).toHaveBeenCalledTimes(1)
  })

  it('does not wait for it any longer than that, and says what may have happened', async () => {
    const deps = fakeDeps({
      patchDeployment: async ({ signal }) => {
        deps.abort()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        throw requestFailure({ kind: 'cancelled', method: 'PATCH' })
      },
    })
    const { ended, journal, state } = await step({}, deps)
    expect(ended).toBe('E_CANCELLED')
    expect(state['pending']).toContain("update the deployment 'agent'")
    expect(journal.notes).toEqual([expect.stringContaining('it may have happened')])
  })
})

describe('dry-run', () => {
  it('changes nothing, and shows what would change', async () => {
    const { ended, controlPlane, journal } = await step({ dryRun: true, source: { ...git, repoRef: 'next' } })
    expect(ended).toBe('planned')
    for (const change of changing({ controlPlane })) expect(change).not.toHaveBeenCalled()
    expect(journal.plan).toEqual([
      { field: 'repo_ref', live: 'main', wanted: 'next' },
      { field: 'commit', live: '(not told)', wanted: COMMIT },
    ])
  })

  it('compares with the revision that serves, not with the newest one, which may have failed', async () => {
    const newer = deployment({ latest_revision_id: NEW_REVISION_ID, source_revision_config: { repo_ref: 'broken' } })
    const served = { repo_ref: 'main', graph_config_path: 'langgraph.json', repo_commit_sha: 'b'.repeat(40) }
    const deps = fakeDeps({
      findDeploymentByName: async () => newer,
      getRevision: vi.fn(async () => revision('DEPLOYED', { id: OLD_REVISION_ID, source_revision_config: served })),
    })
    const { journal, groups } = await step({ dryRun: true, source: git }, deps)
    expect(journal.plan).toEqual([{ field: 'commit', live: 'b'.repeat(40), wanted: COMMIT }])
    expect(groups.flatMap(({ lines }) => lines)).toEqual([`commit: ${'b'.repeat(40)} -> ${COMMIT}`])
    expect(deps.controlPlane.getRevision).toHaveBeenCalledWith(expect.objectContaining({ revisionId: OLD_REVISION_ID }))
  })

  it('says when skip-unchanged would make no revision', async () => {
    const deps = fakeDeps({ getRevision: async () => revision('DEPLOYED', { id: OLD_REVISION_ID }) })
    const { ended, journal } = await step({ dryRun: true, skipUnchanged: true, source: git }, deps)
    expect(ended).toBe('planned')
    expect(journal.notes).toEqual(['skip-unchanged: a deploy would make no revision.'])
  })

  it('plans a deployment that is not there yet', async () => {
    const { ended, journal, outputs } = await step({ dryRun: true }, fakeDeps({ findDeploymentByName: async () => null }))
    expect(ended).toBe('planned')
    expect(journal.plan?.map(({ field }) => field)).toEqual([
      'source',
      'repo_url',
      'repo_ref',
      'graph_config_path',
      'build_on_push',
    ])
    expect(outputs).toEqual({ 'deployment-name': 'agent' })
  })

  it('fails where a deploy would', async () => {
    const deps = fakeDeps({ findDeploymentByName: async () => deployment({ source: 'external_docker' }) })
    expect((await step({ dryRun: true }, deps)).ended).toBe('E_CONFLICT')
  })
})

describe('skip-unchanged', () => {
  const live = { getRevision: async () => revision('DEPLOYED', { id: OLD_REVISION_ID }) }

  it('changes nothing when the live revision is what is wanted', async () => {
    const { ended, controlPlane, outputs } = await step({ skipUnchanged: true, source: git }, fakeDeps(live))
    expect(ended).toBe('unchanged')
    for (const change of changing({ controlPlane })) expect(change).not.toHaveBeenCalled()
    expect(outputs).toMatchObject({ 'revision-id': OLD_REVISION_ID, 'revision-status': 'DEPLOYED', 'commit-sha': COMMIT })
  })

  it('deploys otherwise, and says why', async () => {
    const { ended, lines, controlPlane } = await step({
      skipUnchanged: true,
      source: { ...git, commit: 'b'.repeat(40), eventCommit: 'b'.repeat(40) },
    })
    expect(ended).toBe('deployed')
    expect(controlPlane.patchDeployment).toHaveBeenCalledTimes(1)
    expect(lines).toContainEqual(expect.stringMatching(/^skip-unchanged: deploying, because the live commit is /))
  })
})

describe('wait: false', () => {
  it('is green as soon as the revision was accepted', async () => {
    const { ended, outputs, controlPlane } = await step(
      { wait: false },
      fakeDeps({ getRevision: vi.fn(async () => revision('QUEUED')) }),
    )
    expect(ended).toBe('deployed')
    expect(outputs['revision-status']).toBe('QUEUED')
    expect(controlPlane.getRevision).toHaveBeenCalledTimes(1)
  })

  it('is red when the revision has failed already', async () => {
    expect((await step({ wait: false }, fakeDeps({ getRevision: async () => revision('CREATE_FAILED') }))).ended).toBe(
      'E_CREATE_FAILED',
    )
  })
})

describe('a fault of the action itself', () => {
  it('is red, and says so', async () => {
    const { ended, message } = await step({}, fakeDeps({ patchDeployment: async () => Promise.reject(new TypeError('bug')) }))
    expect(ended).toBe('E_PROTOCOL')
    expect(message).toBe('internal error: TypeError: bug')
  })
})
