import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createImageHosting } from '../../../src/platform/control-plane/runtimes/choose-images.ts'
import { LABELS } from '../../../src/platform/control-plane/runtimes/kubernetes/names.ts'
import type { AgentProcess } from '../../../src/platform/control-plane/runtimes/runtime.ts'
import { SILENT } from '../support/database.ts'
import { IMAGE_DIGEST } from './support/pod-acts.ts'
import { imageStart } from './support/request.ts'
import { cluster, effectsOf, INSTALLATION, runtimeOn } from './support/scene.ts'

const IMAGE = 'registry.example.com/team/agent:1'
const ask = async ({ address }: AgentProcess) => (await fetch(`http://${address.host}:${address.port}/who`)).json()

it('starts an agent that answers with its environment, and stops it without leaving anything', async () => {
  const double = await cluster()
  const runtime = runtimeOn(double)
  const effects = effectsOf()
  expect(await runtime.unavailable()).toBeNull()
  const agent = await runtime.start(imageStart(), effects)
  expect(effects.images).toEqual([`${IMAGE}@${IMAGE_DIGEST}`])
  expect(await ask(agent)).toEqual({ revision: imageStart().revisionId })
  expect(double.left()).toHaveLength(4)
  expect(agent.reference).toMatch(/^kubernetes:agents\/agent-support-agent-[0-9a-f]{12}$/)
  expect(effects.log.text()).not.toContain('sk-very-secret')

  await agent.stop({ graceMs: 5000 })
  expect(await agent.exited).toEqual({ code: null, signal: null })
  await agent.stop({ graceMs: 5000 })
  await expect.poll(() => double.left()).toEqual([])
})

it('keeps to a digest that it was given', async () => {
  const double = await cluster()
  const effects = effectsOf()
  const imageUri = `registry.example.com/team/agent@sha256:${'ab'.repeat(32)}`
  const agent = await runtimeOn(double).start(imageStart({ imageUri }), effects)
  expect(effects.images).toEqual([imageUri])
  const [pod] = double.pods()
  expect(pod?.spec.containers[0]).toMatchObject({ image: imageUri, imagePullPolicy: 'IfNotPresent' })
  await agent.stop({ graceMs: 1000 })
})

it('runs as many replicas as it is told, and is there when all of them are', async () => {
  const double = await cluster()
  const held: (() => void)[] = []
  double.behaviour = (acts) => {
    acts.run()
    held.push(acts.ready)
  }
  const starting = runtimeOn(double).start(imageStart({ resources: { min_scale: 3 } }), effectsOf())
  await expect.poll(() => held.length, { timeout: 10_000 }).toBe(3)
  for (const ready of held.slice(0, 2)) ready()
  expect(await Promise.race([starting, sleep(1500, 'waits')])).toBe('waits')
  held[2]?.()
  const agent = await starting
  expect(double.pods()).toHaveLength(3)
  await agent.stop({ graceMs: 1000 })
  await expect.poll(() => double.left()).toEqual([])
})

it('a container that the cluster starts again is no end of the agent', async () => {
  const double = await cluster()
  const effects = effectsOf()
  const agent = await runtimeOn(double).start(imageStart(), effects)
  const acts = double.acts(double.pods()[0]!)
  acts.crash({ exitCode: 1, startedAgain: true })
  await expect.poll(() => effects.log.text()).toContain('The agent exited with code 1 in the pod')
  await sleep(50)
  acts.ready()
  expect(await ask(agent)).toEqual({ revision: imageStart().revisionId })
  await agent.stop({ graceMs: 1000 })
})

it('has what it prints while it ends in its log', async () => {
  const double = await cluster()
  const effects = effectsOf()
  const agent = await runtimeOn(double).start(imageStart(), effects)
  double.endsAfterMs = 3500
  const acts = double.acts(double.pods()[0]!)
  setTimeout(() => acts.print('the last run is finished'), 3000)
  await agent.stop({ graceMs: 10_000 })
  expect(effects.log.text()).toContain('the last run is finished')
  // Nobody asks for it any more.
  const asked = double.requests.length
  await sleep(2000)
  expect(double.requests.slice(asked)).toEqual([])
})

