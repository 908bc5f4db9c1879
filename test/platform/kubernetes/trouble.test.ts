import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { AgentProcess } from '../../../src/platform/control-plane/runtimes/runtime.ts'
import { makeCertificates } from '../../client/support/certificates.ts'
import type { ApiRequest } from './support/api-server.ts'
import type { ClusterDouble } from './support/cluster-double.ts'
import { imageStart } from './support/request.ts'
import { cluster, effectsOf, runtimeOn } from './support/scene.ts'

const creates = (resource: string) => (request: ApiRequest) => request.verb === 'create' && request.resource === resource

const hasEnded = async ({ exited }: AgentProcess) => (await Promise.race([exited, sleep(0, null)])) !== null

async function watchesAgain(double: ClusterDouble, work: () => void): Promise<void> {
  const count = () => double.requests.filter(({ verb }) => verb === 'watch').length
  const before = count()
  work()
  await expect.poll(count, { timeout: 10_000 }).toBeGreaterThanOrEqual(before + 2)
}

it.each([
  ['is overloaded (429)', { status: 429 }],
  ['is being restarted (503)', { status: 503 }],
  ['breaks the connection', { status: null }],
  ['does as it is told, and its answer is lost', { status: null, after: true }],
])('an API server that %s at each step of a start', async (_, how) => {
  const double = await cluster()
  for (const resource of ['deployments', 'secrets', 'services'])
    double.trouble.next.push({ match: creates(resource), times: 1, ...how })
  const effects = effectsOf()
  const agent = await runtimeOn(double).start(imageStart(), effects)
  expect(effects.log.text()).toContain("The cluster's API does not answer; trying again")
  expect(double.left()).toHaveLength(4)
  await agent.stop({ graceMs: 1000 })
  await expect.poll(() => double.left()).toEqual([])
})

