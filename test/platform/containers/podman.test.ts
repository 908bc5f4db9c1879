import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createDockerRuntime } from '../../../src/platform/control-plane/runtimes/docker/docker.ts'
import { engineOf } from '../../../src/platform/control-plane/runtimes/docker/engine.ts'
import type { ImageStart } from '../../../src/platform/control-plane/runtimes/runtime.ts'
import { makeBaseImage, makeImage, pushImage } from '../../support/agent-image.ts'
import { TEST_REPOSITORY, type TestEngine } from '../../support/docker-engine.ts'
import { registryMissing, startRegistry, type TestRegistry } from '../../support/docker-registry.ts'
import { podmanMissing, startPodman } from '../../support/podman.ts'
import { memoryLog } from '../support/memory-log.ts'

const missing = podmanMissing() ?? registryMissing()
let engine: TestEngine
let registry: TestRegistry
let image: string

beforeAll(async () => {
  if (missing !== null) return
  engine = await startPodman()
  registry = await startRegistry()
  await makeBaseImage(engine.docker)
  image = await makeImage(engine.docker, `${registry.address}/${TEST_REPOSITORY}/agent:1`)
  await pushImage(engine.docker, image)
}, 180_000)

beforeEach((context) => {
  if (missing !== null) context.skip(missing)
})

afterAll(async () => {
  await registry?.stop()
  await engine?.stop()
}, 60_000)

test('Podman’s service runs agents as well: pulled, limited, logged, listed, ended', { timeout: 90_000 }, async () => {
  const log = memoryLog()
  const exact: string[] = []
  const runtime = createDockerRuntime({ engine: engineOf({ DOCKER_HOST: engine.host }), installationId: randomUUID(), env: {} })
  const request: ImageStart = {
    agentId: randomUUID(),
    deploymentId: randomUUID(),
    deploymentName: 'agent',
    revisionId: randomUUID(),
    imageUri: image,
    resources: { cpu_limit: 1, memory_limit_mb: 256 },
    listenerConfig: null,
    env: { MODEL_KEY: 'a value' },
  }
  const effects = { log, signal: new AbortController().signal, timeoutMs: 30_000, onImage: (uri: string) => void exact.push(uri) }
  expect(await runtime.unavailable()).toBeNull()
  const agent = await runtime.start(request, effects)
  const accept = 'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json'
  const manifest = await registry.ask(`/v2/${TEST_REPOSITORY}/agent/manifests/1`, { headers: { Accept: accept } })
  expect(exact).toEqual([`${image}@${manifest.headers.get('docker-content-digest')}`])
  const seen = await (await fetch(`http://${agent.address.host}:${agent.address.port}/env`)).json()
  expect(seen).toMatchObject({ MODEL_KEY: 'a value', PORT: '8000' })
  const { HostConfig } = await engine.docker.getContainer(agent.reference.slice('docker:'.length)).inspect()
  expect(HostConfig).toMatchObject({ Memory: 256 * 1024 ** 2, NanoCpus: 1e9, Privileged: false })
  expect(await runtime.list()).toEqual([{ agentId: request.agentId, reference: agent.reference }])
  await agent.stop({ graceMs: 5000 })
  expect(await agent.exited).toEqual({ code: 0, signal: null })
  expect(log.lines.map(({ message }) => message)).toEqual(
    expect.arrayContaining([expect.stringContaining('version 1 starts'), 'asked to stop']),
  )
  expect(await runtime.list()).toEqual([])

  await expect(runtime.start({ ...request, agentId: randomUUID(), env: { MODE: 'unwell' } }, effects)).rejects.toThrow(
    'exited with code 3',
  )
  await expect(runtime.start({ ...request, imageUri: `${image}x` }, effects)).rejects.toThrow(`There is no image ${image}x`)
  expect(await runtime.list()).toEqual([])
})
