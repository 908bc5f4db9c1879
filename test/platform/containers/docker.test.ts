import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ResourceSpec } from '../../../src/contract/resource-spec.ts'
import { createDockerRuntime } from '../../../src/platform/control-plane/runtimes/docker/docker.ts'
import { engineOf } from '../../../src/platform/control-plane/runtimes/docker/engine.ts'
import type { AgentProcess, ImageStart, StartFailure } from '../../../src/platform/control-plane/runtimes/runtime.ts'
import { makeBaseImage, makeForeignImage, makeImage, pushForeignList, pushImage } from '../../support/agent-image.ts'
import { engineMissing, startEngine, TEST_REPOSITORY, type TestEngine } from '../../support/docker-engine.ts'
import { REGISTRY_LOGIN, registryMissing, startRegistry, type TestRegistry } from '../../support/docker-registry.ts'
import { memoryLog } from '../support/memory-log.ts'
import { until } from '../support/processes.ts'
import { type EngineDoor, openDoor } from './support/engine-door.ts'

const missing = engineMissing() ?? registryMissing()
const folder = mkdtempSync(path.join(tmpdir(), 'containers-'))
const installationId = randomUUID()
const started: AgentProcess[] = []
let engine: TestEngine
let door: EngineDoor
let registry: TestRegistry
let closed: TestRegistry
let image: string
let digest: string

beforeAll(async () => {
  if (missing !== null) return
  engine = await startEngine()
  door = await openDoor(engine.host)
  ;[registry, closed] = await Promise.all([startRegistry(), startRegistry({ login: true })])
  await makeBaseImage(engine.docker)
  image = `${registry.address}/${TEST_REPOSITORY}/agent:1`
  await makeImage(engine.docker, image)
  digest = await pushImage(engine.docker, image)
}, 180_000)

beforeEach((context) => {
  if (missing !== null) context.skip(missing)
})

afterEach(async () => {
  await Promise.all(started.splice(0).map((agent) => agent.stop({ graceMs: 0 })))
  const left = await leftovers()
  if (left.length > 0) throw new Error(`containers were left behind: ${left.join(', ')}`)
})

afterAll(async () => {
  await door?.remove()
  await Promise.all([registry?.stop(), closed?.stop(), engine?.stop()])
  rmSync(folder, { recursive: true, force: true })
}, 60_000)

/** Names of the containers of this installation. */
async function leftovers(installation = installationId): Promise<string[]> {
  if (missing !== null) return []
  const label = `deploy-agent-server.installation=${installation}`
  const containers = await engine.docker.listContainers({ all: true, filters: JSON.stringify({ label: [label] }) })
  return containers.flatMap(({ Names }) => Names)
}

