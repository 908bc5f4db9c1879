import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Deployment } from '../../../src/contract/deployment.ts'
import { makeBaseImage, makeImage, pushImage } from '../../support/agent-image.ts'
import { engineMissing, startEngine, TEST_REPOSITORY, type TestEngine } from '../../support/docker-engine.ts'
import { registryMissing, startRegistry, type TestRegistry } from '../../support/docker-registry.ts'
import {
  agentUrl,
  KEY,
  type PlatformProcess,
  query,
  reach,
  run,
  startPlatformProcess,
  statusOf,
} from '../lifecycle-support/platform-process.ts'
import { startLoad } from '../support/load.ts'
import { until } from '../support/processes.ts'
import { type EngineDoor, openDoor } from './support/engine-door.ts'

const missing = engineMissing() ?? registryMissing()
const folder = mkdtempSync(path.join(tmpdir(), 'platform-containers-'))
const data = path.join(folder, 'data')
const SECRET = 'sk-secret-of-the-agent'
let engine: TestEngine
let door: EngineDoor
let registry: TestRegistry
let platform: PlatformProcess
let deployment: Deployment
const digests = new Map<string, string>()

const imageOf = (tag: string) => `${registry.address}/${TEST_REPOSITORY}/agent:${tag}`
const start = () => startPlatformProcess(data, { DOCKER_HOST: door.host, DOCKER_CONFIG: folder })

beforeAll(async () => {
  if (missing !== null) return
  engine = await startEngine()
  door = await openDoor(engine.host)
  registry = await startRegistry()
  await makeBaseImage(engine.docker)
  for (const version of ['1', '2', '3']) await pushAs(version, version)
  platform = await start()
}, 240_000)

beforeEach((context) => {
  if (missing !== null) context.skip(missing)
})

afterAll(async () => {
  await platform?.stop()
  await door?.remove()
  await registry?.stop()
  await engine?.stop()
  rmSync(folder, { recursive: true, force: true })
}, 60_000)

async function pushAs(version: string, tag: string): Promise<void> {
  await makeImage(engine.docker, imageOf(tag), { env: { VERSION: version } })
  digests.set(tag, await pushImage(engine.docker, imageOf(tag)))
}

function create(name: string, imageUri: string, secrets: Record<string, string> = {}): Promise<Deployment> {
  return platform.ask<Deployment>('/v2/deployments', {
    method: 'POST',
    body: {
      name,
      source: 'external_docker',
      source_config: { resource_spec: { cpu_limit: 1, memory_limit_mb: 512 } },
      source_revision_config: { image_uri: imageUri },
      secrets: Object.entries(secrets).map(([key, value]) => ({ name: key, value })),
    },
  })
}

function patch(id: string, body: unknown): Promise<Deployment> {
  return platform.ask<Deployment>(`/v2/deployments/${id}`, { method: 'PATCH', body })
}

const ask = async (where: string) => {
  const response = await fetch(`${agentUrl(platform, deployment)}${where}`, { headers: { 'X-Api-Key': KEY } })
  return (await response.json()) as Record<string, string>
}

async function logOf(revisionId: string | null): Promise<string[]> {
  const { logs } = await platform.ask<{ logs: { message: string }[] }>(
    `/v2/deployments/${deployment.id}/revisions/${revisionId}/logs?type=deploy&limit=1000`,
  )
  return logs.map(({ message }) => message)
}

/** The revisions that have a container, of the deployment or of all. */
async function containers(deploymentId?: string): Promise<{ id: string; revision: string | undefined }[]> {
  const label = `deploy-agent-server.deployment${deploymentId === undefined ? '' : `=${deploymentId}`}`
  const found = await engine.docker.listContainers({ all: true, filters: JSON.stringify({ label: [label] }) })
  return found.map(({ Id, Labels }) => ({ id: Id, revision: Labels['deploy-agent-server.revision'] }))
}

