import { describe, expect, it, vi } from 'vitest'
import type { ControlPlane } from '../../src/client/control-plane.ts'
import { prove } from '../../src/action/prove.ts'
import type { ActionFailure } from '../../src/action/report/error-codes.ts'
import { requestFailure } from '../support/request-failure.ts'
import { deployment, DEPLOYMENT_ID, NEW_REVISION_ID } from './support/answers.ts'
import { fakeDeps } from './support/deps.ts'
import { agentThat, OTHER, planeOf, step, TEST, world } from './rollback/support.ts'

describe('the proof of a revision', () => {
  /** A step whose deployment is taken over, or falls silent, once the smoke test has begun. */
  const overtaken = async (afterwards: () => ReturnType<typeof deployment>, answers: boolean[] = []) => {
    const state = world()
    let begun = false
    const { getDeployment } = planeOf(state)
    return await step({
      state,
      answers,
      wanted: { smokeTest: TEST, rollbackOnFailure: false },
      onTest: () => (begun = true),
      plane: { getDeployment: async (id, signal) => (begun ? afterwards() : await getDeployment!(id, signal)) },
    })
  }
  const other = () => deployment({ active_revision_id: OTHER, latest_revision_id: OTHER })

  it.each([[[true]], [[false]]])('is none when another revision has answered (%j)', async (answers) => {
    const { code, status, failure, outputs } = await overtaken(other, answers)
    expect([code, status]).toEqual(['E_SUPERSEDED', 'superseded'])
    expect(failure?.message).toContain(OTHER)
    expect(outputs['smoke-test']).toBe('skipped')
  })

  it('is none when it cannot be verified whose answer it was', async () => {
    const away = () => {
      throw requestFailure()
    }
    const { code, failure } = await overtaken(away)
    expect(code).toBe('E_UNAVAILABLE')
    expect(failure?.message).toContain('verifying that the same revision still serves')
    expect((await overtaken(away, [false])).code).toBe('E_SMOKE_TEST')
  })

  it('stands where the control plane does not tell which revision serves', async () => {
    const silent = () => deployment({ active_revision_id: undefined, latest_revision_id: NEW_REVISION_ID })
    expect((await overtaken(silent)).status).toBe('deployed')
  })
})

describe('prove', () => {
  async function proof(good: boolean, getDeployment: ControlPlane['getDeployment']) {
    const deps = fakeDeps({ getDeployment: vi.fn(getDeployment) })
    deps.journal.set('deployment-url', 'https://agent.example.com')
    const agentServer = agentThat(() => good)
    const ended = prove({ deploymentId: DEPLOYMENT_ID, revisionId: NEW_REVISION_ID, test: TEST, deps: { ...deps, agentServer } })
    const failure = await ended.then(
      () => undefined,
      (error: ActionFailure) => `${error.code} ${error.message.split('\n')[0]}`,
    )
    return { failure, smokeTest: deps.outputs['smoke-test'], getDeployment: vi.mocked(deps.controlPlane.getDeployment), deps }
  }
  const serving = (active: string | null | undefined) => async () => deployment({ active_revision_id: active })
  const replaced = `E_SUPERSEDED The revision ${NEW_REVISION_ID} was deployed, but another one serves by now: ${OTHER}.`

  it.each([NEW_REVISION_ID, undefined])('stands when %s serves', async (active) => {
    const { failure, smokeTest, getDeployment, deps } = await proof(true, serving(active))
    expect([failure, smokeTest]).toEqual([undefined, 'passed'])
    expect(getDeployment).toHaveBeenCalledExactlyOnceWith(DEPLOYMENT_ID, deps.signal)
  })

  it.each([NEW_REVISION_ID, null, undefined])('fails with the test when %s serves', async (active) => {
    const { failure, smokeTest } = await proof(false, serving(active))
    expect(failure).toMatch(/^E_SMOKE_TEST /)
    expect(smokeTest).toBe('failed')
  })

  it('does not stand when none serves', async () => {
    const { failure } = await proof(true, serving(null))
    expect(failure).toBe(
      `E_PROTOCOL The revision ${NEW_REVISION_ID} is DEPLOYED, but the control plane says that no revision serves.`,
    )
  })

  it.each([true, false])('is none of this revision when another one serves; a good answer: %s', async (good) => {
    const { failure, smokeTest } = await proof(good, serving(OTHER))
    expect([failure, smokeTest]).toEqual([replaced, 'skipped'])
  })

  it('needs to know who answered, unless the answer was wrong', async () => {
    const away = async () => Promise.reject(requestFailure())
    expect((await proof(true, away)).failure).toBe(
      'E_UNAVAILABLE The smoke test passed, but verifying that the same revision still serves failed: ' +
        'GET /v2/deployments got no answer.',
    )
    expect((await proof(false, away)).failure).toMatch(/^E_SMOKE_TEST /)
  })
})

describe('no smoke test', () => {
  it('needs no proof', async () => {
    const deps = fakeDeps()
    await prove({ deploymentId: DEPLOYMENT_ID, revisionId: NEW_REVISION_ID, test: undefined, deps })
    expect(deps.controlPlane.getDeployment).not.toHaveBeenCalled()
    expect(deps.outputs).toEqual({})
  })
})