interface Start {
  readonly uri?: string
  readonly env?: Record<string, string>
  readonly resources?: ResourceSpec
  readonly config?: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** A runtime as the platform has it; `config` is the folder of Docker's configuration. */
function runtimeOf({ config = folder, installation = installationId, host = door.host } = {}) {
  return createDockerRuntime({
    engine: engineOf({ DOCKER_HOST: host }),
    installationId: installation,
    env: { DOCKER_CONFIG: config },
  })
}

function start({
  uri = image,
  env = {},
  resources,
  config,
  timeoutMs = 20_000,
  signal = new AbortController().signal,
}: Start = {}) {
  const log = memoryLog()
  const exact: string[] = []
  const request: ImageStart = {
    agentId: randomUUID(),
    deploymentId: randomUUID(),
    deploymentName: 'agent',
    revisionId: randomUUID(),
    imageUri: uri,
    resources: resources ?? null,
    listenerConfig: null,
    env,
  }
  const runtime = runtimeOf(config === undefined ? {} : { config })
  const running = runtime.start(request, { log, signal, timeoutMs, onImage: (found) => exact.push(found) })
  const kept = running.then((agent) => (started.push(agent), agent))
  kept.catch(() => undefined)
  return { started: kept, log, exact, request, runtime }
}

const get = (agent: AgentProcess, where: string, init?: RequestInit) =>
  fetch(`http://${agent.address.host}:${agent.address.port}${where}`, init)

const idOf = (agent: AgentProcess) => agent.reference.slice('docker:'.length)
const inspect = (agent: AgentProcess) => engine.docker.getContainer(idOf(agent)).inspect()

/** Puts a login for a registry into a configuration of Docker's. @returns its folder. */
function loginFor(address: string, password: string): string {
  const place = mkdtempSync(path.join(folder, 'config-'))
  const auth = Buffer.from(`${REGISTRY_LOGIN.username}:${password}`).toString('base64')
  writeFileSync(path.join(place, 'config.json'), JSON.stringify({ auths: { [address]: { auth } } }))
  return place
}

const failure = async (running: Promise<AgentProcess>) => {
  const error = await running.then(
    () => new Error('it started'),
    (reason: Error) => reason,
  )
  expect(error.name).toBe('StartFailure')
  return error as StartFailure
}

describe('an image that is started', { timeout: 60_000 }, () => {
  test('is pulled by its tag, tells its digest, and answers on a port of this machine only', async () => {
    const { started: running, exact, log } = start()
    const agent = await running
    expect(exact).toEqual([`${image}@${digest}`])
    expect(agent.address.host).toBe('127.0.0.1')
    expect(await (await get(agent, '/ok')).json()).toEqual({ ok: true })
    const { NetworkSettings } = await inspect(agent)
    expect(NetworkSettings.Ports['8000/tcp']?.map(({ HostIp }) => HostIp)).toEqual(['127.0.0.1'])
    expect(log.lines.map(({ message }) => message)).toEqual(
      expect.arrayContaining([
        `Pulling ${image}`,
        expect.stringContaining(`Pulled ${image}@${digest}`),
        expect.stringContaining('version 1 starts'),
      ]),
    )
  })

  test('is pulled by its digest, with or without a tag, and not again when the engine has it', async () => {
    await engine.docker
      .getImage(image)
      .remove({ force: true })
      .catch(() => undefined)
    const byDigest = `${registry.address}/${TEST_REPOSITORY}/agent@${digest}`
    for (const uri of [byDigest, `${image}@${digest}`]) {
      const { started: running, exact } = start({ uri })
      await running
      expect(exact).toEqual([uri])
    }
    const again = start({ uri: byDigest })
    await again.started
    expect(again.log.lines.map(({ message }) => message).join()).not.toContain('Pulling')
  })

  test('has the deployment’s environment over its own, and the platform’s variables', async () => {
    const name = await makeImage(engine.docker, `${registry.address}/${TEST_REPOSITORY}/agent:env`, {
      env: { FROM_IMAGE: 'kept', VERSION: '1' },
    })
    await pushImage(engine.docker, name)
    const env = { MODEL_KEY: 'a "quoted" $value\nwith lines', VERSION: '7', POSTGRES_URI_CUSTOM: 'postgres://db/agents' }
    const agent = await start({ uri: name, env }).started
    const seen = (await (await get(agent, '/env')).json()) as Record<string, string>
    expect(seen).toMatchObject({
      ...env,
      FROM_IMAGE: 'kept',
      LOG_JSON: 'true',
      PORT: '8000',
      DATABASE_URI: 'postgres://db/agents',
    })
    const own = await start({ env: { PORT: '9123' } }).started
    expect((await inspect(own)).NetworkSettings.Ports).toHaveProperty('9123/tcp')
  })

  test('has the limits of resource_spec, and few rights', async () => {
    const agent = await start({ resources: { cpu: 0.5, cpu_limit: 1, memory_mb: 256, memory_limit_mb: 512 } }).started
    const { HostConfig } = await inspect(agent)
    const MIB = 1024 ** 2
    expect(HostConfig).toMatchObject({
      NanoCpus: 1e9,
      CpuShares: 512,
      Memory: 512 * MIB,
      MemoryReservation: 256 * MIB,
      Privileged: false,
      SecurityOpt: ['no-new-privileges'],
      CapDrop: ['ALL'],
      PidsLimit: 4096,
      RestartPolicy: { Name: 'no' },
      LogConfig: { Config: { 'max-size': '10m', 'max-file': '3' } },
    })
    const { log, started: more } = start({ resources: { cpu_limit: 16, memory_mb: 512, memory_limit_mb: 256 } })
    expect((await inspect(await more)).HostConfig).toMatchObject({ Memory: 256 * MIB, MemoryReservation: 256 * MIB })
    expect(log.lines.map(({ message }) => message).join()).toContain('cpu_limit is 16')
  })

  test('that has outgrown its memory is ended, and its log says so', async () => {
    const { started: running, log } = start({ resources: { memory_limit_mb: 128 } })
    const agent = await running
    await get(agent, '/hoard')
    expect(await agent.exited).toEqual({ code: 137, signal: null })
    expect(log.lines.at(-1)).toEqual({ level: 'ERROR', message: 'The agent exited with code 137 (out of memory)' })
    await until(async () => (await leftovers()).length === 0)
  })

  test('of a registry that asks for a login is pulled with the one in Docker’s configuration, and refused without', async () => {
    const name = `${closed.address}/${TEST_REPOSITORY}/agent:private`
    await makeImage(engine.docker, name)
    await pushImage(engine.docker, name, { login: true })
    for (const config of [folder, loginFor(closed.address, 'wrong-password-1')]) {
      const refused = start({ uri: name, config })
      const { message } = await failure(refused.started)
      expect(message).toContain(`The registry ${closed.address} refuses ${name}`)
      expect(message).toContain('config.json')
      expect(JSON.stringify(refused.log.lines)).not.toContain('wrong-password-1')
    }
    const { started: running, log } = start({ uri: name, config: loginFor(closed.address, REGISTRY_LOGIN.password) })
    await running
    expect(JSON.stringify(log.lines)).not.toContain(REGISTRY_LOGIN.password)
  })

  test('is what the engine has by that name when it was made there and is in no registry', async () => {
    const name = await makeImage(engine.docker, `${TEST_REPOSITORY}/home-made:1`)
    const { started: running, exact, log } = start({ uri: name })
    await running
    expect(exact).toEqual([name])
    expect(log.lines.map(({ message }) => message).join()).toContain('is in no registry that answers')
  })
})

describe('an image that does not come up', { timeout: 60_000 }, () => {
  test.each([
    ['a tag that is not there', () => `${registry.address}/${TEST_REPOSITORY}/agent:missing`, 'There is no image'],
    ['a repository that is not there', () => `${registry.address}/${TEST_REPOSITORY}/nobody:1`, 'There is no image'],
    [
      'a digest that is not there',
      () => `${registry.address}/${TEST_REPOSITORY}/agent@sha256:${'0'.repeat(64)}`,
      'There is no image',
    ],
    ['capital letters', () => `${registry.address}/UPPER/agent:1`, 'names no image'],
    ['a path that leads elsewhere', () => 'agent/../../containers/json?', 'names no image'],
    ['parts that no image has', () => `${registry.address}/agent#1`, 'names no image'],
    ['a digest that is none', () => `${registry.address}/agent@sha256:12`, 'names no image'],
  ])('because of %s', async (_, uri, sentence) => {
    const { message } = await failure(start({ uri: uri() }).started)
    expect(message).toContain(sentence)
    expect(message).toContain(uri())
  })

  test('because it is made for another kind of machine', async () => {
    const name = await makeForeignImage(engine.docker, `${registry.address}/${TEST_REPOSITORY}/foreign:1`)
    const foreign = await pushImage(engine.docker, name)
    const { message } = await failure(start({ uri: name }).started)
    expect(message).toMatch(/The image is made for linux\/(arm64|amd64), and the engine's machine is linux\/(amd64|arm64)\.$/)
    await pushForeignList(registry, { path: `${TEST_REPOSITORY}/foreign`, tag: 'list', digest: foreign })
    const listed = await failure(start({ uri: `${registry.address}/${TEST_REPOSITORY}/foreign:list` }).started)
    expect(listed.message).toContain("is not made for the engine's machine")
  })

  test('because its program ends at once; what it printed is in the log', async () => {
    const { started: running, log } = start({ env: { MODE: 'unwell' } })
    const { message, output } = await failure(running)
    expect(message).toBe('The agent exited with code 3 before it answered.')
    expect(output).toContain('there is no model to talk to')
    const lines = log.lines.map((line) => line.message)
    expect(lines.indexOf('there is no model to talk to')).toBeGreaterThan(-1)
    expect(lines.at(-1)).toBe(message)
  })

  test('because its program is not there', async () => {
    const name = await makeImage(engine.docker, `${registry.address}/${TEST_REPOSITORY}/agent:program`, {
      command: ['/usr/bin/nothing'],
    })
    await pushImage(engine.docker, name)
    const { started: running, log } = start({ uri: name })
    expect((await failure(running)).message).toContain('could not be run')
    expect(log.lines.map((line) => line.message).join()).toContain('/usr/bin/nothing')
  })

  test('because it never answers', async () => {
    const { started: running } = start({ env: { MODE: 'silent' }, timeoutMs: 3000 })
    expect((await failure(running)).message).toBe('The agent did not answer GET /ok within 3 s.')
  })

  test('because it was interrupted while it came up', async () => {
    const stop = new AbortController()
    const { started: running, log } = start({ env: { MODE: 'silent' }, signal: stop.signal })
    await until(() => log.lines.some(({ message }) => message.includes('starts')))
    stop.abort(new Error('enough'))
    await expect(running).rejects.toThrow('enough')
    expect(await leftovers()).toEqual([])
  })
})

describe('an agent in a container', { timeout: 60_000 }, () => {
  test('is asked to stop, finishes what it has in flight, and is removed', async () => {
    const { started: running, log } = start()
    const agent = await running
    const body = JSON.stringify({ input: { messages: [{ content: '1500' }] } })
    const stream = get(agent, '/runs/stream', { method: 'POST', body }).then((response) => response.text())
    await new Promise((resolve) => setTimeout(resolve, 300))
    await agent.stop({ graceMs: 10_000 })
    expect(await stream).toContain('version 1: 1500')
    expect(await agent.exited).toEqual({ code: 0, signal: null })
    expect(log.lines.map(({ message }) => message)).toEqual(
      expect.arrayContaining(['asked to stop', 'The agent exited with code 0']),
    )
    expect(await leftovers()).toEqual([])
    await agent.stop({ graceMs: 0 })
  })

  test('that crashes is noticed and removed', async () => {
    const agent = await start().started
    await get(agent, '/crash').catch(() => undefined)
    expect(await agent.exited).toEqual({ code: 9, signal: null })
    await until(async () => (await leftovers()).length === 0)
  })

  test('that somebody removes by hand is noticed', async () => {
    const agent = await start().started
    await engine.docker.getContainer(idOf(agent)).remove({ force: true })
    expect((await agent.exited).code).not.toBe(0)
  })

  test('writes its log line by line, each once, also when the engine was away meanwhile', async () => {
    const { started: running, log } = start()
    const agent = await running
    const say = (text: string) => get(agent, '/say', { method: 'POST', body: JSON.stringify({ text }) })
    await say('one')
    await until(() => log.lines.some(({ message }) => message === 'one'))
    await door.close()
    await say('two')
    await door.open()
    await say('three\nand \u001b[31mfour\u001b[0m')
    await until(() => log.lines.some(({ message }) => message === 'and four'))
    const spoken = log.lines
      .map(({ message }) => message)
      .filter((message) => ['one', 'two', 'three', 'and four'].includes(message))
    expect(spoken).toEqual(['one', 'two', 'three', 'and four'])
  })

  test('is started when the engine comes back, and ended when it comes back', async () => {
    await door.close()
    const { started: running, log } = start()
    await until(() => log.lines.some(({ message }) => message.includes('does not answer')))
    await door.open()
    const agent = await running
    await door.close()
    const stopped = agent.stop({ graceMs: 0 })
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(await leftovers()).toHaveLength(1)
    await door.open()
    await stopped
    expect(await leftovers()).toEqual([])
  })

  test('is found by a later platform, by its reference and by its label, and by no other installation', async () => {
    const { started: running, request } = start()
    const agent = await running
    const later = runtimeOf()
    expect(await later.list()).toEqual([{ agentId: request.agentId, reference: agent.reference }])
    const stranger = runtimeOf({ installation: randomUUID() })
    expect(await stranger.list()).toEqual([])
    expect(await stranger.endStray(agent.reference)).toBe(false)
    expect(await later.endStray('process:1:1')).toBe(false)
    expect((await get(agent, '/ok')).status).toBe(200)
    expect(await later.endStray(agent.reference)).toBe(true)
    expect(await later.endStray(agent.reference)).toBe(false)
    expect(await leftovers()).toEqual([])
  })
})

describe('an engine', () => {
  test('that answers is available, also when it is away for a moment; one that never answered is not', async () => {
    const runtime = runtimeOf()
    expect(await runtime.unavailable()).toBeNull()
    await door.close()
    expect(await runtime.unavailable()).toBeNull()
    expect(await runtimeOf().unavailable()).toMatch(/^no container engine answers at unix:.*ENOENT.*DOCKER_HOST$/)
    await door.open()
    expect(await runtime.list()).toEqual([])
  })
})