describe('a deployment of an image', { timeout: 120_000 }, () => {
  test('is deployed with the digest behind its tag, and serves through the platform', async () => {
    deployment = await create('image', imageOf('1'), { MODEL_KEY: SECRET, SAY: SECRET })
    expect(deployment.source_revision_config.image_uri).toBe(imageOf('1'))
    const revision = await reach(platform, deployment, ['DEPLOYED'])
    expect(revision.source_revision_config.image_uri).toBe(`${imageOf('1')}@${digests.get('1')}`)
    await until(async () => (await run(platform, deployment)).text.includes('version 1: 0'))
    const seen = await ask('/env')
    expect(seen).toMatchObject({ MODEL_KEY: SECRET, LANGSMITH_HOST_REVISION_ID: revision.id, LANGSMITH_PROJECT: 'image' })
    expect(seen['LANGSMITH_ENDPOINT']).toMatch(/^http:\/\/10\./)
  })

  test('has its log at the platform, without its secrets', async () => {
    const wanted = [`Pulling ${imageOf('1')}`, expect.stringContaining('version 1 starts'), 'it was told to say ***']
    // What a container says comes through the engine, and may be a moment behind its first answer.
    await expect.poll(() => logOf(deployment.latest_revision_id), { timeout: 10_000 }).toEqual(expect.arrayContaining(wanted))
    expect((await logOf(deployment.latest_revision_id)).join()).not.toContain(SECRET)
  })

  test('traces into the platform that listens on 127.0.0.1 alone', async () => {
    expect(await ask('/trace')).toEqual({ traced: '202' })
    const names = await query<{ name: string }>(
      data,
      "select runs.name from runs join tracing_projects p on p.id = runs.session_id where p.name = 'image'",
    )
    expect(names).toEqual([{ name: 'agent' }])
  })

  test('swaps revisions under load without a failed request, and removes the container before', async () => {
    const before = deployment.latest_revision_id
    const traffic = startLoad(() => run(platform, deployment, { ms: 20 }))
    deployment = await patch(deployment.id, { source_revision_config: { image_uri: imageOf('2') } })
    await reach(platform, deployment, ['DEPLOYING', 'DEPLOYED'])
    const stream = run(platform, deployment, { ms: 6000 })
    await reach(platform, deployment, ['DEPLOYED'])
    const { status, text } = await stream
    await until(() => traffic.versions.includes('2'))
    await traffic.end()
    expect(traffic.failures).toEqual([])
    expect([status, text]).toEqual([200, expect.stringContaining('version 1: 6000')])
    expect(new Set(traffic.versions)).toEqual(new Set(['1', '2']))
    await until(async () => (await containers(deployment.id)).every(({ revision }) => revision !== before), 20_000)
    expect(await containers(deployment.id)).toHaveLength(1)
  })

  test('that crashes is started again', async () => {
    const [before] = await containers(deployment.id)
    await fetch(`${agentUrl(platform, deployment)}/crash`, { headers: { 'X-Api-Key': KEY } })
    await until(async () => (await run(platform, deployment).catch(() => null))?.text.includes('version 2') === true, 20_000)
    expect((await containers(deployment.id)).map(({ id }) => id)).not.toContain(before?.id)
    expect((await logOf(deployment.latest_revision_id)).join()).toContain('The agent exited with code 9')
  })

  test('keeps serving when a revision does not come up, which says why', async () => {
    const traffic = startLoad(() => run(platform, deployment, { ms: 20 }))
    const failing = await patch(deployment.id, {
      secrets: [
        { name: 'MODE', value: 'unwell' },
        { name: 'MODEL_KEY', value: SECRET },
      ],
    })
    const revision = await reach(platform, failing, ['DEPLOY_FAILED'])
    expect(revision.status_message).toBe('The agent exited with code 3 before it answered.')
    expect(await logOf(failing.latest_revision_id)).toContain('there is no model to talk to')
    const unknown = await patch(deployment.id, { source_revision_config: { image_uri: imageOf('none') } })
    expect((await reach(platform, unknown, ['DEPLOY_FAILED'])).status_message).toContain(`There is no image ${imageOf('none')}`)
    await traffic.end()
    expect(traffic.failures).toEqual([])
    expect(new Set(traffic.versions)).toEqual(new Set(['2']))
    expect(await containers(deployment.id)).toHaveLength(1)
  })

  test('is redeployed as the image that it was, also when its tag has moved', async () => {
    const [first] = (
      await platform.ask<{ resources: { id: string }[] }>(`/v2/deployments/${deployment.id}/revisions?status=DEPLOYED&offset=1`)
    ).resources
    await pushAs('3', '1')
    const again = await platform.ask<Deployment>(`/v2/deployments/${deployment.id}/revisions/${first?.id}/redeploy`, {
      method: 'POST',
    })
    const revision = await reach(platform, again, ['DEPLOYED'])
    expect(revision.source_revision_config.image_uri).toMatch(new RegExp(`^${imageOf('1')}@sha256:`))
    await until(async () => (await run(platform, deployment)).text.includes('version 1'))
  })

  test('waits for an engine that is away for a moment', async () => {
    await door.close()
    const waiting = await patch(deployment.id, { source_revision_config: { image_uri: imageOf('2') } })
    await until(async () => (await logOf(waiting.latest_revision_id)).join().includes('does not answer'))
    expect((await statusOf(platform, waiting)).status).toBe('DEPLOYING')
    await door.open()
    await reach(platform, waiting, ['DEPLOYED'])
  })
})

