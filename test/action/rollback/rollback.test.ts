import { describe, expect, it } from 'vitest'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { BACK, BAD, BAD_COMMIT, GOOD, GOOD_COMMIT, OTHER, planeOf, step, TEST, world } from './support.ts'

const tag = (name: string) =>
  ({
    kind: 'git_host',
    repoUrl: 'https://github.com/acme/agents',
    repoRef: `refs/tags/${name}`,
    configPath: 'langgraph.json',
  }) as const

describe('a revision that failed while the last good one goes on serving', () => {
  it.each(['CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED'])(
    '%s of the same ref: nothing has to be brought back',
    async (end) => {
      const { code, status, story, state, outputs } = await step({ state: world({ ends: [end] }) })
      expect([code, status]).toEqual([`E_${end}`, 'rolled-back'])
      expect(state.changes).toEqual(['patch main'])
      expect(story).toBe(`Rolled back: the revision ${GOOD} never stopped serving.`)
      expect(outputs).toMatchObject({ 'revision-id': GOOD, 'revision-status': 'DEPLOYED', 'commit-sha': GOOD_COMMIT })
    },
  )

  it('proves that it answers', async () => {
    const good = await step({ state: world({ ends: ['BUILD_FAILED'] }), wanted: { smokeTest: TEST } })
    expect(good).toMatchObject({ status: 'rolled-back', tested: [GOOD], outputs: { 'smoke-test': 'passed' } })
    expect(good.story).toContain('it passes the smoke test')
    const bad = await step({ state: world({ ends: ['BUILD_FAILED'] }), wanted: { smokeTest: TEST }, answers: [false] })
    expect(bad).toMatchObject({
      code: 'E_BUILD_FAILED',
      status: 'failed',
      outputs: { 'smoke-test': 'skipped', 'revision-id': BAD },
    })
    expect(bad.story).toMatch(new RegExp(`rollback failed as well.*E_SMOKE_TEST.*${GOOD} serves`, 's'))
  })

  it('brings its source back to the deployment where that has changed', async () => {
    const { status, state, story, outputs } = await step({
      state: world({ ends: ['BUILD_FAILED'], buildOnPush: true }),
      wanted: { source: tag('v2'), buildOnPush: false },
    })
    expect(status).toBe('rolled-back')
    expect(state.changes).toEqual(['patch refs/tags/v2', `redeploy ${GOOD}`])
    expect(state.buildOnPush).toBe(true)
    expect(story).toBe(`Rolled back: the revision ${BACK}, redeployed from ${GOOD}, serves in place of ${BAD}.`)
    expect(outputs['revision-id']).toBe(BACK)
  })

  it('brings its environment back where the step has replaced it, and promises nothing about it', async () => {
    const secrets = [
      { name: 'MODEL_KEY', value: 'hunter2' },
      { name: 'TOOL_KEY', value: 'hunter3' },
    ]
    const { status, state, story } = await step({ state: world({ ends: ['DEPLOY_FAILED'] }), wanted: { secrets } })
    expect([status, state.changes]).toEqual(['rolled-back', ['patch main', `redeploy ${GOOD}`]])
    expect(story).toContain('Whether MODEL_KEY, TOOL_KEY have their earlier values again is for the control plane')
    const without = await step({ state: world({ ends: ['DEPLOY_FAILED'], canRedeploy: false }), wanted: { secrets } })
    expect([without.status, without.state.changes]).toEqual(['rolled-back', ['patch main']])
    expect(without.story).toContain('MODEL_KEY, TOOL_KEY keep what this step has set: their earlier values cannot be read back.')
    expect(without.story + story).not.toContain('hunter')
  })

  it('does not put a branch that may have moved in the place of what serves', async () => {
    const { status, state, story } = await step({
      state: world({ ends: ['BUILD_FAILED'], canRedeploy: false }),
      wanted: { source: tag('v2') },
    })
    expect([status, state.changes, state.active]).toEqual(['rolled-back', ['patch refs/tags/v2'], GOOD])
    expect(story).toContain("The deployment's settings stay those of the failed revision")
    expect(story).toContain('main is a branch')
  })
})

