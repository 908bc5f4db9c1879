import { describe, expect, it, vi } from 'vitest'
import type { ControlPlane } from '../../../src/client/control-plane.ts'
import { setAside } from '../../../src/action/rollback/aside.ts'
import { bringBack } from '../../../src/action/rollback/bring-back.ts'
import type { Scene } from '../../../src/action/rollback/decide.ts'
import { rememberGood } from '../../../src/action/rollback/last-good.ts'
import { survey } from '../../../src/action/rollback/survey.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { deployment, DEPLOYMENT_ID, NEW_REVISION_ID, OLD_REVISION_ID, revision } from '../support/answers.ts'
import { fakeDeps } from '../support/deps.ts'

const { signal } = new AbortController()
const SOURCE = { repo_ref: 'refs/tags/v1', graph_config_path: null, image_uri: null, repo_commit_sha: 'aaa' }
const GOOD = { revisionId: OLD_REVISION_ID, source: SOURCE, buildOnPush: false }

describe('what a rollback learns', () => {
  it('is kept apart until it is taken over', () => {
    const deps = fakeDeps()
    deps.journal.set('revision-id', 'bad')
    deps.journal.set('deployment-name', 'agent')
    const aside = setAside(deps)
    const { journal } = aside.deps
    journal.set('revision-id', 'back')
    journal.set('commit-sha', null)
    journal.set('image-uri', undefined)
    journal.set('revision-status', '')
    expect([aside.output('revision-id'), journal.output('revision-id'), deps.outputs['revision-id']]).toEqual([
      'back',
      'back',
      'bad',
    ])
    expect([aside.output('deployment-name'), journal.output('deployment-name')]).toEqual([undefined, 'agent'])
    for (const name of ['commit-sha', 'image-uri', 'revision-status'] as const) expect(aside.output(name)).toBeUndefined()
    aside.commit()
    expect(deps.outputs).toEqual({ 'revision-id': 'back', 'deployment-name': 'agent' })
  })

  it('has each status once, its own log, smoke test and word of what was asked', () => {
    const deps = fakeDeps()
    const aside = setAside(deps)
    const { journal, log } = aside.deps
    journal.transition('BUILDING', 1)
    journal.transition('BUILDING', 2)
    journal.transition('DEPLOYED', 3)
    journal.transition('BUILDING', 4)
    expect(aside.transitions).toEqual([
      { status: 'BUILDING', at: 1 },
      { status: 'DEPLOYED', at: 3 },
      { status: 'BUILDING', at: 4 },
    ])
    expect(deps.journal.transitions).toEqual([])
    const tail = { title: 'The log', lines: ['x'] }
    journal.setLogTail(tail)
    expect([aside.logTail(), deps.journal.logTail]).toEqual([tail, undefined])
    expect([aside.smokeTest(), aside.asked()]).toEqual([undefined, false])
    aside.ask()
    expect(aside.asked()).toBe(true)
    log.info('a line')
    log.warning('a warning')
    log.group('A title', ['inside'])
    expect([deps.lines, deps.warnings, deps.groups]).toEqual([
      ['Rollback: a line'],
      ['Rollback: a warning'],
      [{ title: 'Rollback: A title', lines: ['inside'] }],
    ])
  })
})

describe('what is remembered', () => {
  it('is the revision that serves, with the settings of the deployment', async () => {
    const old = revision('DEPLOYED', { id: OLD_REVISION_ID })
    const deps = fakeDeps({ getRevision: vi.fn(async () => old) })
    expect(await rememberGood({ deployment: deployment(), signal, deps })).toEqual({
      revisionId: OLD_REVISION_ID,
      source: old.source_revision_config,
      buildOnPush: false,
    })
    const asked = { deploymentId: DEPLOYMENT_ID, revisionId: OLD_REVISION_ID, signal }
    expect(vi.mocked(deps.controlPlane.getRevision).mock.calls).toEqual([[asked]])
    expect(deps.controlPlane.listRevisions).not.toHaveBeenCalled()
  })

  it.each([null, undefined])('is the newest one that was ever deployed, where %s serves', async (active) => {
    const deps = fakeDeps({
      listRevisions: vi.fn(async () => [revision('DEPLOYED'), revision('DEPLOYED', { id: OLD_REVISION_ID })]),
    })
    const remembered = await rememberGood({ deployment: deployment({ active_revision_id: active }), signal, deps })
    expect(remembered?.revisionId).toBe(NEW_REVISION_ID)
    const asked = { deploymentId: DEPLOYMENT_ID, status: ['DEPLOYED'], max: 1, signal }
    expect(vi.mocked(deps.controlPlane.listRevisions).mock.calls).toEqual([[asked]])
  })

  it('is nothing without such a one, and a failure without an answer', async () => {
    const unserved = deployment({ active_revision_id: null })
    expect(await rememberGood({ deployment: unserved, signal, deps: fakeDeps() })).toBeNull()
    const deps = fakeDeps({ listRevisions: async () => Promise.reject(httpFailure(503)) })
    await expect(rememberGood({ deployment: unserved, signal, deps })).rejects.toMatchObject({
      code: 'E_UNAVAILABLE',
      message: 'Finding out what a rollback would bring back failed: GET /v2/deployments answered 503.',
    })
  })
})

function scene(failed: Partial<typeof SOURCE> = {}): Scene {
  return {
    good: GOOD,
    failed: { revisionId: 'bad', status: 'DEPLOYED', source: { ...SOURCE, repo_commit_sha: 'bbb', ...failed } },
    activeRevisionId: 'bad',
    latestRevisionId: 'bad',
  }
}

