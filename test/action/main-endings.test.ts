import { describe, expect, it } from 'vitest'
import type { ControlPlane } from '../../src/client/control-plane.ts'
import { httpFailure, requestFailure } from '../support/request-failure.ts'
import { deployment, NEW_REVISION_ID, revision } from './support/answers.ts'
import { fakeDeps, type TestDeps } from './support/deps.ts'
import { expectNoChange, step } from './support/step.ts'

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
    expectNoChange(controlPlane)
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

describe('what a step says', () => {
  const goesOn = `on-cancel is leave: the revision ${NEW_REVISION_ID} goes on by itself.`

  it('warns of what its inputs are warned of, in their order', async () => {
    expect((await step({ warnings: ['first', 'second'] })).warnings).toEqual(['first', 'second'])
  })

  it.each([
    ['leave', goesOn],
    ['interrupt', `The control plane was asked to interrupt the revision ${NEW_REVISION_ID}.`],
  ] as const)('of a cancellation with on-cancel %s', async (onCancel, sentence) => {
    const deps: TestDeps = fakeDeps({ getRevision: async () => revision('BUILDING') }, () => deps.abort())
    const { message, lines, journal } = await step({ onCancel }, deps)
    expect(message).toBe('The step was cancelled while it waited for the revision.')
    expect(lines.at(-1)).toBe(sentence)
    expect(journal.notes).toEqual([sentence])
  })

  it('of a cancellation before there was a revision is nothing', async () => {
    const deps: TestDeps = fakeDeps({
      findDeploymentByName: async () => {
        deps.abort()
        throw requestFailure({ kind: 'cancelled' })
      },
    })
    const { ended, controlPlane, journal, state } = await step({ onCancel: 'interrupt' }, deps)
    expect(ended).toBe('E_CANCELLED')
    expect(controlPlane.interruptRevision).not.toHaveBeenCalled()
    expect([journal.notes, state['interrupt']]).toEqual([[], undefined])
  })

  it.each([
    [new DOMException('received SIGINT', 'AbortError'), 'E_CANCELLED', 'The step was cancelled.'],
    [requestFailure(), 'E_UNAVAILABLE', 'The step failed: GET /v2/deployments got no answer.'],
  ])('of a wait that the signal ended: %s', async (error, code, words) => {
    const deps: TestDeps = fakeDeps({
      getRevision: async () => {
        deps.abort()
        throw error
      },
    })
    const { ended, message, journal } = await step({ wait: false }, deps)
    expect([ended, message]).toEqual([code, words])
    expect(journal.notes).toEqual(code === 'E_CANCELLED' ? [goesOn] : [])
  })

  it('of a timeout says nothing of a cancellation', async () => {
    const deps = fakeDeps({ getRevision: async () => revision('BUILDING') })
    const { ended, journal, lines } = await step({ timeoutMs: 60_000, onCancel: 'interrupt' }, deps)
    expect([ended, journal.notes]).toEqual(['E_TIMEOUT', []])
    expect(lines.join('\n')).not.toContain('on-cancel')
    expect(deps.controlPlane.interruptRevision).not.toHaveBeenCalled()
  })

  it('of a revision that has ended when the step is cancelled is nothing', async () => {
    const deps: TestDeps = fakeDeps({
      getDeployment: async () => {
        deps.abort()
        throw requestFailure({ kind: 'cancelled' })
      },
    })
    const { ended, message, journal, controlPlane } = await step({ onCancel: 'interrupt' }, deps)
    expect([ended, message]).toEqual(['E_CANCELLED', 'The step was cancelled while it verified the deployment.'])
    expect(journal.notes).toEqual([])
    expect(controlPlane.interruptRevision).not.toHaveBeenCalled()
  })
})
