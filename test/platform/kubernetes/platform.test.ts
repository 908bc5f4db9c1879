import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Deployment } from '../../../src/contract/deployment.ts'
import { LABELS } from '../../../src/platform/control-plane/runtimes/kubernetes/names.ts'
import {
  agentUrl,
  KEY,
  type PlatformProcess,
  reach,
  run,
  startPlatformProcess,
  statusOf,
} from '../lifecycle-support/platform-process.ts'
import { startLoad } from '../support/load.ts'
import { until } from '../support/processes.ts'
import { type ClusterDouble, startClusterDouble } from './support/cluster-double.ts'
import type { Stored } from './support/objects.ts'
import { IMAGE_DIGEST } from './support/pod-acts.ts'

const SECRET = 'sk-secret-of-the-agent'
const folder = mkdtempSync(path.join(tmpdir(), 'platform-kubernetes-'))
let double: ClusterDouble
let platform: PlatformProcess
let deployment: Deployment

const start = () => startPlatformProcess(path.join(folder, 'data'), { ...double.env, PLATFORM_CONTAINER_RUNTIME: 'kubernetes' })
const imageOf = (tag: string) => `registry.example.com/team/agent:${tag}`

beforeAll(async () => {
  double = await startClusterDouble()
  double.agent = (request, response, { env, pod }) => void answer(request, response, { env, pod })
  platform = await start()
}, 60_000)

afterAll(async () => {
  await platform?.stop()
  const { faults } = double
  await double.close()
  rmSync(folder, { recursive: true, force: true })
  if (faults.length > 0) throw new Error(faults.join('\n'))
}, 60_000)

/** The agent in every pod: answers with the tag of its image, after as many milliseconds as the message says. */
async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { env, pod }: { env: Record<string, string>; pod: Stored },
): Promise<void> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk as string
  const send = (body: object) => response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  if (request.url === '/ok') return void send({ ok: true })
  if (request.url === '/env') return void send(env)
  const tag = /:(\w+)(@|$)/.exec((pod.spec.containers[0] as { image: string }).image)?.[1]
  response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
  const { input } = JSON.parse(text) as { input: { messages: { content: string }[] } }
  await Promise.race([sleep(Number(input.messages[0]?.content)), once(response, 'close')])
  response.end(`event: updates\ndata: "version ${tag}"\n\n`)
}

function create(name: string, imageUri: string): Promise<Deployment> {
  return platform.ask<Deployment>('/v2/deployments', {
    method: 'POST',
    body: {
      name,
      source: 'external_docker',
      source_config: { resource_spec: { cpu_limit: 1, memory_limit_mb: 512 }, listener_config: { k8s_namespace: 'agents' } },
      source_revision_config: { image_uri: imageUri },
      secrets: [{ name: 'MODEL_KEY', value: SECRET }],
    },
  })
}

function patch(imageUri: string): Promise<Deployment> {
  return platform.ask<Deployment>(`/v2/deployments/${deployment.id}`, {
    method: 'PATCH',
    body: { source_revision_config: { image_uri: imageUri } },
  })
}

/** The revisions that have a Deployment in the cluster. */
const revisions = () => double.objects.all('deployments').map(({ metadata }) => metadata.labels?.[LABELS.revision])

