import { describe, expect, it } from 'vitest'
import type { ScriptStep } from '../support/control-plane-model.ts'
import { faults, type Fault, type FaultRule } from '../support/fault-server.ts'
import { LIVE } from '../support/live-deployment.ts'
import { readable } from '../support/readable.ts'
import { DEPLOYED, type Scene, withScene } from '../support/scene.ts'

const BUILDING: readonly ScriptStep[] = [['BUILDING']]
const CANCELLED = { status: 'cancelled', code: 'E_CANCELLED' }

const LIST = /\/v2\/deployments\?/
const CREATE = /\/v2\/deployments$/
const ONE = /\/v2\/deployments\/[0-9a-f-]+$/
const POLL = /\/revisions\/[0-9a-f-]+$/
const LOGS = /\/logs/

/** True once so many requests of a method and path have arrived. */
const arrived = ({ network }: Scene, method: string, path: RegExp, times = 1) =>
  () => network.requests.filter((request) => request.method === method && path.test(request.path)).length >= times

/** All that the runner's schedule asks of a cancelled step: it ends by itself, in time, and says so. */
function endedInTime(result: Awaited<ReturnType<Scene['run']>>): void {
  expect(result.conclusion).toBe('cancelled')
  expect(result.signalsSent).toEqual(['SIGINT'])
  expect(result.endedAfterSignalMs).toBeLessThan(5000)
}

describe.concurrent('a step that is cancelled', () => {
  type Phase = [
    phase: string,
    method: string,
    path: RegExp,
    fault: Fault | null,
    script: readonly ScriptStep[],
    before?: (scene: Scene) => void,
  ]
  const existing = ({ plane }: Scene) => void plane.addDeployment({ name: 'echo-agent', ...LIVE })
  const silence: Fault = { kind: 'silence' }
  const phases: Phase[] = [
    ['while it looks for the deployment', 'GET', LIST, silence, BUILDING],
    ['while it waits before it repeats a request', 'GET', LIST, faults.rateLimited(10), BUILDING],
    ['while it waits for the answer to the creation', 'POST', CREATE, silence, BUILDING],
    ['while it reads the answer to the creation', 'POST', CREATE, { kind: 'stall', bytes: 30 }, BUILDING],
    ['while it waits for the answer to the update', 'PATCH', ONE, silence, BUILDING, existing],
    ['while it sleeps between two looks', 'GET', POLL, null, BUILDING],
    ['while it reads the status', 'GET', POLL, { kind: 'stall', bytes: 10 }, BUILDING],
    ['while it reads the log of a failed revision', 'GET', LOGS, silence, [['BUILDING'], ['BUILD_FAILED']]],
    ['while it proves that the revision serves', 'GET', ONE, silence, [['DEPLOYED']]],
  ]

  it.for(phases)('%s ends in time', ([, method, path, fault, script, before]) =>
    withScene({ script }, async (scene) => {
      before?.(scene)
      if (fault !== null) scene.network.on({ method, path, times: Infinity }, fault)
      const result = await scene.run({ cancelWhen: arrived(scene, method, path) })
      endedInTime(result)
      expect(await scene.flaws(result, CANCELLED)).toEqual([])
      expect(scene.plane.deployments.length).toBeLessThanOrEqual(1)
      expect(scene.plane.requestsOf('POST', /interruption/)).toEqual([])
    }))

  it('before it could begin changes nothing, not in post either', () =>
    withScene({}, async ({ plane, run, network }) => {
      const result = await run({ cancelWhen: () => true })
      expect(result.conclusion).toBe('cancelled')
      expect(result.post).toMatchObject({ exitCode: 0, timedOut: false })
      expect(network.requests).toEqual([])
      expect(plane.deployments).toEqual([])
    }))

  it('while the answer to the creation is on its way still learns what it has made', () =>
    withScene({ script: BUILDING }, async (scene) => {
      scene.network.on({ method: 'POST', path: CREATE }, { kind: 'delay', ms: 700 })
      const result = await scene.run({ cancelWhen: arrived(scene, 'POST', CREATE) })
      endedInTime(result)
      expect(await scene.flaws(result, CANCELLED)).toEqual([])
      const [deployment] = scene.plane.deployments
      expect(result.outputs).toMatchObject({ 'deployment-id': deployment?.id, 'revision-id': deployment?.revisions[0]?.id })
    }))

  it('leaves what it has made in its outputs and in the summary', () =>
    withScene({ script: BUILDING }, async (scene) => {
      const result = await scene.run({ cancelWhen: arrived(scene, 'GET', POLL) })
      endedInTime(result)
      expect(await scene.flaws(result, CANCELLED)).toEqual([])
      const revisionId = scene.plane.deployments[0]?.revisions[0]?.id ?? ''
      expect(result.outputs['revision-id']).toBe(revisionId)
      expect(readable(result.summary)).toContain(revisionId)
      expect(scene.plane.deployments[0]?.revisions[0]?.status).toBe('BUILDING')
    }))
})

