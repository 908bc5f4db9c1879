import { describe, expect, it, vi } from 'vitest'
import type { ControlPlane } from '../../src/client/control-plane.ts'
import { httpFailure, requestFailure } from '../support/request-failure.ts'
import { COMMIT, deployment, DEPLOYMENT_ID, GIT_SOURCE, NEW_REVISION_ID, OLD_REVISION_ID, revision } from './support/answers.ts'
import { fakeDeps, TARGET_BY_ID, type TestDeps } from './support/deps.ts'
import { expectNoChange, step } from './support/step.ts'

const THIRD_REVISION_ID = '00000000-0000-4000-8000-000000000003'

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

  it('names no revision that served before, where none ever did', async () => {
    const deps = fakeDeps({ findDeploymentByName: async () => deployment({ active_revision_id: null }) })
    const { ended, outputs, controlPlane } = await step({}, deps)
    expect(ended).toBe('deployed')
    expect(outputs).not.toHaveProperty('previous-revision-id')
    expect(controlPlane.patchDeployment).toHaveBeenCalledWith(
      expect.objectContaining({ previousLatestRevisionId: OLD_REVISION_ID }),
    )
  })

  it('never creates by an id', async () => {
    const deps = fakeDeps({
      getDeployment: vi.fn(async () => Promise.reject(httpFailure(404, { detail: 'Deployment ID x not found.' }))),
    })
    const { ended, controlPlane } = await step({ target: TARGET_BY_ID }, deps)
    expect(ended).toBe('E_NOT_FOUND')
    expectNoChange(controlPlane)
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
    expectNoChange(controlPlane)
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

  it.each([
    ['CREATE_FAILED', 'Look at the deployment on the control plane; the quota of the plan is a usual cause.'],
    ['BUILD_FAILED', 'Look at the revision on the control plane, correct the source, and deploy again.'],
    ['DEPLOY_FAILED', 'Look at the revision on the control plane; a missing variable in `secrets` is a usual cause.'],
  ])('%s sends nobody to a log that did not come', async (status, advice) => {
    const getRevision = async () => revision(status)
    expect((await step({}, fakeDeps({ getRevision }))).failure?.next).toBe(advice)
    const entries = [{ message: 'exit code 1', level: null, timestamp: null }]
    const logged = await step({}, fakeDeps({ getRevision, revisionLogs: async () => ({ entries, nextOffset: null }) }))
    expect(logged.failure?.next).toMatch(/log in the job summary/)
  })

  it.each([
    ['Push it, or correct repo_ref.', 'In the workflow `repo_ref` is `repo-ref` or `tag`.'],
    ['correct graph_config_path.', 'In the workflow `graph_config_path` is `config-path`.'],
    ['correct langgraph_config_path.', 'In the workflow `langgraph_config_path` is `config-path`.'],
    [
      'repo_ref and graph_config_path',
      'In the workflow `repo_ref` is `repo-ref` or `tag`, and `graph_config_path` is `config-path`.',
    ],
  ])('names the inputs where the service names its fields: %s', async (words, advice) => {
    const told = await step({}, fakeDeps({ getRevision: async () => revision('BUILD_FAILED', { status_message: words }) }))
    expect(told.failure?.next).toBe(`Look at the revision on the control plane, correct the source, and deploy again. ${advice}`)
    const entries = [{ message: words, level: null, timestamp: null }]
    const logs = { revisionLogs: async () => ({ entries, nextOffset: null }) }
    const logged = await step({}, fakeDeps({ getRevision: async () => revision('BUILD_FAILED'), ...logs }))
    expect(logged.failure?.next).toMatch(/build log in the job summary/)
    expect(logged.failure?.next.endsWith(advice)).toBe(true)
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

  it.each([
    ['does not tell which one serves', undefined, 'deployed'],
    ['says that none serves', null, 'E_PROTOCOL'],
  ])('where the control plane %s: %s ends as %s', async (_, active, ended) => {
    const getDeployment = async () => deployment({ active_revision_id: active })
    expect((await step({}, fakeDeps({ getDeployment }))).ended).toBe(ended)
  })

  it('is not green when it could not be verified', async () => {
    const { ended, message } = await step({}, fakeDeps({ getDeployment: async () => Promise.reject(requestFailure()) }))
    expect(ended).toBe('E_UNAVAILABLE')
    expect(message).toContain('is DEPLOYED, but verifying')
  })

  it('warns when the branch has moved', async () => {
    const { ended, warnings } = await step({ source: { ...GIT_SOURCE, commit: 'b'.repeat(40), eventCommit: 'b'.repeat(40) } })
    expect(ended).toBe('deployed')
    expect(warnings).toEqual([expect.stringMatching(new RegExp(`${COMMIT}.*${'b'.repeat(40)}`))])
    expect((await step({ source: GIT_SOURCE })).warnings).toEqual([])
  })
})

describe('a fault of the action itself', () => {
  it('is red, and says so', async () => {
    const { ended, message } = await step({}, fakeDeps({ patchDeployment: async () => Promise.reject(new TypeError('bug')) }))
    expect(ended).toBe('E_PROTOCOL')
    expect(message).toBe('internal error: TypeError: bug')
  })
})
