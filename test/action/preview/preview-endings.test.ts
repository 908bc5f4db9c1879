import { describe, expect, it, vi } from 'vitest'
import { deadlineOf } from '../../../src/client/deadline.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { fakeDeps } from '../support/deps.ts'
import { NAME, scene } from './support/scene.ts'
import type { Service } from './support/service.ts'

describe('how long a preview goes on', () => {
  const taken = (service: Service) => {
    service.controlPlane.createDeployment = vi.fn(async () => {
      throw httpFailure(409, { method: 'POST', detail: 'The name is taken.' })
    })
    return vi.mocked(service.controlPlane.createDeployment)
  }

  it.each([
    ['1h', 15],
    ['10s', 4],
  ])('looks for a free name for 30 s, or as long as the timeout %s lets it', async (timeout, sleeps) => {
    const { service, step } = scene()
    const create = taken(service)
    const { code, effects } = await step('opened', { timeout })
    expect([code, effects.slept]).toEqual(['E_CONFLICT', Array.from({ length: sleeps }, () => 2000)])
    expect(create).toHaveBeenCalledTimes(sleeps + 1)
  })

  it('is patient anew after a deletion has come to its end', async () => {
    const { service, step } = scene()
    const create = taken(service)
    create.mockImplementation(async () => {
      if (create.mock.calls.length === 15) service.add({ name: NAME, goingFor: 1, tracingProjectDeleted: true })
      throw httpFailure(409, { method: 'POST', detail: 'The name is taken.' })
    })
    expect((await step('opened')).code).toBe('E_CONFLICT')
    expect(create).toHaveBeenCalledTimes(15 + 16)
  })

  it('does not wait for a conflict that no deletion resolves', async () => {
    const { service, step } = scene()
    service.add({ name: NAME, repoUrl: 'https://github.com/acme/agents' })
    const { code, failure, effects } = await step('opened', { 'image-uri': 'registry.example.com/agent:1' })
    expect([code, effects.slept]).toEqual(['E_CONFLICT', []])
    expect(failure?.message).toContain('fixed at creation')
  })

  it('does not wait for anything else either', async () => {
    const { service, step } = scene()
    service.controlPlane.createDeployment = async () => {
      throw httpFailure(422, { method: 'POST' })
    }
    const { code, effects } = await step('opened')
    expect([code, effects.slept]).toEqual(['E_VALIDATION', []])
  })

  it('ends with the cancellation, whatever it is doing', async () => {
    const waiting = scene()
    taken(waiting.service)
    const deps = fakeDeps({}, () => deps.abort())
    const { failure } = await waiting.step('opened', {}, { deps })
    expect(failure).toMatchObject({ code: 'E_CANCELLED', message: 'The step was cancelled.' })
    expect(failure?.cause).toMatchObject({ name: 'AbortError' })
    expect(waiting.hub.getPullRequest).toHaveBeenCalledTimes(1)

    const finding = scene()
    const others = fakeDeps()
    finding.service.controlPlane.listDeployments = async () => {
      others.abort()
      throw requestFailure({ kind: 'cancelled', summary: 'was cancelled' })
    }
    const found = await finding.step('opened', {}, { deps: others })
    expect(found.failure).toMatchObject({
      code: 'E_CANCELLED',
      message: `Finding the deployment '${NAME}' failed: GET /v2/deployments was cancelled.`,
    })
  })

  it('ends with the cancellation also when it looks whether the preview is still there', async () => {
    const { service, hub, step } = scene()
    const deps = fakeDeps()
    const { getDeployment } = service.controlPlane
    service.controlPlane.getDeployment = async (id, signal) => {
      if (vi.mocked(hub.getPullRequest).mock.calls.length < 2) return await getDeployment(id, signal)
      deps.abort()
      throw requestFailure({ kind: 'cancelled', summary: 'was cancelled' })
    }
    const { code, journal } = await step('opened', {}, { deps })
    expect([code, journal.notes.filter((note) => note.startsWith('Whether'))]).toEqual(['E_CANCELLED', []])
  })

  it('has the timeout for what it finds, and leaves nothing that listens', async () => {
    const { service, step } = scene()
    const { listDeployments } = service.controlPlane
    const signals: AbortSignal[] = []
    service.controlPlane.listDeployments = async (options) => {
      signals.push(options.signal)
      return await listDeployments(options)
    }
    const deps = fakeDeps()
    const startedAt = deps.effects.now()
    expect((await step('opened', { timeout: '20m' }, { deps })).status).toBe('deployed')
    expect(deadlineOf(signals[0]!)).toBe(startedAt + 1_200_000)
    deps.abort()
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  })

  it.each([
    ['5m', 300_000],
    ['10m', 600_000],
    ['1h', 600_000],
  ])('removes within the timeout %s, and within ten minutes', async (timeout, expected) => {
    const { service, pullRequest, step } = scene()
    pullRequest.state = 'closed'
    const listDeployments = vi.spyOn(service.controlPlane, 'listDeployments')
    const { effects } = await step('synchronize', { timeout })
    expect(deadlineOf(listDeployments.mock.calls[0]![0].signal)).toBe(effects.now() + expected)
  })
})

