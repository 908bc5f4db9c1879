import { describe, expect, it, vi } from 'vitest'
import type { DeploymentAnswer } from '../../src/contract/answers.ts'
import { deadlineOf } from '../../src/client/deadline.ts'
import { makeRevision } from '../../src/action/make-revision.ts'
import { createBody, patchBody } from '../../src/action/requests.ts'
import { httpFailure, requestFailure } from '../support/request-failure.ts'
import { deployment, DEPLOYMENT_ID, NEW_REVISION_ID as ID, OLD_REVISION_ID } from './support/answers.ts'
import { caught } from './support/caught.ts'
import { fakeDeps, inputs, type TestDeps } from './support/deps.ts'

/** Makes a revision, and gives what was left for post, in its order. */
function make(found: DeploymentAnswer | null, deps: TestDeps = fakeDeps()) {
  const saved: [string, string][] = []
  const save = deps.journal.save
  deps.journal.save = (key, value) => {
    saved.push([key, value])
    save(key, value)
  }
  return { deps, saved, made: makeRevision({ inputs: inputs(), deployment: found, timeoutMs: 60_000, deps }) }
}

const updating = `update the deployment 'agent' (${DEPLOYMENT_ID})`
const creating = "create the deployment 'agent'"

describe('an update', () => {
  it.each([
    [false, `Made the revision ${ID}.`],
    [true, `Made the revision ${ID} (its answer was lost; it was found in the list).`],
  ])('makes a revision; found again: %s', async (recovered, line) => {
    let leftMs: number | undefined
    const patchDeployment = vi.fn(async ({ signal }: { signal: AbortSignal }) => {
      leftMs = deadlineOf(signal)! - deps.effects.now()
      return { deployment: deployment(), revisionId: ID, recovered }
    })
    const deps = fakeDeps({ patchDeployment })
    const { made, saved } = make(deployment(), deps)
    expect(await made).toEqual({ deploymentId: DEPLOYMENT_ID, revisionId: ID, previousId: OLD_REVISION_ID })
    expect(deps.lines).toEqual([line])
    expect(deps.outputs).toEqual({ 'revision-id': ID })
    expect(saved).toEqual([
      ['pending', updating],
      ['revisionId', ID],
      ['pending', ''],
    ])
    expect(patchDeployment).toHaveBeenCalledExactlyOnceWith({
      id: DEPLOYMENT_ID,
      body: patchBody(inputs()),
      previousLatestRevisionId: OLD_REVISION_ID,
      signal: expect.any(AbortSignal),
    })
    expect(leftMs).toBe(60_000)
  })

  it.each<[string | null, string | null, string]>([
    [null, OLD_REVISION_ID, OLD_REVISION_ID],
    [OLD_REVISION_ID, OLD_REVISION_ID, OLD_REVISION_ID],
    [null, null, 'none'],
  ])('that names %s after %s made none', async (revisionId, latest, words) => {
    const { made, saved, deps } = make(
      deployment({ latest_revision_id: latest }),
      fakeDeps({ patchDeployment: async () => ({ deployment: deployment(), revisionId, recovered: false }) }),
    )
    expect(await caught(made)).toEqual({
      code: 'E_PROTOCOL',
      message: `The control plane accepted the update of 'agent', but made no new revision: the latest one is ${words}, as before.`,
      tried: 'The update carried a source, which creates a revision (specification, section 2.2).',
    })
    expect(saved).toEqual([
      ['pending', updating],
      ['pending', ''],
    ])
    expect([deps.lines, deps.outputs]).toEqual([[], {}])
  })

  it('that was refused is not pending any more', async () => {
    const { made, saved, deps } = make(deployment(), fakeDeps({ patchDeployment: async () => Promise.reject(httpFailure(409)) }))
    expect(await caught(made)).toMatchObject({
      code: 'E_CONFLICT',
      message: "Updating the deployment 'agent' failed: GET /v2/deployments answered 409.",
    })
    expect(saved.at(-1)).toEqual(['pending', ''])
    expect([deps.lines, deps.journal.notes]).toEqual([[], []])
  })

  it.each([
    ['cancelled', 'E_CANCELLED'],
    ['deadline', 'E_TIMEOUT'],
  ] as const)('without an answer may have happened: %s', async (kind, code) => {
    const { made, saved, deps } = make(
      deployment(),
      fakeDeps({ patchDeployment: async () => Promise.reject(requestFailure({ kind })) }),
    )
    expect((await caught(made))['code']).toBe(code)
    const sentence = `The step asked to ${updating} and saw no answer: it may have happened.`
    expect([deps.lines, deps.journal.notes]).toEqual([[sentence], [sentence]])
    expect(saved).toEqual([['pending', updating]])
  })
})