describe('after a kill -9 of the platform', { timeout: 120_000 }, () => {
  test('its containers are removed, the active revision serves again, and what nobody knows goes too', async () => {
    const gone = await create('gone', imageOf('1'))
    await reach(platform, gone, ['DEPLOYED'])
    const before = await containers()
    await platform.kill()
    expect(await containers(), 'they outlive it').toEqual(before)
    // One whose platform died while it made it, and one of another platform on the same engine.
    const [one] = before
    const { Config } = await engine.docker.getContainer(one?.id ?? '').inspect()
    const made = async (labels: Record<string, string>) =>
      (await engine.docker.createContainer({ Image: Config.Image, Labels: { ...Config.Labels, ...labels } })).id
    const nobody = await made({ 'deploy-agent-server.agent': randomUUID() })
    const strangers = await made({ 'deploy-agent-server.installation': randomUUID(), 'deploy-agent-server.agent': randomUUID() })

    platform = await start()
    await until(async () => (await run(platform, deployment).catch(() => null))?.text.includes('version 2') === true, 30_000)
    await until(async () => {
      const ids = (await containers()).map(({ id }) => id)
      return ids.length === 3 && ids.includes(strangers) && !ids.includes(nobody) && before.every(({ id }) => !ids.includes(id))
    }, 60_000)
    await engine.docker.getContainer(strangers).remove({ force: true })
    await platform.ask(`/v2/deployments/${gone.id}`, { method: 'DELETE' })
    await until(async () => (await containers(gone.id)).length === 0, 30_000)
    expect(await containers(deployment.id)).toHaveLength(1)
  })

  test('and nothing is left after a stop', async () => {
    expect(await platform.stop()).toBe(0)
    expect(await containers()).toEqual([])
  })
})

test(
  'without an engine a deployment fails with the reason, and with one the next revision is deployed',
  { timeout: 120_000 },
  async () => {
    await door.close()
    platform = await start()
    deployment = await create('early', imageOf('1'))
    const { status_message: reason } = await reach(platform, deployment, ['CREATE_FAILED'])
    expect(reason).toContain(`no container engine answers at ${door.host}`)
    await door.open()
    deployment = await patch(deployment.id, { source_revision_config: { image_uri: imageOf('1') } })
    await reach(platform, deployment, ['DEPLOYED'])
  },
)
