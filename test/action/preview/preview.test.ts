import { describe, expect, it, vi } from 'vitest'
import { GithubFailure } from '../../../src/action/github/failure.ts'
import type { RawInputs } from '../../../src/action/inputs.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { fakeDeps } from '../support/deps.ts'
import { createHub } from './support/hub.ts'
import { HEAD, NAME, scene } from './support/scene.ts'
import { pullRequestEvent, runStep } from './support/step.ts'

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

describe('the head of a pull request', () => {
  const IMAGE = { 'image-uri': 'registry.example.com/agent:1' }

  /** `heads`: what GitHub says of it, look after look; undefined where it does not answer. The event says `HEAD`. */
  async function deployed(raw: Partial<RawInputs>, heads: (string | undefined)[], headSha: string | null) {
    const { service, pullRequest, hub } = scene()
    const looks = [...heads]
    hub.getPullRequest = vi.fn(async () => {
      const found = looks.length > 1 ? looks.shift() : looks[0]
      return found === undefined ? null : { ...pullRequest, headSha: found }
    })
    const context = pullRequestEvent({ ...pullRequest, headSha: headSha ?? '' }, 'synchronize')
    if (headSha === null) context.payload['pull_request'] = { number: 7, state: 'open' }
    const ended = await runStep({ raw, context, controlPlane: service.controlPlane, github: hub })
    return { ...ended, asked: ended.effects.slept.includes(5000) }
  }
  const moved = 'd'.repeat(40)

  it.each([
    ['a branch is always its head', {}, [moved], HEAD, 'deployed', false],
    ['an image of the head', IMAGE, [HEAD], HEAD, 'deployed', false],
    ['an image of an older head', IMAGE, [moved], HEAD, 'skipped', true],
    ['an image, while GitHub is behind its own event', IMAGE, [moved, HEAD], HEAD, 'deployed', true],
    ['an image, of which GitHub says nothing the second time', IMAGE, [moved, undefined, moved], HEAD, 'deployed', true],
    ['an image, of which GitHub says nothing', IMAGE, [undefined], HEAD, 'deployed', false],
    ['an image, of which the event says nothing', IMAGE, [moved], null, 'deployed', false],
  ])('%s', async (_, raw, heads, headSha, status, asked) => {
    const ended = await deployed(raw, heads, headSha)
    expect([ended.status, ended.asked]).toEqual([status, asked])
  })
})
