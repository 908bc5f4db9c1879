import { describe, expect, it, vi } from 'vitest'
import type { ControlPlane } from '../../../src/client/control-plane.ts'
import { startDeadline } from '../../../src/client/deadline.ts'
import { awaitGone, findByName, isGoing, look, requestRemoval } from '../../../src/action/preview/remove.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { deployment, DEPLOYMENT_ID } from '../support/answers.ts'
import { fakeDeps } from '../support/deps.ts'

const signal = new AbortController().signal
const PATH = `/v2/deployments/${DEPLOYMENT_ID}`
const preview = deployment({ name: 'agent-pr-7' })
const going = deployment({ name: 'agent-pr-7', status: 'AWAITING_DELETE' })
const gone = httpFailure(404, { path: PATH, detail: `Deployment ID ${DEPLOYMENT_ID.toUpperCase()} not found.` })
const strange = httpFailure(404, { path: PATH, detail: 'no backend' })

describe('isGoing', () => {
  it.each([
    ['AWAITING_DELETE', true],
    ['AWAITING_FINAL_DELETE', true],
    ['READY', false],
    ['NOT_AWAITING_DELETE', false],
    ['AWAITING_DELETE_APPROVAL', false],
    ['AWAITING_DATABASE', false],
    [null, false],
  ])('of the status %s is %s', (status, expected) => {
    expect(isGoing(deployment({ status }))).toBe(expected)
  })
})

describe('findByName', () => {
  it('finds each deployment of exactly this name once', async () => {
    const second = deployment({ id: 'another-id', name: 'agent-pr-7' })
    const listDeployments = vi.fn(async () => [preview, deployment({ name: 'agent-pr-70', id: 'x' }), second, preview])
    expect(await findByName('agent-pr-7', signal, fakeDeps({ listDeployments }))).toEqual([preview, second])
    expect(listDeployments.mock.calls).toEqual([[{ nameContains: 'agent-pr-7', signal }]])
  })

  it('says what failed', async () => {
    const failure = httpFailure(401)
    await expect(
      findByName('agent-pr-7', signal, fakeDeps({ listDeployments: () => Promise.reject(failure) })),
    ).rejects.toMatchObject({
      code: 'E_AUTH',
      message: "Finding the deployment 'agent-pr-7' failed: GET /v2/deployments answered 401.",
      cause: failure,
    })
  })
})

describe('requestRemoval', () => {
  it('leaves what it asks for to post until the answer is there', async () => {
    const seen: unknown[] = []
    const deps = fakeDeps()
    const deleteDeployment = vi.fn(async () => {
      seen.push(deps.state['pending'])
      return { alreadyGone: false }
    })
    await requestRemoval(preview, signal, { ...deps, controlPlane: { ...deps.controlPlane, deleteDeployment } })
    expect(seen).toEqual([`remove the deployment 'agent-pr-7' (${DEPLOYMENT_ID})`])
    expect(deps.state['pending']).toBe('')
    expect(deleteDeployment.mock.calls).toEqual([[{ id: DEPLOYMENT_ID, deleteTracingProject: true, signal }]])
  })

  it('asks for nothing that is on its way out', async () => {
    const deps = fakeDeps()
    await requestRemoval(going, signal, deps)
    expect([vi.mocked(deps.controlPlane.deleteDeployment).mock.calls, deps.state]).toEqual([[], {}])
  })

  const pending = `remove the deployment 'agent-pr-7' (${DEPLOYMENT_ID})`
  it.each([
    ['the service refuses', httpFailure(403, { method: 'DELETE', path: PATH }), 'E_AUTH', '', 'answered 403'],
    [
      'the step is cancelled',
      requestFailure({ kind: 'cancelled', method: 'DELETE', path: PATH }),
      'E_CANCELLED',
      pending,
      'got no answer',
    ],
    [
      'the time is over',
      requestFailure({ kind: 'deadline', method: 'DELETE', path: PATH }),
      'E_TIMEOUT',
      pending,
      'got no answer',
    ],
  ])('fails when %s', async (_, failure, code, left, summary) => {
    const deps = fakeDeps({ deleteDeployment: () => Promise.reject(failure) })
    await expect(requestRemoval(preview, signal, deps)).rejects.toMatchObject({
      code,
      message: `Removing the deployment 'agent-pr-7' (${DEPLOYMENT_ID}) failed: DELETE ${PATH} ${summary}.`,
    })
    expect(deps.state['pending']).toBe(left)
  })
})