const answered = (revisionId: string | null) => async () => ({ deployment: deployment(), revisionId, recovered: false })

async function brought(plane: Partial<ControlPlane>, where = scene({ repo_ref: 'refs/tags/v2' })) {
  const deps = fakeDeps(plane)
  const result = await bringBack({ deployment: deployment({ latest_revision_id: NEW_REVISION_ID }), scene: where, signal, deps })
  return { result, ...deps }
}

describe('the last good source', () => {
  it('is asked for by a redeploy of its revision', async () => {
    const redeployRevision = vi.fn<ControlPlane['redeployRevision']>(answered('back'))
    const { result, controlPlane } = await brought({ redeployRevision })
    expect(result).toEqual({ revisionId: 'back', how: 'redeployed' })
    expect(redeployRevision.mock.calls).toEqual([
      [
        {
          deploymentId: DEPLOYMENT_ID,
          revisionId: OLD_REVISION_ID,
          previousLatestRevisionId: NEW_REVISION_ID,
          signal,
        },
      ],
    ])
    expect(controlPlane.patchDeployment).not.toHaveBeenCalled()
  })

  it.each([
    requestFailure({ kind: 'unsupported', summary: 'is not there' }),
    ...[400, 404, 409, 422].map((status) => httpFailure(status)),
  ])('is asked for once more where that is refused: %s', async (refusal) => {
    const patchDeployment = vi.fn<ControlPlane['patchDeployment']>(answered('back'))
    const { result, lines } = await brought({ redeployRevision: async () => Promise.reject(refusal), patchDeployment })
    expect(result).toEqual({ revisionId: 'back', how: 'updated' })
    expect(lines).toEqual([`The revision cannot be redeployed (${refusal.message}): its source is asked for once more.`])
    expect(patchDeployment.mock.calls).toEqual([
      [
        {
          id: DEPLOYMENT_ID,
          body: { source_revision_config: { repo_ref: 'refs/tags/v1' } },
          previousLatestRevisionId: NEW_REVISION_ID,
          signal,
        },
      ],
    ])
  })

  it('cannot be brought back where both ways are closed', async () => {
    const { result, controlPlane } = await brought({ redeployRevision: async () => Promise.reject(httpFailure(400)) }, scene())
    expect(result).toEqual({
      impossible:
        'GET /v2/deployments answered 400; and refs/tags/v1 has moved from aaa to bbb, ' +
        'and the control plane builds from branches and tags only',
    })
    expect(controlPlane.patchDeployment).not.toHaveBeenCalled()
  })

  it.each([401, 403, 429, 500, 503])('is not asked for in another way after a %d', async (status) => {
    const failing = brought({ redeployRevision: async () => Promise.reject(httpFailure(status)) })
    await expect(failing).rejects.toMatchObject({
      message: `Bringing the revision ${OLD_REVISION_ID} back failed: GET /v2/deployments answered ${status}.`,
    })
  })

  it('is a failure where the update is refused as well, or makes nothing', async () => {
    const unsupported = async () => Promise.reject(httpFailure(404))
    await expect(
      brought({ redeployRevision: unsupported, patchDeployment: async () => Promise.reject(httpFailure(422)) }),
    ).rejects.toMatchObject({
      code: 'E_VALIDATION',
      message: `Bringing the revision ${OLD_REVISION_ID} back failed: GET /v2/deployments answered 422.`,
    })
    const nothing = { code: 'E_PROTOCOL', message: 'The control plane accepted the rollback, but made no new revision.' }
    await expect(brought({ redeployRevision: unsupported, patchDeployment: answered(null) })).rejects.toMatchObject(nothing)
    await expect(brought({ redeployRevision: answered(null) })).rejects.toMatchObject(nothing)
  })
})

describe('the look at what serves', () => {
  const look = (deps: ReturnType<typeof fakeDeps>) =>
    survey({ deploymentId: DEPLOYMENT_ID, revisionId: NEW_REVISION_ID, good: GOOD, signal, deps })

  it('waits until the failed revision has ended', async () => {
    const states = ['DEPLOYING', 'DEPLOYING', 'DEPLOY_FAILED']
    const last = revision('DEPLOY_FAILED')
    const deps = fakeDeps({ getRevision: async () => revision(states.shift() ?? 'none') })
    const seen = await look(deps)
    expect(deps.effects.slept).toEqual([2000, 2000])
    expect(seen.scene).toEqual({
      good: GOOD,
      failed: { revisionId: NEW_REVISION_ID, status: 'DEPLOY_FAILED', source: last.source_revision_config },
      activeRevisionId: NEW_REVISION_ID,
      latestRevisionId: NEW_REVISION_ID,
    })
    expect(seen.deployment.id).toBe(DEPLOYMENT_ID)
  })

  it('gives up after a minute', async () => {
    const deps = fakeDeps({ getRevision: async () => revision('DEPLOYING') })
    await expect(look(deps)).rejects.toMatchObject({
      code: 'E_TIMEOUT',
      message: `The revision ${NEW_REVISION_ID} is still DEPLOYING: it may yet come into service.`,
      next: 'Look at the deployment on the control plane.',
    })
    expect(deps.effects.slept).toEqual(Array.from({ length: 30 }, () => 2000))
    expect(deps.controlPlane.getDeployment).not.toHaveBeenCalled()
  })

  it('says what it was doing when it fails', async () => {
    const deps = fakeDeps({ getDeployment: async () => Promise.reject(httpFailure(503)) })
    await expect(look(deps)).rejects.toMatchObject({
      message: 'Finding out what serves failed: GET /v2/deployments answered 503.',
    })
  })
})