describe.concurrent('other signals', () => {
  it('SIGTERM ends the step as SIGINT does', () =>
    withScene({ script: BUILDING }, async (scene) => {
      const result = await scene.run({ signals: [{ signal: 'SIGTERM', when: arrived(scene, 'GET', POLL) }] })
      expect(result.endedAfterSignalMs).toBeLessThan(5000)
      expect(await scene.flaws(result, CANCELLED)).toEqual([])
    }))

  it('a second signal ends it at once', () =>
    withScene({ script: BUILDING }, async (scene) => {
      scene.network.on({ method: 'POST', path: /interruption/, times: Infinity }, { kind: 'silence' })
      const result = await scene.run({
        with: { 'on-cancel': 'interrupt' },
        signals: [
          { signal: 'SIGINT', when: arrived(scene, 'GET', POLL) },
          { signal: 'SIGINT', when: arrived(scene, 'POST', /interruption/) },
        ],
      })
      expect(result).toMatchObject({ exitCode: 1, signal: null, timedOut: false })
      expect(result.endedAfterSignalMs).toBeLessThan(1500)
      expect(result.outputs['status']).toBe('cancelled')
    }))
})

describe.concurrent('on-cancel: interrupt', () => {
  const interrupt = { with: { 'on-cancel': 'interrupt' } }
  const interruptions = ({ network }: Scene) => network.requests.filter(({ path }) => path.endsWith('/interruption'))

  it('interrupts the revision in main', () =>
    withScene({ script: BUILDING }, async (scene) => {
      const result = await scene.run({ ...interrupt, cancelWhen: arrived(scene, 'GET', POLL) })
      endedInTime(result)
      expect(await scene.flaws(result, CANCELLED)).toEqual([])
      expect(scene.plane.deployments[0]?.revisions[0]?.status).toBe('INTERRUPTED')
      expect(interruptions(scene)).toHaveLength(1)
    }))

  it('interrupts the revision of a creation whose answer came late', () =>
    withScene({ script: BUILDING }, async (scene) => {
      scene.network.on({ method: 'POST', path: CREATE }, { kind: 'delay', ms: 700 })
      const result = await scene.run({ ...interrupt, cancelWhen: arrived(scene, 'POST', CREATE) })
      endedInTime(result)
      expect(await scene.flaws(result, CANCELLED)).toEqual([])
      expect(scene.plane.deployments[0]?.revisions[0]?.status).toBe('INTERRUPTED')
    }))

  it('interrupts it in post when main could not in its time', () =>
    withScene({ script: BUILDING }, async (scene) => {
      scene.network.on({ method: 'POST', path: /interruption/ }, { kind: 'silence' })
      const result = await scene.run({ ...interrupt, cancelWhen: arrived(scene, 'GET', POLL) })
      endedInTime(result)
      expect(await scene.flaws(result, CANCELLED)).toEqual([])
      expect(scene.plane.deployments[0]?.revisions[0]?.status).toBe('INTERRUPTED')
      expect(interruptions(scene)).toHaveLength(2)
    }))

  it('interrupts it in post when main was killed', () =>
    withScene({ script: BUILDING }, async (scene) => {
      const result = await scene.run({ ...interrupt, signals: [{ signal: 'SIGKILL', when: arrived(scene, 'GET', POLL) }] })
      expect(result).toMatchObject({ signal: 'SIGKILL', conclusion: 'failure' })
      expect(result.post).toMatchObject({ exitCode: 0, timedOut: false })
      expect(scene.plane.deployments[0]?.revisions[0]?.status).toBe('INTERRUPTED')
      expect(interruptions(scene)).toHaveLength(1)
    }))

  it('never interrupts a revision that has ended', () =>
    withScene({ script: [['BUILDING'], ['DEPLOYED']] }, async (scene) => {
      expect(await scene.flaws(await scene.run(interrupt), DEPLOYED)).toEqual([])
      expect(interruptions(scene)).toEqual([])
    }))

  it('never interrupts a revision that somebody else made', () =>
    withScene({}, async (scene) => {
      const deployment = scene.plane.addDeployment({ name: 'echo-agent', ...LIVE })
      const theirs = scene.plane.addRevision(deployment, 'BUILDING')
      scene.network.on({ method: 'PATCH', path: ONE }, { kind: 'silence' })
      const result = await scene.run({ ...interrupt, cancelWhen: arrived(scene, 'PATCH', ONE) })
      endedInTime(result)
      expect(await scene.flaws(result, CANCELLED)).toEqual([])
      expect(theirs.status).toBe('BUILDING')
    }))

  it('says so where the control plane cannot', () =>
    withScene({ script: BUILDING, without: ['interruption'] }, async (scene) => {
      const result = await scene.run({ ...interrupt, cancelWhen: arrived(scene, 'GET', POLL) })
      endedInTime(result)
      expect(await scene.flaws(result, CANCELLED)).toEqual([])
      expect(result.log).toContain('no way to interrupt')
    }))

  it('ends in time where the control plane is away', () =>
    withScene({ script: BUILDING }, async (scene) => {
      const pending = scene.run({ ...interrupt, cancelWhen: ({ stdout }) => stdout.includes('could not be read') })
      await expect.poll(arrived(scene, 'GET', POLL), { timeout: 15_000 }).toBe(true)
      await scene.network.down()
      const result = await pending
      endedInTime(result)
      expect(await scene.flaws(result, CANCELLED)).toEqual([])
      expect(result.post?.log).toContain('may go on by itself')
    }))
})

