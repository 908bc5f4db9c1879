import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeBaseImage, makeImage, pushImage } from '../support/agent-image.ts'
import { engineMissing, startEngine, TEST_REPOSITORY, type TestEngine } from '../support/docker-engine.ts'
import { registryMissing, startRegistry, type TestRegistry } from '../support/docker-registry.ts'
import { startPlatform, type PlatformProcess } from '../support/platform.ts'
import { runAction, type RunResult } from '../support/runner.ts'
import { DEPLOYED, type Ending, failed, flawsOf } from '../support/scene.ts'

const missing = engineMissing() ?? registryMissing()
const secret = 'sk-secret-of-the-image'
const results: RunResult[] = []
const digests: string[] = []
let engine: TestEngine
let registry: TestRegistry
let platform: PlatformProcess
let folder: string

const imageOf = (tag: string) => `${registry.address}/${TEST_REPOSITORY}/agent:${tag}`

beforeAll(async () => {
  if (missing !== null) return
  folder = await mkdtemp(join(tmpdir(), 'image-'))
  engine = await startEngine()
  registry = await startRegistry()
  await makeBaseImage(engine.docker)
  for (const version of ['1', '2']) {
    await makeImage(engine.docker, imageOf(version), { env: { VERSION: version } })
    digests.push(await pushImage(engine.docker, imageOf(version)))
  }
  platform = await startPlatform({ env: { DOCKER_HOST: engine.host, DOCKER_CONFIG: folder } })
}, 240_000)

beforeEach((context) => {
  if (missing !== null) context.skip(missing)
})

afterAll(async () => {
  await Promise.all(results.map((result) => result.dispose()))
  await platform?.dispose()
  await registry?.stop()
  await engine?.stop()
  if (folder !== undefined) await rm(folder, { recursive: true, force: true })
}, 60_000)

async function step(inputs: Readonly<Record<string, string>>): Promise<RunResult> {
  const result = await runAction({
    with: {
      'api-key': platform.apiKey,
      'control-plane-url': platform.url,
      'deployment-name': 'image-agent',
      'smoke-test-input': JSON.stringify({ messages: [{ role: 'user', content: 'ping' }] }),
      'smoke-test-assistant': 'agent',
      timeout: '60s',
      ...inputs,
    },
    timeoutMs: 90_000,
  })
  results.push(result)
  return result
}

const flaws = (result: RunResult, ending: Ending) => flawsOf(result, ending, [platform.apiKey, secret])

describe('the action with an image, the platform and a real engine', { timeout: 120_000 }, () => {
  it('deploys a tag, tells the digest, and proves it by a streamed run', async () => {
    const result = await step({
      'image-uri': imageOf('1'),
      secrets: `MODEL_KEY=${secret}`,
      'smoke-test-expect': '^version 1: ping$',
    })
    expect(await flaws(result, DEPLOYED)).toEqual([])
    expect(result.outputs).toMatchObject({
      created: 'true',
      'smoke-test': 'passed',
      'image-uri': `${imageOf('1')}@${digests[0]}`,
      'revision-status': 'DEPLOYED',
    })
  })

  it('makes no revision of an image that serves already, named by its digest', async () => {
    const uri = `${registry.address}/${TEST_REPOSITORY}/agent@${digests[0]}`
    const result = await step({ 'image-uri': uri, 'skip-unchanged': 'true', 'smoke-test-expect': '^version 1: ping$' })
    expect(await flaws(result, { status: 'unchanged' })).toEqual([])
  })

  it('swaps to the next one', async () => {
    const result = await step({ 'image-uri': imageOf('2'), 'smoke-test-expect': '^version 2: ping$' })
    expect(await flaws(result, DEPLOYED)).toEqual([])
  })

  it('is red with the reason and the log when it does not come up', async () => {
    const none = await step({ 'image-uri': imageOf('none') })
    expect(await flaws(none, failed('E_DEPLOY_FAILED', `There is no image ${imageOf('none')}`))).toEqual([])
    const ends = await step({ 'image-uri': imageOf('2'), secrets: `MODEL_KEY=${secret}\nMODE=unwell` })
    expect(await flaws(ends, failed('E_DEPLOY_FAILED', 'exited with code 3'))).toEqual([])
    expect(ends.log).toContain('there is no model to talk to')
  })
})