describe('look', () => {
  const rejects = (error: unknown) => async () => {
    throw error
  }
  it.each<[string, Partial<ControlPlane>, string]>([
    ['it answers', { getDeployment: async () => preview }, 'there'],
    ['it answers that it is being deleted', { getDeployment: async () => going }, 'going'],
    ['the 404 names it', { getDeployment: rejects(gone) }, 'gone'],
    [
      'the 404 does not name it, and it is listed',
      { getDeployment: rejects(strange), listDeployments: async () => [preview] },
      'there',
    ],
    [
      'the 404 does not name it, and it is listed as going',
      { getDeployment: rejects(strange), listDeployments: async () => [going] },
      'going',
    ],
    [
      'the 404 does not name it, and it is not listed',
      { getDeployment: rejects(strange), listDeployments: async () => [] },
      'gone',
    ],
    [
      'the 404 has no words, and another one of its name is listed',
      {
        getDeployment: rejects(httpFailure(404)),
        listDeployments: async () => [deployment({ name: 'agent-pr-7', id: 'other' })],
      },
      'gone',
    ],
  ])('when %s', async (_, plane, expected) => {
    expect(await look(preview, signal, fakeDeps(plane))).toBe(expected)
  })

  it('does not list what the 404 itself says', async () => {
    const deps = fakeDeps({ getDeployment: rejects(gone) })
    await look(preview, signal, deps)
    expect(deps.controlPlane.listDeployments).not.toHaveBeenCalled()
  })

  it.each([
    ['another status', httpFailure(500, { path: PATH }), 'E_UNAVAILABLE', `GET ${PATH} answered 500.`],
    [
      'a proxy whose 404 was no answer of the service',
      requestFailure({ kind: 'protocol', status: 404, path: PATH, summary: 'answered HTML' }),
      'E_PROTOCOL',
      `GET ${PATH} answered HTML.`,
    ],
  ])('fails after %s', async (_, failure, code, says) => {
    await expect(look(preview, signal, fakeDeps({ getDeployment: rejects(failure) }))).rejects.toMatchObject({
      code,
      message: `Reading the deployment 'agent-pr-7' (${DEPLOYMENT_ID}) failed: ${says}`,
    })
  })

  it('hands on what is no failure of a request', async () => {
    const error = Object.assign(new Error('a fault'), { kind: 'http', status: 404 })
    await expect(look(preview, signal, fakeDeps({ getDeployment: rejects(error) }))).rejects.toMatchObject({
      code: 'E_PROTOCOL',
      message: 'internal error: Error: a fault',
    })
  })
})

describe('awaitGone', () => {
  const notGone = {
    code: 'E_TIMEOUT',
    message: `The deployment 'agent-pr-7' (${DEPLOYMENT_ID}) is being deleted, and was not gone in time.`,
    next: 'Raise `timeout` if the service is merely slow; otherwise look at the deployment on the control plane.',
  }

  function scene({ looks, timeoutMs = 600_000 }: { looks: number; timeoutMs?: number }) {
    let left = looks
    const deps = fakeDeps({ getDeployment: async () => (left-- > 0 ? going : Promise.reject(gone)) })
    const deadline = startDeadline({ timeoutMs, parent: deps.signal, effects: deps.effects })
    deadline.stop()
    return { deps, deadline }
  }

  it('looks more and more seldom, every five seconds in the end', async () => {
    const { deps, deadline } = scene({ looks: 9 })
    await awaitGone(preview, deadline, deps)
    expect(deps.effects.slept).toEqual([500, 750, 1125, 1687.5, 2531.25, 3796.875, 5000, 5000, 5000])
  })

  it.each([
    [499, []],
    [500, []],
    [501, [500]],
    [1250, [500]],
    [1251, [500, 750]],
  ])('gives up after %i ms rather than sleep through the end', async (timeoutMs, slept) => {
    const { deps, deadline } = scene({ looks: Infinity, timeoutMs })
    await expect(awaitGone(preview, deadline, deps)).rejects.toMatchObject(notGone)
    expect(deps.effects.slept).toEqual(slept)
  })

  it.each([
    ['the time is over', new DOMException('the time of 600000 ms is over', 'TimeoutError'), notGone],
    [
      'the step is cancelled',
      new DOMException('received SIGINT', 'AbortError'),
      { name: 'AbortError', message: 'received SIGINT' },
    ],
  ])('ends while it sleeps when %s', async (_, reason, expected) => {
    const { deps } = scene({ looks: Infinity })
    const controller = new AbortController()
    const deadline = { signal: controller.signal, remainingMs: () => 600_000, stop: () => undefined }
    deps.effects.sleep = async () => {
      controller.abort(reason)
      throw reason
    }
    await expect(awaitGone(preview, deadline, deps)).rejects.toMatchObject(expected)
  })
})