describe.concurrent('on-cancel: leave', () => {
  it('leaves the revision in post as well, and says so', () =>
    withScene({ script: BUILDING }, async (scene) => {
      const result = await scene.run({ signals: [{ signal: 'SIGKILL', when: arrived(scene, 'GET', POLL) }] })
      expect(result.post).toMatchObject({ exitCode: 0 })
      expect(result.post?.log).toContain('goes on by itself')
      expect(scene.plane.deployments[0]?.revisions[0]?.status).toBe('BUILDING')
    }))

  it('tells in post of a change whose answer main did not live to see', () =>
    withScene({ script: BUILDING }, async (scene) => {
      const rule: FaultRule = { method: 'POST', path: CREATE }
      scene.network.on(rule, { kind: 'silence' })
      const result = await scene.run({ signals: [{ signal: 'SIGKILL', when: arrived(scene, 'POST', CREATE) }] })
      expect(result.post?.log).toContain("create the deployment 'echo-agent'")
      expect(result.post?.annotations).toMatchObject([{ level: 'warning' }])
    }))

  it('leaves nothing for post to do after a step that ended well', () =>
    withScene({ script: [['DEPLOYED']] }, async (scene) => {
      const result = await scene.run()
      expect(await scene.flaws(result, DEPLOYED)).toEqual([])
      expect(result.post).toMatchObject({ log: '', stdout: expect.not.stringContaining('deployment') })
    }))
})
