import { describe, expect, it, vi } from 'vitest'
import { findDeployment } from '../../src/action/find.ts'
import { httpFailure } from '../support/request-failure.ts'
import { deployment, DEPLOYMENT_ID } from './support/answers.ts'
import { fakeDeps, TARGET_BY_ID } from './support/deps.ts'

const signal = new AbortController().signal

describe('findDeployment', () => {
  it('asks by the id or by the name, with the signal of the step', async () => {
    const deps = fakeDeps({ getDeployment: vi.fn(async () => deployment()) })
    expect(await findDeployment({ inputs: { target: TARGET_BY_ID }, signal, deps })).toEqual(deployment())
    expect(deps.controlPlane.getDeployment).toHaveBeenCalledWith(DEPLOYMENT_ID, signal)
    expect(deps.controlPlane.findDeploymentByName).not.toHaveBeenCalled()
    expect(await findDeployment({ inputs: { target: { name: 'agent' } }, signal, deps })).toEqual(deployment())
    expect(deps.controlPlane.findDeploymentByName).toHaveBeenCalledWith('agent', signal)
    expect(deps.controlPlane.getDeployment).toHaveBeenCalledTimes(1)
  })

  it('gives null for a name that nothing has', async () => {
    const deps = fakeDeps({ findDeploymentByName: async () => null })
    expect(await findDeployment({ inputs: { target: { name: 'agent' } }, signal, deps })).toBeNull()
  })

  it.each([
    [TARGET_BY_ID, `Reading the deployment ${DEPLOYMENT_ID} failed: `],
    [{ name: 'agent' }, "Finding the deployment 'agent' failed: "],
  ])('says of %j what it was doing when it failed', async (target, words) => {
    const fail = async () => Promise.reject(httpFailure(401))
    const deps = fakeDeps({ getDeployment: fail, findDeploymentByName: fail })
    const error: unknown = await findDeployment({ inputs: { target }, signal, deps }).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'E_AUTH', message: expect.stringMatching(new RegExp(`^${words}`)) as string })
  })
})