describe('a revision that serves and is bad', () => {
  const failing = { wanted: { smokeTest: TEST }, answers: [false, true] }

  it('is replaced by the last good one, which is tested itself', async () => {
    const result = await step(failing)
    expect(result).toMatchObject({ code: 'E_SMOKE_TEST', status: 'rolled-back', tested: [BAD, BACK] })
    expect(result.state.changes).toEqual(['patch main', `redeploy ${GOOD}`])
    expect(result.story).toBe(
      `Rolled back: the revision ${BACK}, redeployed from ${GOOD}, serves in place of ${BAD} and passes the smoke test.`,
    )
    expect(result.outputs).toMatchObject({
      'revision-id': BACK,
      'revision-status': 'DEPLOYED',
      'commit-sha': GOOD_COMMIT,
      'previous-revision-id': GOOD,
      'smoke-test': 'passed',
    })
    expect(result.journal.smokeTest?.result).toBe('failed')
    expect(result.journal.rollback).toMatchObject({ failedRevisionId: BAD, revisionId: BACK, smokeTest: { result: 'passed' } })
    expect(result.state.revisions.map(({ id }) => id)).toEqual([GOOD, BAD, BACK])
    expect(result).toMatchObject({ state: { active: BACK } })
  })

  it.each([false, 'latest only'] as const)(
    'is replaced by an update to the old tag where redeploy is %s',
    async (canRedeploy) => {
      const state = world({ canRedeploy })
      state.revisions[0]!.source['repo_ref'] = 'refs/tags/v1'
      const { status, story } = await step({ state, ...failing, wanted: { ...failing.wanted, source: tag('v2') } })
      expect([status, state.changes]).toEqual(['rolled-back', ['patch refs/tags/v2', 'patch refs/tags/v1']])
      expect(story).toContain(`the revision ${BACK}, updated from ${GOOD}, serves`)
    },
  )

  it('is not called rolled back when the old ref has another commit by now', async () => {
    const state = world({ canRedeploy: false, heads: { 'refs/tags/v1': 'd'.repeat(40), 'refs/tags/v2': BAD_COMMIT } })
    state.revisions[0]!.source['repo_ref'] = 'refs/tags/v1'
    const { code, status, story, outputs } = await step({ state, ...failing, wanted: { ...failing.wanted, source: tag('v2') } })
    expect([code, status]).toEqual(['E_SMOKE_TEST', 'failed'])
    expect(story).toContain('did not bring the last good commit back')
    expect(story).toContain(GOOD_COMMIT)
    expect(story).toContain('d'.repeat(40))
    expect(outputs['revision-id']).toBe(BAD)
  })

  it('stays where the branch has moved and nothing can be redeployed, and says so', async () => {
    const { code, status, story, state } = await step({ state: world({ canRedeploy: false }), ...failing })
    expect([code, status, state.active]).toEqual(['E_SMOKE_TEST', 'failed', BAD])
    expect(state.changes).toEqual(['patch main'])
    expect(story).toContain(`main has moved from ${GOOD_COMMIT} to ${BAD_COMMIT}`)
    expect(story).toContain(`${BAD}, which failed, goes on serving`)
  })

  it('goes back to the old image', async () => {
    const image = (digit: string) => `registry.example.com/agent@sha256:${digit.repeat(64)}`
    const state = world({ canRedeploy: false, revisions: [{ id: GOOD, status: 'DEPLOYED', source: { image_uri: image('1') } }] })
    const source = { kind: 'external_docker', imageUri: image('2') } as const
    const { status } = await step({ state, ...failing, wanted: { ...failing.wanted, source } })
    expect([status, state.changes]).toEqual(['rolled-back', [`patch ${image('2')}`, `patch ${image('1')}`]])
  })

  it('is not called rolled back by an update where the good commit is not told', async () => {
    const state = world({ canRedeploy: false })
    state.revisions[0]!.source = { repo_ref: 'refs/tags/v1', graph_config_path: 'langgraph.json' }
    const { status, story } = await step({ state, ...failing, wanted: { ...failing.wanted, source: tag('v2') } })
    expect([status, state.changes]).toEqual(['failed', ['patch refs/tags/v2', 'patch refs/tags/v1']])
    expect(story).toContain(`does not tell which commit ${GOOD} was built from`)
  })

  it('is replaced also when the control plane has not switched over to it yet', async () => {
    const state = world()
    const { getDeployment } = planeOf(state)
    const plane = {
      getDeployment: async (id: string, signal: AbortSignal) => ({
        ...(await getDeployment!(id, signal)),
        ...(state.revisions.length === 2 ? { active_revision_id: GOOD } : {}),
      }),
    }
    const main = {
      kind: 'git_host',
      repoUrl: 'https://github.com/acme/agents',
      repoRef: 'main',
      configPath: 'langgraph.json',
    } as const
    const { code, status, story } = await step({
      state,
      plane,
      wanted: { source: { ...main, commit: GOOD_COMMIT, pinned: true } },
    })
    expect([code, status, state.changes]).toEqual(['E_CONFLICT', 'rolled-back', ['patch main', `redeploy ${GOOD}`]])
    expect(story).toContain(`the revision ${BACK}, redeployed from ${GOOD}, serves`)
  })

  it('does not promise that an image is the same one because its tag is', async () => {
    const state = world({ revisions: [{ id: GOOD, status: 'DEPLOYED', source: { image_uri: 'registry.example.com/agent:1' } }] })
    const source = { kind: 'external_docker', imageUri: 'registry.example.com/agent:2' } as const
    const { status, story } = await step({ state, ...failing, wanted: { ...failing.wanted, source } })
    expect(status).toBe('rolled-back')
    expect(story).toContain('named by a tag, registry.example.com/agent:1: whether it is still the same one cannot be told')
  })

  it('where the control plane does not tell what serves, goes back to the newest that was deployed', async () => {
    const { status, state } = await step({ state: world({ active: undefined }), ...failing })
    expect([status, state.changes]).toEqual(['rolled-back', ['patch main', `redeploy ${GOOD}`]])
  })

  it('does not take for serving what has stopped, where the control plane tells', async () => {
    const worldOf = (active: null | undefined) => world({ active, ends: ['BUILD_FAILED', 'DEPLOYED'] })
    const silent = await step({ state: worldOf(undefined) })
    expect([silent.state.changes, silent.story]).toEqual([
      ['patch main'],
      `Rolled back: the revision ${GOOD} never stopped serving.`,
    ])
    const stopped = await step({ state: worldOf(null) })
    expect(stopped.state.changes).toEqual(['patch main', `redeploy ${GOOD}`])
    expect(stopped).toMatchObject({ status: 'rolled-back', outputs: { 'revision-id': BACK } })
    const hopeless = await step({ state: { ...worldOf(null), canRedeploy: false } })
    expect(hopeless.status).toBe('failed')
    expect(hopeless.story).toMatch(/^The rollback is not possible: .*\. No revision serves\.$/)
  })

  it('is told with the failure of the rollback, when that fails as well', async () => {
    const build = await step({ ...failing, state: world({ ends: ['DEPLOYED', 'BUILD_FAILED'] }) })
    expect(build).toMatchObject({
      code: 'E_SMOKE_TEST',
      status: 'failed',
      outputs: { 'revision-id': BAD, 'smoke-test': 'failed' },
    })
    expect(build.story).toMatch(new RegExp(`rollback failed as well \\(revision ${BACK}\\): E_BUILD_FAILED.*${BAD} serves`, 's'))
    const test = await step({ ...failing, answers: [false, false] })
    expect(test).toMatchObject({ code: 'E_SMOKE_TEST', status: 'failed', outputs: { 'revision-id': BAD } })
    expect(test.story).toMatch(new RegExp(`rollback failed as well \\(revision ${BACK}\\): E_SMOKE_TEST.*${BACK} serves`, 's'))
    const away = await step({ ...failing, plane: { redeployRevision: async () => Promise.reject(requestFailure()) } })
    expect(away.story).toContain('The rollback failed as well: E_UNAVAILABLE')
  })
})