it('is ended by whoever deletes its Deployment', async () => {
  const double = await cluster()
  const effects = effectsOf()
  const agent = await runtimeOn(double).start(imageStart(), effects)
  double.objects.remove('deployments', double.objects.all('deployments')[0]!)
  expect(await agent.exited).toEqual({ code: null, signal: null })
  expect(effects.log.lines.at(-1)).toEqual({
    level: 'ERROR',
    message: expect.stringMatching(/^The agent's Deployment agents\/.* was deleted by somebody else$/),
  })
})

it('uses every right of the example Role, and no other', async () => {
  const double = await cluster()
  const runtime = runtimeOn(double)
  await runtime.unavailable()
  double.behaviour = (acts) => acts.cannotPull('ImagePullBackOff', 'Back-off pulling image')
  await expect(runtime.start(imageStart(), effectsOf({ timeoutMs: 200 }))).rejects.toThrow('cannot pull')
  double.behaviour = (acts) => (acts.run(), acts.ready())
  double.trouble.next.push({
    match: ({ verb, resource }) => verb === 'create' && resource === 'services',
    times: 1,
    status: null,
    after: true,
  })
  double.endsAfterMs = 5000
  const agent = await runtime.start(imageStart(), effectsOf())
  await runtime.list()
  await agent.stop({ graceMs: 100 })
  const ofTheCluster = ['delete secrets', 'delete services']
  expect(double.used().filter((right) => right !== 'create selfsubjectaccessreviews')).toEqual(
    double.granted().filter((right) => !ofTheCluster.includes(right)),
  )
  await expect.poll(() => double.left()).toEqual([])
})

it('says before anything is started that its rights are missing', async () => {
  const double = await cluster()
  const elsewhere = runtimeOn(double, { more: { PLATFORM_KUBERNETES_NAMESPACES: 'elsewhere' } })
  double.denied.add('elsewhere')
  expect(await elsewhere.unavailable()).toBe(
    `the cluster at ${double.url} does not let this platform create Deployments in the namespace elsewhere: ` +
      'give its account the rights of examples/kubernetes/rights.yaml',
  )
})

it('finds what it started, page by page, and ends only what is its own', async () => {
  const double = await cluster({ namespaces: ['agents', 'others'] })
  const more = { PLATFORM_KUBERNETES_NAMESPACES: 'agents, others' }
  const runtime = runtimeOn(double, { pageSize: 2, more })
  const ids = Array.from({ length: 5 }, () => randomUUID())
  await Promise.all(
    ids.map((agentId, index) =>
      runtime.start(imageStart({ agentId, listenerConfig: index === 4 ? { k8s_namespace: 'others' } : null }), effectsOf()),
    ),
  )
  const stranger = runtimeOn(double, { installationId: randomUUID(), more })
  const foreign = await stranger.start(imageStart({ agentId: randomUUID() }), effectsOf())

  const later = runtimeOn(double, { pageSize: 2, more })
  const seen = await later.list()
  expect(seen.map(({ agentId }) => agentId).toSorted()).toEqual(ids.toSorted())
  expect(seen.filter(({ reference }) => reference.startsWith('kubernetes:others/'))).toHaveLength(1)
  expect(double.requests.filter(({ verb, query }) => verb === 'list' && query.get('continue') !== null)).toHaveLength(1)
  expect(await later.endStray(foreign.reference)).toBe(false)
  expect(await later.endStray('docker:0123')).toBe(false)
  for (const { reference } of seen) expect(await later.endStray(reference)).toBe(true)
  for (const { reference } of seen) expect(await later.endStray(reference)).toBe(false)
  expect(await later.list()).toEqual([])
  expect(double.objects.all('deployments').map(({ metadata }) => metadata.labels?.[LABELS.installation])).not.toContain(
    INSTALLATION,
  )
  await foreign.stop({ graceMs: 1000 })
  await expect.poll(() => double.left()).toEqual([])
})

it('is chosen by a variable, and says at once when the others make no sense', async () => {
  const hosting = (env: Record<string, string>) =>
    createImageHosting({
      env: { PLATFORM_CONTAINER_RUNTIME: 'kubernetes', ...env },
      installationId: INSTALLATION,
      platformUrl: 'http://127.0.0.1:1',
      log: SILENT,
    })
  for (const [variable, value] of [
    ['PLATFORM_KUBERNETES_NAMESPACES', 'agents,Not_A_Name'],
    ['PLATFORM_KUBERNETES_PULL_SECRETS', '../x'],
    ['PLATFORM_KUBERNETES_NODE_HOST', 'http://10.0.0.1:30000'],
    ['PLATFORM_KUBERNETES_RUN_AS_USER', '0'],
  ] as const) {
    expect(() => hosting({ [variable]: value })).toThrow(variable)
  }
  const folder = mkdtempSync(path.join(tmpdir(), 'kubeconfig-'))
  const KUBECONFIG = path.join(folder, 'config')
  const { runtime } = hosting({ KUBECONFIG })
  expect(await runtime.unavailable()).toMatch(/^the kubeconfig cannot be used: /)
  await expect(runtime.start(imageStart(), effectsOf())).rejects.toThrow(
    /^The agent cannot be started: the kubeconfig cannot be used/,
  )
  writeFileSync(KUBECONFIG, '{"apiVersion":"v1","kind":"Config","clusters":[],"contexts":[],"users":[]}')
  expect(await runtime.unavailable()).toBe('the kubeconfig has no current context with a cluster')
  expect(await runtime.list()).toEqual([])
  rmSync(folder, { recursive: true, force: true })
})
