import { describe, expect, it } from 'vitest'
import { deployment, NEW_REVISION_ID, requestFailure } from './support/answers.ts'
import { OTHER, planeOf, step, TEST, world } from './rollback/support.ts'

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
    const silent = () => deployment({ active_revision_id: null, latest_revision_id: NEW_REVISION_ID })
    expect((await overtaken(silent)).status).toBe('deployed')
  })
})
