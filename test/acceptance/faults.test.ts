import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { ScriptStep } from '../support/control-plane-model.ts'
import { always, CREATE, LIST, PATCH, POLL, READ } from '../support/fault-rules.ts'
import { faults, type Fault } from '../support/fault-server.ts'
import { LIVE } from '../support/live-deployment.ts'
import { DEPLOYED, failed, type Scene, withScene } from '../support/scene.ts'

const QUICK: readonly ScriptStep[] = [['BUILDING'], ['DEPLOYED', { polls: 2 }]]

describe.concurrent('a control plane that is away', () => {
  it('from the beginning', () =>
    withScene({}, async ({ network, run, flaws }) => {
      await network.down()
      const result = await run({ with: { timeout: '4s' } })
      expect(await flaws(result, failed('E_UNAVAILABLE', 'ECONNREFUSED'))).toEqual([])
      expect(result.durationMs).toBeLessThan(12_000)
    }))

  it('at a host that does not exist', () =>
    withScene({}, async ({ run, flaws }) => {
      const result = await run({ with: { 'control-plane-url': 'https://control-plane.invalid', timeout: '4s' } })
      expect(await flaws(result, failed('E_UNAVAILABLE', 'control-plane.invalid'))).toEqual([])
    }))

  it('while the step waits, and back again', () =>
    withScene({ script: [['BUILDING'], ['DEPLOYED', { ms: 4000 }]] }, async ({ network, plane, run, flaws }) => {
      const pending = run()
      await expect.poll(() => plane.requestsOf('GET', /revisions\//).length, { timeout: 15_000 }).toBeGreaterThan(0)
      await network.down()
      await new Promise((resolve) => setTimeout(resolve, 2500))
      await network.up()
      const result = await pending
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(result.log).toMatch(/answers again/)
    }))

  it('while the step waits, for good', () =>
    withScene({ script: [['BUILDING']] }, async ({ network, plane, run, flaws }) => {
      const pending = run({ with: { timeout: '6s' } })
      // The step asks a second time once it has read the first answer.
      await expect.poll(() => plane.requestsOf('GET', /revisions\//).length, { timeout: 15_000 }).toBeGreaterThan(1)
      await network.down()
      const result = await pending
      expect(await flaws(result, failed('E_UNAVAILABLE', 'BUILDING', 'ECONNREFUSED'))).toEqual([])
      expect(result.durationMs).toBeLessThan(15_000)
      expect(result.outputs['revision-id']).toBe(plane.deployments[0]?.revisions[0]?.id)
    }))

  it('with server errors for good', () =>
    withScene({}, async ({ network, run, flaws }) => {
      network.on(always(LIST), faults.status(503, { detail: 'maintenance' }))
      const result = await run({ with: { timeout: '4s' } })
      expect(await flaws(result, failed('E_UNAVAILABLE', '503', 'maintenance'))).toEqual([])
    }))

  it('with a burst of server errors at every step', () =>
    withScene({ script: QUICK }, async ({ network, plane, run, flaws }) => {
      network.on({ ...LIST, times: 2 }, faults.status(502, '<html>bad gateway</html>'))
      network.on(POLL, faults.status(500))
      network.on(READ, faults.status(504))
      const result = await run()
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(network.struck()).toBe(4)
      expect(plane.deployments).toHaveLength(1)
    }))

})

describe.concurrent('a list', () => {
  it('that is stuck on its first page ends there', () =>
    withScene({ pages: 'stuck', script: QUICK }, async ({ plane, run, flaws }) => {
      for (let index = 0; index < 100; index++) plane.addDeployment({ name: `echo-agent-${index}` })
      expect(await flaws(await run(), DEPLOYED)).toEqual([])
      expect(plane.requests.filter(({ query }) => 'name_contains' in query)).toHaveLength(2)
    }))

  it('that never ends ends the step', () =>
    withScene({ pages: 'endless' }, async ({ plane, run, flaws }) => {
      for (let index = 0; index < 100; index++) plane.addDeployment({ name: `echo-agent-${index}` })
      const result = await run({ with: { timeout: '4s' } })
      const code = result.outputs['error-code'] ?? 'none'
      expect(['E_PROTOCOL', 'E_TIMEOUT']).toContain(code)
      expect(await flaws(result, { status: code === 'E_TIMEOUT' ? 'timed-out' : 'failed', code })).toEqual([])
      expect(plane.requestsOf('POST')).toEqual([])
    }))
})

describe.concurrent('answers that are none', () => {
  const broken: [what: string, fault: Fault][] = [
    ['truncated', { kind: 'truncate', bytes: 20 }],
    ['truncated before the first byte', { kind: 'truncate', bytes: 0 }],
    ['HTML', faults.html()],
    ['empty', { kind: 'body', body: '' }],
    ['of another shape', { kind: 'body', body: { hello: ['world'] } }],
    ['no JSON', { kind: 'body', body: '{"resources": [' }],
    ['null', { kind: 'body', body: 'null' }],
    ['oversized', faults.oversized(9 * 1024 * 1024)],
  ]

  it.each(broken)('to the search for good: %s', (_, fault) =>
    withScene({}, async ({ network, plane, run, flaws }) => {
      network.on(always(LIST), fault)
      const result = await run({ with: { timeout: '6s' } })
      expect(await flaws(result, failed('E_PROTOCOL', 'GET /v2/deployments'))).toEqual([])
      expect(plane.requestsOf('POST')).toEqual([])
    }))

  it.each(broken.filter(([what]) => what !== 'oversized'))('to the search once: %s', (_, fault) =>
    withScene({ script: QUICK }, async ({ network, run, flaws }) => {
      network.on(LIST, fault)
      expect(await flaws(await run(), DEPLOYED)).toEqual([])
      expect(network.struck()).toBe(1)
    }))

  it.each(broken)('to the creation: %s', (_, fault) =>
    withScene({ script: QUICK }, async ({ network, plane, run, flaws }) => {
      network.on(CREATE, fault)
      const result = await run()
      // Answered by the proxy, the request was not carried out, and is sent again; otherwise the deployment is found by its name.
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(plane.deployments).toHaveLength(1)
      expect(plane.deployments[0]?.revisions).toHaveLength(1)
      expect(result.outputs['revision-id']).toBe(plane.deployments[0]?.revisions[0]?.id)
    }))

  it.each(broken)('to the update: %s', (_, fault) =>
    withScene({ script: QUICK }, async ({ network, plane, run, flaws }) => {
      const deployment = plane.addDeployment({ name: 'echo-agent', ...LIVE })
      network.on(PATCH, fault)
      const result = await run()
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(deployment.revisions).toHaveLength(2)
      expect(result.outputs['revision-id']).toBe(deployment.revisions[1]?.id)
    }))

  it.each(broken)('to the wait, some of them: %s', (_, fault) =>
    withScene({ script: QUICK }, async ({ network, run, flaws }) => {
      network.on({ ...POLL, times: 2 }, fault)
      expect(await flaws(await run(), DEPLOYED)).toEqual([])
      expect(network.struck()).toBe(2)
    }))

  it.each(broken)('to the wait, all of them: %s', (_, fault) =>
    withScene({ script: QUICK }, async ({ network, run, flaws }) => {
      network.on(always(POLL), fault)
      const result = await run({ with: { timeout: '4s' } })
      expect(await flaws(result, failed('E_PROTOCOL'))).toEqual([])
      expect(result.durationMs).toBeLessThan(10_000)
    }))

  it.each(broken)('to the proof that it serves, all of them: %s', (_, fault) =>
    withScene({ script: [['DEPLOYED']] }, async ({ network, run, flaws }) => {
      network.on(always(READ), fault)
      expect(await flaws(await run(), failed('E_PROTOCOL'))).toEqual([])
    }))

  it.each(broken)('to the reading of the log: %s', (_, fault) =>
    withScene({ script: [['BUILDING'], ['BUILD_FAILED']] }, async ({ network, run, flaws }) => {
      network.on(always({ path: /\/logs/ }), fault)
      const result = await run()
      expect(await flaws(result, failed('E_BUILD_FAILED', 'BUILD_FAILED'))).toEqual([])
    }))

  const silent: [what: string, fault: Fault][] = [
    ['silence', { kind: 'silence' }],
    ['a stall after the headers', { kind: 'stall', bytes: 0 }],
    ['a stall within the body', { kind: 'stall', bytes: 30 }],
  ]

  it.each([
    ...silent.map(([what, fault]) => ['to the search', what, LIST, fault] as const),
    ...silent.map(([what, fault]) => ['to the creation', what, CREATE, fault] as const),
    ...silent.map(([what, fault]) => ['to the wait', what, POLL, fault] as const),
  ])('%s: %s', (_, __, rule, fault) =>
    withScene({ script: QUICK }, async ({ network, plane, run, flaws }) => {
      network.on(always(rule), fault)
      const result = await run({ with: { timeout: '4s' }, timeoutMs: 25_000 })
      const code = result.outputs['error-code'] ?? 'none'
      expect(['E_TIMEOUT', 'E_UNAVAILABLE']).toContain(code)
      const status = code === 'E_TIMEOUT' ? 'timed-out' : 'failed'
      expect(await flaws(result, { status, code })).toEqual([])
      expect(result.durationMs).toBeLessThan(15_000)
      expect(plane.deployments.length).toBeLessThanOrEqual(1)
    }))
})

describe.concurrent('lost answers to requests that were carried out', () => {
  it.each(['before', 'after'] as const)('a creation, reset %s it was carried out, makes one deployment', (when) =>
    withScene({ script: QUICK }, async ({ network, plane, run, flaws }) => {
      network.on(CREATE, { kind: 'reset', when })
      const result = await run()
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(plane.deployments).toHaveLength(1)
      expect(plane.deployments[0]?.revisions).toHaveLength(1)
      expect(plane.requestsOf('POST')).toHaveLength(1)
      expect(result.outputs['created']).toBe('true')
    }))

  it.each(['before', 'after'] as const)('an update, reset %s it was carried out, makes one revision', (when) =>
    withScene({ script: QUICK }, async ({ network, plane, run, flaws }) => {
      const deployment = plane.addDeployment({ name: 'echo-agent', ...LIVE })
      network.on(PATCH, { kind: 'reset', when })
      const result = await run()
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(deployment.revisions).toHaveLength(2)
      expect(plane.requestsOf('PATCH')).toHaveLength(1)
    }))

  it('a creation that is lost every time ends red and makes one deployment at most', () =>
    withScene({ script: QUICK }, async ({ network, plane, run, flaws }) => {
      network.on(always(CREATE), { kind: 'reset', when: 'before' })
      const result = await run({ with: { timeout: '8s' } })
      expect(await flaws(result, failed('E_UNAVAILABLE'))).toEqual([])
      expect(plane.deployments).toEqual([])
    }))

  it('a creation whose deployment cannot be looked up afterwards is not sent again', () =>
    withScene({ script: QUICK }, async ({ network, plane, run, flaws }) => {
      network.on(CREATE, { kind: 'reset', when: 'after' })
      const pending = run({ with: { timeout: '6s' } })
      await expect.poll(() => plane.deployments.length, { timeout: 15_000 }).toBe(1)
      network.on(always(LIST), faults.status(500))
      const result = await pending
      expect(result.exitCode).toBe(1)
      expect(await flaws(result, failed('E_UNAVAILABLE'))).toEqual([])
      expect(plane.requestsOf('POST')).toHaveLength(1)
    }))
})

describe.concurrent('too many requests', () => {
  it.each([
    ['without a time', () => faults.rateLimited()],
    ['with seconds', () => faults.rateLimited(1)],
    ['with a date', () => faults.rateLimited(new Date(Date.now() + 2000))],
  ])('a storm %s at every step is waited out', (_, fault) =>
    withScene({ script: QUICK }, async ({ network, plane, run, flaws }) => {
      network.on(LIST, fault())
      network.on(CREATE, fault())
      network.on({ ...POLL, times: 2 }, fault())
      network.on(READ, fault())
      const result = await run({ timeoutMs: 40_000 })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(plane.deployments).toHaveLength(1)
      expect(network.struck()).toBe(5)
    }))

  it('waits as long as it is told to', () =>
    withScene({ script: [['DEPLOYED']] }, async ({ network, run, flaws }) => {
      network.on(LIST, faults.rateLimited(3))
      const result = await run()
      expect(await flaws(result, DEPLOYED)).toEqual([])
      const [first, second] = network.requests
      expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(2900)
    }))

  it('a storm that does not end is told apart from an outage', () =>
    withScene({}, async ({ network, run, flaws }) => {
      network.on(always({}), faults.rateLimited())
      const result = await run({ with: { timeout: '5s' } })
      expect(await flaws(result, failed('E_RATE_LIMITED', '429'))).toEqual([])
    }))

  it('a time beyond the timeout is not waited for', () =>
    withScene({}, async ({ network, run, flaws }) => {
      network.on(always({}), faults.rateLimited(3600))
      const result = await run({ with: { timeout: '5s' } })
      expect(await flaws(result, failed('E_RATE_LIMITED', '3600 s'))).toEqual([])
      expect(result.durationMs).toBeLessThan(5000)
    }))

  it('a Retry-After that is no time at all does no harm', () =>
    withScene({ script: [['DEPLOYED']] }, async ({ network, run, flaws }) => {
      for (const value of ['-1', 'soon', '99999999999999999999', '']) {
        network.on(LIST, { kind: 'answer', status: 503, body: {}, headers: { 'retry-after': value } })
      }
      expect(await flaws(await run({ timeoutMs: 40_000 }), DEPLOYED)).toEqual([])
    }))
})

describe.concurrent('redirects', () => {
  it.each([301, 302, 307, 308])('a %i never carries the key to another host', (status) =>
    withScene({}, async ({ network, run, flaws }) => {
      const seen: unknown[] = []
      const elsewhere = createServer((request, response) => {
        seen.push(request.headers)
        response.end('{}')
      })
      await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', () => resolve()))
      try {
        const { port } = elsewhere.address() as AddressInfo
        network.on(always({}), faults.redirect(`http://localhost:${port}/v2/deployments`, status))
        const says = [String(status), `localhost:${port}`]
        expect(await flaws(await run(), failed('E_PROTOCOL', ...says))).toEqual([])
        expect(seen).toEqual([])
      } finally {
        elsewhere.close()
      }
    }))

  it('a creation is not repeated elsewhere', () =>
    withScene({}, async ({ network, plane, run, flaws }) => {
      network.on(always(CREATE), faults.redirect('/elsewhere'))
      expect(await flaws(await run(), failed('E_PROTOCOL'))).toEqual([])
      expect(plane.deployments).toEqual([])
    }))
})

describe.concurrent('the deployment', () => {
  /** Runs a step and removes the deployment under it as soon as the step has read its revision. */
  const deletedMeanwhile = async ({ plane, run }: Scene) => {
    const pending = run({ with: { timeout: '15s' } })
    await expect.poll(() => plane.requestsOf('GET', /revisions\//).length, { timeout: 15_000 }).toBeGreaterThan(0)
    plane.removeDeployment(plane.deployments[0]?.id ?? '')
    return pending
  }

  it('deleted while the step waits ends it, well before the timeout', () =>
    withScene({ script: [['BUILDING']] }, async (scene) => {
      const result = await deletedMeanwhile(scene)
      expect(await scene.flaws(result, failed('E_NOT_FOUND', '404'))).toEqual([])
      expect(result.durationMs).toBeLessThan(12_000)
    }))

  it('there twice under one name is not guessed at', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      const [first, second] = [plane.addDeployment({ name: 'echo-agent' }), plane.addDeployment({ name: 'echo-agent' })]
      const says = [first.id, second.id, 'deployment-id']
      expect(await flaws(await run(), failed('E_CONFLICT', ...says))).toEqual([])
      expect(plane.requestsOf('PATCH')).toEqual([])
    }))

  it('that accepts an update without a new revision is not green', () =>
    withScene({}, async ({ network, plane, run, flaws }) => {
      const deployment = plane.addDeployment({ name: 'echo-agent', ...LIVE })
      const same = { id: deployment.id, name: 'echo-agent', latest_revision_id: deployment.activeRevisionId }
      network.on(PATCH, { kind: 'answer', status: 200, body: same })
      expect(await flaws(await run(), failed('E_PROTOCOL', 'no new revision'))).toEqual([])
    }))

  it('that was created without a revision is not green', () =>
    withScene({}, async ({ network, run, flaws }) => {
      const body = { id: '1b4e28ba-2fa1-4d2b-883f-0016d3cca427', name: 'echo-agent', latest_revision_id: null }
      network.on(CREATE, { kind: 'answer', status: 201, body })
      expect(await flaws(await run(), failed('E_PROTOCOL', 'revision'))).toEqual([])
    }))
})