describe('what ends a preview, and what begins it again', () => {
  it('a build that failed is not tried again, also when the preview is removed then', async () => {
    const { service, hub, step } = scene()
    const { getRevision } = service.controlPlane
    service.controlPlane.getRevision = async (options) => ({ ...(await getRevision(options)), status: 'BUILD_FAILED' })
    let looks = 0
    hub.getPullRequest = async () => {
      if (++looks > 1) for (const held of service.held()) Object.assign(held, { goingFor: 0, tracingProjectDeleted: true })
      return { ...(hub.pullRequests.get(7) ?? hub.add(7)) }
    }
    expect((await step('opened')).code).toBe('E_BUILD_FAILED')
    expect([service.changes, looks]).toEqual([[`create ${NAME}`], 2])
  })

  it('a service that fails before anything is known is not asked for a deployment of no id', async () => {
    const { service, step } = scene()
    service.controlPlane.listDeployments = async () => {
      throw httpFailure(503)
    }
    const getDeployment = vi.spyOn(service.controlPlane, 'getDeployment')
    const { code, journal } = await step('opened')
    expect([code, journal.notes, getDeployment.mock.calls]).toEqual(['E_UNAVAILABLE', [], []])
  })

  it('post is told nothing of the revision that went with its deployment', async () => {
    const { service, hub, step } = scene()
    let looks = 0
    hub.getPullRequest = async () => {
      if (++looks === 2) for (const held of service.held()) Object.assign(held, { goingFor: 0, tracingProjectDeleted: true })
      return { ...(hub.pullRequests.get(7) ?? hub.add(7)) }
    }
    const deps = fakeDeps()
    const { listDeployments } = service.controlPlane
    const states: Record<string, string>[] = []
    service.controlPlane.listDeployments = async (options) => {
      states.push({ ...deps.state })
      return await listDeployments(options)
    }
    expect((await step('opened', {}, { deps })).status).toBe('deployed')
    expect(states.at(-1)).toMatchObject({ revisionId: '', ended: '', interrupt: '', pending: '' })
  })

  it('a read that was not answered creates nothing that would have to be looked for', async () => {
    const { service, pullRequest, step } = scene()
    service.controlPlane.findDeploymentByName = async () => {
      pullRequest.state = 'closed'
      throw requestFailure({ method: 'GET', ambiguous: true })
    }
    const { status, notices, effects } = await step('opened')
    expect([status, notices, effects.slept]).toEqual(['skipped', ['The pull request 7 is closed: nothing is deployed.'], []])
  })

  it('a dry-run waits for nothing and asks once', async () => {
    const { service, hub, step } = scene()
    service.add({ name: NAME, goingFor: 30, repoUrl: 'https://github.com/acme/agents' })
    const { status, effects } = await step('opened', { 'dry-run': 'true' })
    expect([status, effects.slept]).toEqual(['planned', []])
    expect(hub.getPullRequest).toHaveBeenCalledTimes(1)
  })
})