describe('a rollback that takes too long', () => {
  it('is left going, whatever on-timeout says: without it the failed revision would stay', async () => {
    const { code, status, story, controlPlane } = await step({
      state: world({ ends: ['DEPLOYED', 'BUILDING'] }),
      wanted: { smokeTest: TEST, onTimeout: 'interrupt', timeoutMs: 60_000 },
      answers: [false],
    })
    expect([code, status]).toEqual(['E_SMOKE_TEST', 'failed'])
    expect(story).toMatch(new RegExp(`revision ${BACK}.*E_TIMEOUT.*still BUILDING`, 's'))
    expect(controlPlane.interruptRevision).not.toHaveBeenCalled()
  })
})

describe('no rollback', () => {
  it('of what another step has done meanwhile', async () => {
    const state = world()
    const { getDeployment } = planeOf(state)
    // Somebody else's revision waits behind the one that failed.
    const plane = {
      getDeployment: async (id: string, signal: AbortSignal) => ({
        ...(await getDeployment!(id, signal)),
        latest_revision_id: OTHER,
      }),
    }
    const { code, status, story } = await step({ state, wanted: { smokeTest: TEST }, answers: [false], plane })
    expect([code, status, state.changes]).toEqual(['E_SMOKE_TEST', 'failed', ['patch main']])
    expect(story).toBe(`Nothing was rolled back: a newer revision, ${OTHER}, is on its way.`)
  })

  it.each([
    ['SKIPPED', 'superseded', 'another revision has taken over'],
    ['INTERRUPTED', 'failed', 'whoever interrupted'],
  ])('of a revision that ended %s', async (end, status, why) => {
    const result = await step({ state: world({ ends: [end] }) })
    expect(result.status).toBe(status)
    expect(result.story).toContain(why)
    expect(result.state.changes).toEqual(['patch main'])
  })

  it('of one that was not seen to end', async () => {
    const { status, story } = await step({ state: world({ ends: ['BUILDING'] }), wanted: { timeoutMs: 5000 } })
    expect(status).toBe('timed-out')
    expect(story).toContain('not seen to end')
  })

  it('of a new deployment', async () => {
    const { code, story } = await step({
      plane: {
        findDeploymentByName: async () => null,
        getRevision: async () => Promise.reject(httpFailure(404)),
      },
    })
    expect(code).toBe('E_NOT_FOUND')
    expect(story).toContain('Nothing was rolled back')
    const failed = await step({
      state: world({
        revisions: [{ id: GOOD, status: 'BUILD_FAILED', source: { repo_ref: 'main' } }],
        active: null,
        ends: ['BUILD_FAILED'],
      }),
    })
    expect(failed.story).toBe('Nothing was rolled back: there is no earlier revision to go back to.')
  })

  it('of one whose status is refused with a conflict', async () => {
    const state = world()
    const { getRevision } = planeOf(state)
    const plane: Parameters<typeof step>[0]['plane'] = {
      getRevision: async (options) =>
        options.revisionId === BAD ? Promise.reject(httpFailure(409)) : await getRevision!(options),
    }
    const { code, story } = await step({ state, plane })
    expect([code, story]).toEqual(['E_CONFLICT', 'Nothing was rolled back: it is not known that the revision is bad.'])
  })

  it('of what does not say so', async () => {
    const { status, story } = await step({ wanted: { smokeTest: TEST, rollbackOnFailure: false }, answers: [false] })
    expect([status, story]).toEqual(['failed', ''])
  })

  it('is promised when it cannot be found out what it would bring back', async () => {
    const { code, state } = await step({ plane: { getRevision: async () => Promise.reject(requestFailure()) } })
    expect([code, state.changes]).toEqual(['E_UNAVAILABLE', []])
  })
})

