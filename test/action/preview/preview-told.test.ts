import { describe, expect, it, vi } from 'vitest'
import { deadlineOf } from '../../../src/client/deadline.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { NAME, scene } from './support/scene.ts'
import { pullRequestEvent, runStep } from './support/step.ts'

describe('what a preview tells', () => {
  it('about a pull request that was closed while it was deployed', async () => {
    const { service, pullRequest, step } = scene()
    const { getRevision } = service.controlPlane
    service.controlPlane.getRevision = async (options) => {
      pullRequest.state = 'closed'
      return { ...(await getRevision(options)), status: 'BUILD_FAILED' }
    }
    const { lines, notices, journal } = await step('opened')
    const sentence = 'The pull request 7 was closed while its preview was deployed: removing it.'
    expect(lines).toContain(sentence)
    expect(notices).toEqual([])
    expect(journal.notes.slice(-2)).toEqual([
      sentence,
      expect.stringMatching(/^The deploy had ended before with E_BUILD_FAILED: \S/),
    ])
  })

  it('about one that was closed before: in the log, the summary, the outputs and to post', async () => {
    const { pullRequest, step } = scene()
    pullRequest.state = 'closed'
    const { status, lines, notices, journal, outputs, state } = await step('synchronize')
    const sentence = 'The pull request 7 is closed: nothing is deployed.'
    expect([status, notices, journal.notes]).toEqual(['skipped', [sentence], [sentence]])
    expect(lines).toContain(sentence)
    expect(outputs).toMatchObject({ 'deployment-name': NAME })
    expect(state).toMatchObject({ ended: 'true', interrupt: '' })
  })

  it('about one that was closed before a dry-run', async () => {
    const { pullRequest, step } = scene()
    pullRequest.state = 'closed'
    const { status, notices, journal, state } = await step('synchronize', { 'dry-run': 'true' })
    const sentence = 'The pull request 7 is closed: nothing would be deployed.'
    expect([status, notices, journal.notes, state['ended']]).toEqual(['skipped', [sentence], [sentence], undefined])
  })

  it('about an image whose head has moved on', async () => {
    const { service, pullRequest, hub } = scene()
    const context = pullRequestEvent({ ...pullRequest }, 'synchronize')
    pullRequest.headSha = 'd'.repeat(40)
    const raw = { 'image-uri': 'registry.example.com/agent:1' }
    const { notices, journal, effects } = await runStep({ raw, context, controlPlane: service.controlPlane, github: hub })
    const sentence = 'The head of the pull request 7 is another commit by now: its own step deploys it.'
    expect([notices, journal.notes, effects.slept]).toEqual([[sentence], [sentence], [5000]])
  })

  it('about a deletion that it waits for, and a name that it waits for', async () => {
    const { service, step } = scene()
    const { id } = service.add({ name: NAME, goingFor: 1, tracingProjectDeleted: true })
    service.leftProjects.add(NAME)
    const { createDeployment } = service.controlPlane
    service.controlPlane.createDeployment = async (...options) => {
      try {
        return await createDeployment(...options)
      } finally {
        service.leftProjects.clear()
      }
    }
    const { status, lines } = await step('reopened')
    expect(status).toBe('deployed')
    expect(lines).toContain(`The deployment '${NAME}' (${id}) is being deleted: waiting until it is gone.`)
    expect(lines.filter((line) => line === `The name '${NAME}' is taken: looking again in 2 s.`)).toHaveLength(1)
  })

  it('about a service that does not say whether the preview is still there', async () => {
    for (const error of [httpFailure(503, { path: '/v2/deployments/x' }), 'odd']) {
      const { service, hub, step } = scene()
      const { getDeployment } = service.controlPlane
      const looked: AbortSignal[] = []
      service.controlPlane.getDeployment = async (id, signal) => {
        if (vi.mocked(hub.getPullRequest).mock.calls.length < 2) return await getDeployment(id, signal)
        looked.push(signal)
        throw error
      }
      const ended = await step('opened')
      expect([ended.status, service.changes]).toEqual(['deployed', [`create ${NAME}`]])
      expect(ended.journal.notes.filter((note) => note.startsWith('Whether'))).toEqual([
        expect.stringMatching(/^Whether the preview is still there could not be read: .*(answered 503\.|internal error: odd)$/),
      ])
      // It had a minute, and nothing listens to the cancellation any more.
      expect(deadlineOf(looked[0]!)).toBe(ended.effects.now() + 60_000)
      ended.abort()
      expect(looked[0]?.aborted).toBe(false)
    }
  })

  it('about one that others remove again and again', async () => {
    const { service, hub, step } = scene()
    let looks = 0
    hub.getPullRequest = async () => {
      if (++looks > 1) for (const held of service.held()) Object.assign(held, { goingFor: 0, tracingProjectDeleted: true })
      return { ...(hub.pullRequests.get(7) ?? hub.add(7)) }
    }
    const { failure } = await step('opened')
    expect(failure).toMatchObject({
      code: 'E_NOT_FOUND',
      message: `The deployment '${NAME}' was removed 3 times while this step deployed it, although the pull request 7 is open.`,
      next: 'Find out which other workflow removes it.',
    })
  })

  it('about a creation that was not answered', async () => {
    const { service, pullRequest, step } = scene()
    service.controlPlane.createDeployment = async () => {
      pullRequest.state = 'closed'
      throw requestFailure({ method: 'POST', ambiguous: true })
    }
    const { failure, notices, effects } = await step('opened')
    expect(failure?.aftermath).toBe(
      `The pull request 7 is closed, and '${NAME}' was looked for in vain, for 30 s. A sweep finds it if it appears later.`,
    )
    expect([notices, effects.slept]).toEqual([[], Array.from({ length: 15 }, () => 2000)])
  })
})
