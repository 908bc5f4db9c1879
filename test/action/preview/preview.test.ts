import { describe, expect, it, vi } from 'vitest'
import { GithubFailure } from '../../../src/action/github/failure.ts'
import type { RawInputs } from '../../../src/action/inputs.ts'
import { httpFailure, requestFailure } from '../support/answers.ts'
import { fakeDeps } from '../support/deps.ts'
import { createHub } from './support/hub.ts'
import { createService, type Service } from './support/service.ts'
import { pullRequestEvent, runStep } from './support/step.ts'

const NAME = 'agent-pr-7'
const HEAD = 'b'.repeat(40)

function scene(service: Service = createService({ headOf: () => HEAD })) {
  const hub = createHub()
  const pullRequest = hub.add(7)
  const step = async (
    action: string,
    raw: Partial<RawInputs> = {},
    options: { github?: undefined; deps?: ReturnType<typeof fakeDeps> } = {},
  ) => {
    const { controlPlane } = service
    const context = pullRequestEvent({ ...pullRequest }, action)
    return await runStep({
      raw,
      context,
      controlPlane,
      github: 'github' in options ? undefined : hub,
      ...(options.deps === undefined ? {} : { deps: options.deps }),
    })
  }
  return { service, hub, pullRequest, step }
}

describe('the preview of an open pull request', () => {
  it('is created, gets a revision for each push, goes when it is closed, and comes back', async () => {
    const { service, pullRequest, step } = scene()
    const opened = await step('opened')
    expect([opened.status, opened.outputs['deployment-name'], opened.outputs['created']]).toEqual(['deployed', NAME, 'true'])
    expect((await step('synchronize')).outputs['created']).toBe('false')
    pullRequest.state = 'closed'
    const closed = await step('closed')
    expect([closed.status, closed.outputs['deployment-name']]).toEqual(['removed', NAME])
    expect([service.held(), [...service.leftProjects]]).toEqual([[], []])
    expect((await step('closed')).status).toBe('removed')
    pullRequest.state = 'open'
    expect((await step('reopened')).status).toBe('deployed')
    expect(service.changes).toEqual([`create ${NAME}`, `patch ${NAME}`, `delete ${NAME}`, `create ${NAME}`])
  })

  it('is not made for a pull request that has been closed since', async () => {
    const { service, pullRequest, step } = scene()
    const late = pullRequestEvent({ ...pullRequest }, 'synchronize')
    pullRequest.state = 'closed'
    const { status, notices } = await runStep({ context: late, controlPlane: service.controlPlane, github: createClosed() })
    expect([status, notices]).toEqual(['skipped', ['The pull request 7 is closed: nothing is deployed.']])
    expect(service.changes).toEqual([])
    service.add({ name: NAME, repoUrl: 'https://github.com/acme/agents' })
    expect((await step('synchronize')).status).toBe('removed')
    expect(service.held()).toEqual([])

    function createClosed() {
      const hub = createHub()
      hub.add(7, { state: 'closed' })
      return hub
    }
  })

  it('is removed by the step itself when the pull request is closed while it deploys, also when the deploy failed', async () => {
    for (const fails of [false, true]) {
      const { service, hub, pullRequest, step } = scene()
      const { getRevision } = service.controlPlane
      service.controlPlane.getRevision = async (options) => {
        pullRequest.state = 'closed'
        return { ...(await getRevision(options)), ...(fails ? { status: 'BUILD_FAILED' } : {}) }
      }
      const { status, state, journal } = await step('opened')
      expect(status).toBe('removed')
      expect(service.held()).toEqual([])
      expect(hub.getPullRequest).toHaveBeenCalledTimes(2)
      expect([state['ended'], state['interrupt'], state['pending']]).toEqual(['true', '', ''])
      expect(journal.notes.join(' ')).toMatch(/closed while its preview was deployed/)
      if (fails) expect(journal.notes.join(' ')).toMatch(/had ended before with E_BUILD_FAILED/)
    }
  })

  it('is removed also when its creation was not answered and is carried out late', async () => {
    const { service, pullRequest, step } = scene()
    const { createDeployment, listDeployments } = service.controlPlane
    const unanswered = requestFailure({ method: 'POST', ambiguous: true })
    let looks = 0
    service.controlPlane.createDeployment = async () => {
      pullRequest.state = 'closed'
      throw unanswered
    }
    service.controlPlane.listDeployments = async (options) => {
      const body = { name: NAME, source: 'git_host', source_config: { repo_url: 'https://github.com/acme/agents' } } as const
      if (pullRequest.state === 'closed' && ++looks === 4)
        await createDeployment({ ...body, source_revision_config: { repo_ref: 'feature' }, secrets: [] }, options.signal)
      return await listDeployments(options)
    }
    expect((await step('opened')).status).toBe('removed')
    expect([service.held(), service.changes]).toEqual([[], [`create ${NAME}`, `delete ${NAME}`]])
  })

  it('is no green step when nobody knows whether its creation was carried out', async () => {
    const { service, pullRequest, step } = scene()
    let ambiguous = true
    service.controlPlane.createDeployment = async () => {
      pullRequest.state = 'closed'
      throw requestFailure({ method: 'POST', ambiguous })
    }
    const { code, failure } = await step('opened')
    expect([code, failure?.aftermath]).toEqual(['E_UNAVAILABLE', expect.stringContaining('looked for in vain, for 30 s')])
    ambiguous = false
    pullRequest.state = 'open'
    const refused = await step('opened')
    expect(refused.status).toBe('skipped')
    expect(refused.journal.notes.join(' ')).toContain('had ended before with E_UNAVAILABLE')
  })

  it('fails as a deploy does, and stays, while the pull request is open', async () => {
    const { service, step } = scene()
    const { getRevision } = service.controlPlane
    service.controlPlane.getRevision = async (options) => ({ ...(await getRevision(options)), status: 'BUILD_FAILED' })
    expect((await step('opened')).code).toBe('E_BUILD_FAILED')
    expect(service.held()).toHaveLength(1)
  })

  it('waits for a deletion that takes its time, and then makes it anew', async () => {
    const { service, step } = scene()
    service.add({ name: NAME, goingFor: 30, tracingProjectDeleted: true })
    const { status, effects } = await step('reopened')
    expect(status).toBe('deployed')
    expect(effects.slept.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(60_000)
    expect(service.changes).toEqual([`create ${NAME}`])
  })

  it('gives up on a deletion that never ends, and on a name that never becomes free', async () => {
    const { service, step } = scene()
    service.add({ name: NAME, goingFor: Infinity })
    const stuck = await step('reopened', { timeout: '5m' })
    expect([stuck.code, stuck.failure?.message]).toEqual([
      'E_TIMEOUT',
      expect.stringContaining('is being deleted, and was not gone in time'),
    ])
    const taken = scene()
    taken.service.leftProjects.add(NAME)
    const { code, failure, effects } = await taken.step('reopened')
    expect([code, failure?.next]).toEqual(['E_CONFLICT', expect.stringContaining('tracing project')])
    expect(effects.slept.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(40_000)
  })

  it('is made again when somebody removes it right after it served', async () => {
    const { service, hub, step } = scene()
    let looks = 0
    hub.getPullRequest = async () => {
      const [held] = service.held()
      if (++looks === 2 && held !== undefined)
        await service.controlPlane.deleteDeployment({ id: held.id, deleteTracingProject: true, signal: AbortSignal.any([]) })
      return { ...(hub.pullRequests.get(7) ?? hub.add(7)) }
    }
    const { status, lines, state } = await step('opened')
    expect(status).toBe('deployed')
    expect(lines.join('\n')).toContain('was removed meanwhile, and the pull request is open: deploying it again')
    expect(service.held().map(({ goingFor }) => goingFor)).toEqual([undefined])
    expect(state['revisionId']).toBe(service.held()[0]?.revisions[0]?.id)
  })

  it('does not fight for ever', async () => {
    const { service, hub, step } = scene()
    let looks = 0
    hub.getPullRequest = async () => {
      if (++looks > 1)
        for (const { id } of service.held())
          await service.controlPlane.deleteDeployment({ id, deleteTracingProject: true, signal: AbortSignal.any([]) })
      return { ...(hub.pullRequests.get(7) ?? hub.add(7)) }
    }
    const { code, failure } = await step('opened')
    expect([code, failure?.message]).toEqual(['E_NOT_FOUND', expect.stringContaining('was removed 3 times')])
  })

  it('makes no older image the preview of a newer head', async () => {
    const { service, pullRequest, hub } = scene()
    const old = pullRequestEvent({ ...pullRequest }, 'synchronize')
    pullRequest.headSha = 'd'.repeat(40)
    const raw = { 'image-uri': 'registry.example.com/agent:1' }
    const { status, notices } = await runStep({ raw, context: old, controlPlane: service.controlPlane, github: hub })
    expect([status, notices[0], service.changes]).toEqual(['skipped', expect.stringContaining('another commit by now'), []])
    pullRequest.headSha = HEAD
    expect((await runStep({ raw, context: old, controlPlane: service.controlPlane, github: hub })).status).toBe('deployed')
  })

  it('is only planned by a dry-run', async () => {
    const { service, pullRequest, step } = scene()
    expect((await step('opened', { 'dry-run': 'true' })).status).toBe('planned')
    service.add({ name: NAME, repoUrl: 'https://github.com/acme/agents' })
    const closedSince = pullRequest
    closedSince.state = 'closed'
    expect((await step('synchronize', { 'dry-run': 'true' })).status).toBe('skipped')
    const { status, groups } = await step('closed', { 'dry-run': 'true' })
    expect([status, groups[0]?.title, groups[0]?.lines.join()]).toEqual([
      'planned',
      'Plan: remove the deployment',
      expect.stringContaining('with its tracing project'),
    ])
    expect(service.changes).toEqual([])
  })

  it('obeys a cancellation at once', async () => {
    const { service, hub, step } = scene()
    const deps = fakeDeps()
    const { getRevision } = service.controlPlane
    service.controlPlane.getRevision = async (options) => {
      deps.abort()
      return await getRevision(options)
    }
    const { code, state } = await step('opened', { 'on-cancel': 'interrupt' }, { deps })
    expect([code, state['interrupt']]).toEqual(['E_CANCELLED', ''])
    expect(hub.getPullRequest).toHaveBeenCalledTimes(1)
    expect(service.held()).toHaveLength(1)
  })
})

describe('without the word of GitHub', () => {
  it('the event stands in for it, with one warning', async () => {
    const { service, pullRequest, step } = scene()
    const opened = await step('opened', {}, { github: undefined })
    expect([opened.status, opened.warnings]).toEqual([
      'deployed',
      [expect.stringContaining('there is no github-token): the event says open.')],
    ])
    pullRequest.state = 'closed'
    expect((await step('closed', {}, { github: undefined })).status).toBe('removed')
    expect(service.held()).toEqual([])
  })

  it('so it does when GitHub refuses, or knows nothing of the pull request', async () => {
    const { hub, step } = scene()
    const request = httpFailure(403, { detail: 'Resource not accessible by integration' })
    hub.getPullRequest = vi.fn(async () => {
      throw new GithubFailure({ operation: 'reading a pull request', request, permission: 'pull-requests: read' })
    })
    const refused = await step('opened')
    expect([refused.status, refused.warnings.join()]).toEqual([
      'deployed',
      expect.stringContaining('permission pull-requests: read'),
    ])
    hub.getPullRequest = vi.fn(async () => null)
    expect((await step('synchronize')).warnings.join()).toContain('it knows no such pull request')
  })
})

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