it('an API server that stays away for longer than a start may take', async () => {
  const double = await cluster()
  double.trouble.away = true
  const runtime = runtimeOn(double)
  // Back in time for what may have been made to be removed.
  setTimeout(() => (double.trouble.away = false), 2500)
  await expect(runtime.start(imageStart(), effectsOf({ timeoutMs: 1500 }))).rejects.toThrow(/^The cluster's API did not answer: /)
  await expect.poll(() => double.left()).toEqual([])
})

it('an API server that is away for a moment fails nobody’s revision', async () => {
  const double = await cluster()
  const runtime = runtimeOn(double)
  double.trouble.away = true
  expect(await runtime.unavailable()).toMatch(/^no cluster answers at http:/)
  expect(await runtime.list()).toEqual([])
  double.trouble.away = false
  expect(await runtime.unavailable()).toBeNull()
  double.trouble.away = true
  expect(await runtime.unavailable()).toBeNull()
})

it('an API server that is away while an agent runs is no end of it; a deletion meanwhile is seen afterwards', async () => {
  const double = await cluster()
  const agent = await runtimeOn(double).start(imageStart(), effectsOf())
  double.trouble.away = true
  double.cut()
  await sleep(2500)
  expect(await hasEnded(agent)).toBe(false)
  await watchesAgain(double, () => {
    double.trouble.away = false
  })
  expect(await hasEnded(agent)).toBe(false)

  double.trouble.away = true
  double.cut()
  const [deployment] = double.objects.all('deployments')
  double.objects.remove('deployments', deployment!)
  double.trouble.away = false
  expect(await agent.exited).toEqual({ code: null, signal: null })
})

it.each(['status', 'event'] as const)(
  'a watch whose version is too old (410 as %s) begins anew and misses nothing',
  async (goneAs) => {
    const double = await cluster()
    double.trouble.goneAs = goneAs
    const effects = effectsOf()
    const agent = await runtimeOn(double).start(imageStart(), effects)
    // Broken in their midst, so that they come back with a version; which is forgotten by then.
    for (let round = 0; round < 2; round += 1) {
      await watchesAgain(double, () => {
        double.cut()
        double.objects.compact()
      })
    }
    expect(await hasEnded(agent)).toBe(false)
    await watchesAgain(double, () => {
      double.trouble.next.push({ match: ({ verb }) => verb === 'watch', times: 2, status: 410 })
      double.cut()
    })
    const [pod] = double.pods()
    const acts = double.acts(pod!)
    acts.print('out of luck')
    acts.crash({ exitCode: 137, reason: 'OOMKilled', startedAgain: true })
    const told = 'The agent was killed by SIGKILL (out of memory) in the pod'
    await expect.poll(() => effects.log.text(), { timeout: 10_000 }).toContain(told)
    expect(effects.log.text()).toContain('out of luck')
    expect(await hasEnded(agent)).toBe(false)
    await agent.stop({ graceMs: 1000 })
  },
)

it('an abort in the middle leaves nothing, whenever it comes', async () => {
  const double = await cluster()
  double.behaviour = (acts) => acts.pulling()
  const steps: ((request: ApiRequest) => boolean)[] = [
    creates('deployments'),
    creates('secrets'),
    creates('services'),
    ({ verb, resource }) => verb === 'watch' && resource === 'pods',
  ]
  for (const step of steps) {
    const leaving = new AbortController()
    const runtime = runtimeOn(double)
    const before = double.requests.length
    const starting = runtime.start(imageStart(), effectsOf({ signal: leaving.signal }))
    starting.catch(() => undefined)
    await expect.poll(() => double.requests.slice(before).some(step), { interval: 1 }).toBe(true)
    leaving.abort(new Error('no longer wanted'))
    await expect(starting).rejects.toThrow('no longer wanted')
    await expect.poll(() => double.left()).toEqual([])
  }
  await expect(
    runtimeOn(double).start(imageStart(), effectsOf({ signal: AbortSignal.abort(new Error('never')) })),
  ).rejects.toThrow('never')
})

it('a stop gives the grace that it is told, and no more', async () => {
  const double = await cluster()
  // An agent that ignores its signal.
  double.endsAfterMs = 60_000
  const agent = await runtimeOn(double).start(imageStart(), effectsOf())
  const begun = Date.now()
  await agent.stop({ graceMs: 2000 })
  expect(Date.now() - begun).toBeGreaterThan(1000)
  expect(double.pods()).toEqual([])
  await expect.poll(() => double.left()).toEqual([])
})

it('a stop while the API server is away waits for it', async () => {
  const double = await cluster()
  const agent = await runtimeOn(double).start(imageStart(), effectsOf())
  double.trouble.away = true
  double.cut()
  const stopping = agent.stop({ graceMs: 1000 })
  await sleep(1500)
  double.trouble.away = false
  await stopping
  await expect.poll(() => double.left()).toEqual([])
})

it('lines of the log are neither lost nor doubled by broken connections', async () => {
  const double = await cluster()
  const effects = effectsOf()
  const agent = await runtimeOn(double).start(imageStart(), effects)
  const acts = double.acts(double.pods()[0]!)
  const told = () => effects.log.lines.map(({ message }) => message).filter((message) => message.startsWith('line '))
  const printed: string[] = []
  for (let round = 0; round < 3; round += 1) {
    for (let index = 0; index < 5; index += 1) {
      printed.push(`line ${round}.${index}`)
      acts.print(`line ${round}.${index}`)
    }
    if (round > 0) await expect.poll(told, { timeout: 10_000 }).toEqual(printed)
    double.cut()
    printed.push(`line ${round} while it was away`)
    acts.print(`line ${round} while it was away`)
  }
  await expect.poll(told, { timeout: 15_000 }).toEqual(printed)
  await agent.stop({ graceMs: 1000 })
})

it('speaks TLS with a client certificate', async ({ skip }) => {
  let made: ReturnType<typeof makeCertificates>
  try {
    made = makeCertificates()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return skip('there is no openssl')
  }
  const { readFileSync } = await import('node:fs')
  const ca = readFileSync(made.caFile, 'utf8')
  const tls = { key: made.key, cert: made.certificate, ca, clientKey: made.key, clientCert: made.certificate }
  made.remove()
  const double = await cluster({ tls })
  expect(double.url).toMatch(/^https:/)
  const runtime = runtimeOn(double)
  expect(await runtime.unavailable()).toBeNull()
  const agent = await runtime.start(imageStart(), effectsOf())
  await agent.stop({ graceMs: 1000 })
  await expect.poll(() => double.left()).toEqual([])
})