describe('a creation', () => {
  it.each([
    [false, ''],
    [true, ' (its answer was lost; it was found by its name)'],
  ])('makes the first revision; found again: %s', async (recovered, lost) => {
    const createDeployment = vi.fn(async () => ({
      deployment: deployment({ latest_revision_id: ID, active_revision_id: null }),
      recovered,
    }))
    const { made, saved, deps } = make(null, fakeDeps({ createDeployment }))
    expect(await made).toEqual({ deploymentId: DEPLOYMENT_ID, revisionId: ID, previousId: null })
    expect(deps.lines).toEqual([`Created the deployment 'agent' (${DEPLOYMENT_ID})${lost}; revision ${ID}.`])
    expect(deps.outputs).toEqual({
      'deployment-name': 'agent',
      'deployment-id': DEPLOYMENT_ID,
      'deployment-url': 'https://agent.example.com',
      created: 'true',
      'revision-id': ID,
    })
    expect(saved).toEqual([
      ['pending', creating],
      ['deploymentId', DEPLOYMENT_ID],
      ['revisionId', ID],
      ['pending', ''],
    ])
    expect(createDeployment).toHaveBeenCalledExactlyOnceWith(createBody('agent', inputs()), expect.any(AbortSignal))
  })

  it.each([
    [false, ''],
    [true, ' (its answer was lost; it was found by its name)'],
  ])('without a revision is an answer that cannot be; found again: %s', async (recovered, lost) => {
    const { made, deps } = make(
      null,
      fakeDeps({ createDeployment: async () => ({ deployment: deployment({ latest_revision_id: null }), recovered }) }),
    )
    expect(await caught(made)).toEqual({
      code: 'E_PROTOCOL',
      message: `The deployment 'agent' (${DEPLOYMENT_ID}) was created${lost}, but the control plane names no revision of it.`,
    })
    expect(deps.outputs).toMatchObject({ 'deployment-id': DEPLOYMENT_ID, created: 'true' })
    expect(deps.state).toEqual({ deploymentId: DEPLOYMENT_ID, pending: '' })
  })

  it('that failed names the deployment that was wanted', async () => {
    const { made, deps } = make(null, fakeDeps({ createDeployment: async () => Promise.reject(requestFailure()) }))
    expect((await caught(made))['message']).toBe("Creating the deployment 'agent' failed: GET /v2/deployments got no answer.")
    expect(deps.outputs).toEqual({ 'deployment-name': 'agent' })
  })
})

describe('a cancellation', () => {
  it('before anything was asked for changes nothing', async () => {
    const deps = fakeDeps()
    deps.abort()
    const { made, saved } = make(deployment(), deps)
    expect(await caught(made)).toEqual({
      code: 'E_CANCELLED',
      message: 'The step was cancelled before anything was changed.',
    })
    expect(saved).toEqual([])
    expect(deps.controlPlane.patchDeployment).not.toHaveBeenCalled()
  })

  it('waits one and a half seconds for the answer', async () => {
    const deps: TestDeps = fakeDeps({
      createDeployment: async (_, signal) => {
        deps.abort()
        expect(signal.aborted).toBe(false)
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        throw requestFailure({ kind: 'cancelled' })
      },
    })
    const { made } = make(null, deps)
    expect((await caught(made))['code']).toBe('E_CANCELLED')
    expect(deps.effects.slept).toEqual([1500])
    expect(deps.journal.notes).toEqual([`The step asked to ${creating} and saw no answer: it may have happened.`])
  })

  it('begins no wait when the answer is there', async () => {
    const deps = fakeDeps()
    await make(deployment(), deps).made
    deps.abort()
    await Promise.resolve()
    expect(deps.effects.slept).toEqual([])
  })
})
