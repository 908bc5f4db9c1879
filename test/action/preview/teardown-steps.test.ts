import { describe, expect, it } from 'vitest'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { createHub } from './support/hub.ts'
import { HEAD, NAME, scene } from './support/scene.ts'
import { createService } from './support/service.ts'
import { pullRequestEvent, runStep } from './support/step.ts'

describe('a teardown', () => {
  it('leaves the preview of a pull request alone that was opened again', async () => {
    const { service, pullRequest, step } = scene()
    await step('opened')
    pullRequest.state = 'closed'
    const late = pullRequestEvent({ ...pullRequest }, 'closed')
    const again = createHub()
    again.add(7)
    for (const mode of ['preview', 'teardown']) {
      const { status, notices } = await runStep({
        raw: { mode },
        context: late,
        controlPlane: service.controlPlane,
        github: again,
      })
      expect([status, notices]).toEqual(['skipped', ['The pull request 7 is open again: its preview stays.']])
    }
    expect(service.held()).toHaveLength(1)
  })

  it('of an open pull request removes its preview, when a workflow asks for it', async () => {
    const { service, step } = scene()
    await step('opened')
    expect((await step('unlabeled', { mode: 'teardown' })).status).toBe('removed')
    expect(service.held()).toEqual([])
  })

  it('removes nothing that was built from another repository', async () => {
    const { service, pullRequest, step } = scene()
    service.add({ name: NAME, repoUrl: 'https://github.com/acme/other' })
    service.add({ name: NAME, repoUrl: 'https://github.com/acme/agents' })
    pullRequest.state = 'closed'
    const { code, failure } = await step('closed')
    expect([code, failure?.message]).toEqual(['E_CONFLICT', expect.stringContaining('https://github.com/acme/other')])
    expect(service.changes).toEqual([])
  })

  it('removes that of a fork whose repository is named, and every one of that name', async () => {
    const { service, pullRequest, step } = scene()
    pullRequest.headRepository = null
    pullRequest.state = 'closed'
    service.add({ name: NAME, repoUrl: 'https://github.com/mallory/agents' })
    service.add({ name: NAME, repoUrl: null })
    service.add({ name: `${NAME}0`, repoUrl: 'https://github.com/acme/agents' })
    expect((await step('closed', { mode: 'teardown' })).code).toBe('E_CONFLICT')
    const { status } = await step('closed', { mode: 'teardown', 'repo-url': 'https://github.com/mallory/agents' })
    expect([status, service.held().map(({ name }) => name)]).toEqual(['removed', [`${NAME}0`]])
  })

  it('leaves what it asked for to post when no answer came, and tells what the service refused', async () => {
    const { service, pullRequest, step } = scene()
    await step('opened')
    pullRequest.state = 'closed'
    const failures = [
      requestFailure({ kind: 'deadline', method: 'DELETE', ambiguous: true }),
      httpFailure(403, { method: 'DELETE' }),
    ]
    for (const [failure, code, pending] of [
      [failures[0], 'E_TIMEOUT', /^remove the deployment 'agent-pr-7'/],
      [failures[1], 'E_AUTH', /^$/],
    ] as const) {
      service.controlPlane.deleteDeployment = async () => {
        throw failure
      }
      const ended = await step('closed')
      expect([ended.code, ended.state['pending']]).toEqual([code, expect.stringMatching(pending)])
    }
  })

  it('believes a 404 only of the deployment itself', async () => {
    const { service, pullRequest, step } = scene(createService({ headOf: () => HEAD, deletionReads: 5 }))
    await step('opened')
    pullRequest.state = 'closed'
    const { getDeployment } = service.controlPlane
    let reads = 0
    service.controlPlane.getDeployment = async (id, signal) => {
      if (++reads === 1) throw httpFailure(404, { detail: 'no backend' })
      return await getDeployment(id, signal)
    }
    expect((await step('closed')).status).toBe('removed')
    expect([reads > 1, service.held()]).toEqual([true, []])
  })
})