describe('a platform whose images run in a cluster', { timeout: 120_000 }, () => {
  test('deploys one, with the digest behind its tag, and serves it', async () => {
    deployment = await create('image', imageOf('1'))
    const revision = await reach(platform, deployment, ['DEPLOYED'])
    expect(revision.source_revision_config.image_uri).toBe(`${imageOf('1')}@${IMAGE_DIGEST}`)
    await until(async () => (await run(platform, deployment)).text.includes('version 1'))
    const seen = await fetch(`${agentUrl(platform, deployment)}/env`, { headers: { 'X-Api-Key': KEY } })
    expect(await seen.json()).toMatchObject({ MODEL_KEY: SECRET, LANGSMITH_HOST_REVISION_ID: revision.id })
  })

  test('swaps revisions under load without a failed request, and removes what was before', async () => {
    const before = deployment.latest_revision_id
    const traffic = startLoad(() => run(platform, deployment, { ms: 20 }))
    deployment = await patch(imageOf('2'))
    await reach(platform, deployment, ['DEPLOYING', 'DEPLOYED'])
    const stream = run(platform, deployment, { ms: 4000 })
    await reach(platform, deployment, ['DEPLOYED'])
    const { status, text } = await stream
    await until(() => traffic.versions.includes('2'))
    await traffic.end()
    expect(traffic.failures).toEqual([])
    expect([status, text]).toEqual([200, expect.stringContaining('version 1')])
    expect(new Set(traffic.versions)).toEqual(new Set(['1', '2']))
    await until(() => !revisions().includes(before ?? ''), 20_000)
    await until(() => double.left().length === 4)
  })

  test('keeps serving when a revision does not come up, and says why', async () => {
    const { behaviour } = double
    double.behaviour = (acts) => {
      acts.run()
      acts.print('there is no model to talk to')
      acts.crash({ exitCode: 3 })
    }
    const failing = await patch(imageOf('3'))
    const revision = await reach(platform, failing, ['DEPLOY_FAILED'])
    expect(revision.status_message).toBe('The agent exited with code 3 before it answered.')
    const { logs } = await platform.ask<{ logs: { message: string }[] }>(
      `/v2/deployments/${deployment.id}/revisions/${failing.latest_revision_id}/logs?type=deploy&limit=1000`,
    )
    expect(logs.map(({ message }) => message)).toContain('there is no model to talk to')
    double.behaviour = behaviour
    expect((await run(platform, deployment)).text).toContain('version 2')
  })

  test('waits for an API server that is away for a moment', async () => {
    double.trouble.away = true
    double.cut()
    const waiting = await patch(imageOf('4'))
    await reach(platform, waiting, ['DEPLOYING'])
    expect((await run(platform, deployment)).text).toContain('version 2')
    await sleep(2000)
    expect((await statusOf(platform, waiting)).status).toBe('DEPLOYING')
    double.trouble.away = false
    await reach(platform, waiting, ['DEPLOYED'])
    deployment = waiting
  })

  test('after a kill -9 its agents are replaced, and what nobody knows goes too', async () => {
    await until(() => double.left().length === 4, 20_000)
    await platform.kill()
    const [left] = double.objects.all('deployments')
    expect(double.left(), 'they outlive it').toHaveLength(4)
    // One whose platform died while it made it, and one of another platform in the same cluster.
    const also = (name: string, labels: Record<string, string>) => {
      const metadata = { ...left!.metadata, name, labels: { ...left!.metadata.labels, ...labels } }
      const spec = { ...left!.spec, selector: { matchLabels: { nobody: name } } }
      return double.objects.add('deployments', { ...left!, metadata, spec, status: {} })
    }
    const nobody = also('nobody', { [LABELS.agent]: randomUUID() })
    const strangers = also('strangers', { [LABELS.installation]: randomUUID(), [LABELS.agent]: randomUUID() })
    platform = await start()
    await until(async () => (await run(platform, deployment).catch(() => null))?.text.includes('version 4') === true, 30_000)
    const names = () => double.objects.all('deployments').map(({ metadata }) => metadata.name)
    await until(
      () => names().length === 2 && !names().includes(nobody.metadata.name) && !names().includes(left!.metadata.name),
      60_000,
    )
    double.objects.remove('deployments', strangers)
  })

  test('a deletion leaves nothing, and neither does a stop', async () => {
    const gone = await create('gone', imageOf('1'))
    await reach(platform, gone, ['DEPLOYED'])
    await platform.ask(`/v2/deployments/${gone.id}`, { method: 'DELETE' })
    await until(() => double.left().length === 4, 30_000)
    expect(platform.log()).not.toContain(SECRET)
    expect(await platform.stop()).toBe(0)
    await until(() => double.left().length === 0)
  })
})