describe('a cancellation during the rollback', () => {
  it('leaves the rollback going, whatever on-cancel says', async () => {
    const state = world({ ends: ['DEPLOYED', 'BUILDING'] })
    const result = await step({
      state,
      wanted: { smokeTest: TEST, onCancel: 'interrupt' },
      answers: [false],
      onSleep: (deps) => {
        if (state.revisions.length === 3) deps.abort()
      },
    })
    expect(result).toMatchObject({ code: 'E_CANCELLED', status: 'cancelled' })
    expect(result.failure?.message).toContain('no such tool')
    expect(result.story).toContain(`the revision ${BACK} goes on by itself, whatever on-cancel says`)
    expect(result.controlPlane.interruptRevision).not.toHaveBeenCalled()
  })

  it('does not claim that nothing was begun while the answer is missing', async () => {
    const state = world()
    const { getDeployment } = planeOf(state)
    let abort: (() => void) | undefined
    const result = await step({
      state,
      wanted: { smokeTest: TEST },
      answers: [false],
      onSleep: (deps) => {
        abort = deps.abort
      },
      plane: {
        // The switch takes a moment: the step sleeps once before it tests.
        getDeployment: async (id, signal) => ({
          ...(await getDeployment!(id, signal)),
          ...(abort === undefined ? { active_revision_id: GOOD } : {}),
        }),
        redeployRevision: async () => {
          abort?.()
          throw requestFailure({ kind: 'cancelled', method: 'POST', ambiguous: true })
        },
      },
    })
    expect(result).toMatchObject({ code: 'E_CANCELLED', status: 'cancelled' })
    expect(result.story).toContain('it may have begun')
    const lost = await step({
      wanted: { smokeTest: TEST },
      answers: [false],
      plane: { redeployRevision: async () => Promise.reject(requestFailure({ method: 'POST', ambiguous: true })) },
    })
    expect(lost.story).toContain(`It may have begun all the same. The revision ${BAD} serves.`)
  })
})
