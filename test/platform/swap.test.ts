import { mkdtempSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Deployment } from '../../src/contract/deployment.ts'
import {
  commitAgent,
  createFast,
  patch,
  type PlatformProcess,
  reach,
  run,
  startPlatformProcess,
} from './lifecycle-support/platform-process.ts'
import { createGitRepository, type GitRepository } from './support/git-repository.ts'
import { startLoad } from './support/load.ts'
import { processesWith, until } from './support/processes.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'platform-swap-'))
let repository: GitRepository
let platform: PlatformProcess
let deployment: Deployment

beforeAll(async () => {
  repository = createGitRepository(path.join(folder, 'repository'))
  commitAgent(repository, { version: '1' })
  platform = await startPlatformProcess(path.join(folder, 'data'))
  deployment = await createFast(platform, { name: 'swap', repository })
  await reach(platform, deployment, ['DEPLOYED'])
})

afterAll(async () => {
  await platform.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('no request fails while revisions swap under load, and a stream in flight finishes where it began', async () => {
  const before = deployment.latest_revision_id
  await until(async () => (await run(platform, deployment)).status === 200)
  const traffic = startLoad(() => run(platform, deployment))
  commitAgent(repository, { version: '2' })
  deployment = await patch(platform, deployment.id)
  await reach(platform, deployment, ['AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED'])
  const stream = run(platform, deployment, { ms: 8000 })
  await reach(platform, deployment, ['DEPLOYED'])
  const swappedAt = Date.now()
  // The old one is drained now, and would be ended.
  await sleep(3000)
  const { status, text } = await stream
  await traffic.end()

  expect(traffic.failures).toEqual([])
  expect(status).toBe(200)
  expect(text, 'it began on the old revision').toContain('version 1')
  expect(Date.now() - swappedAt).toBeGreaterThanOrEqual(3000)
  expect(new Set(traffic.versions)).toEqual(new Set(['1', '2']))
  expect(traffic.versions.lastIndexOf('1'), 'once the new one answers, the old one gets nothing new').toBeLessThan(
    traffic.versions.indexOf('2') + 8,
  )
  await until(() => processesWith(`${before}/state`).length === 0, 15_000)
})

test('an agent that dies under load is started again, and one that does not come up never serves', async () => {
  const agent = processesWith(`${deployment.latest_revision_id}/state`).find((pid) =>
    readlinkSync(`/proc/${pid}/exe`).endsWith('node'),
  )
  process.kill(agent!, 'SIGKILL')
  await until(async () => (await run(platform, deployment).catch(() => null))?.text.includes('version') === true, 20_000)
  repository.commit({ 'agent.mjs': "throw new Error('not today')" })
  const failing = await patch(platform, deployment.id)
  const traffic = startLoad(() => run(platform, deployment))
  const revision = await reach(platform, failing, ['DEPLOY_FAILED'], { timeoutMs: 40_000 })
  await traffic.end()
  expect((revision as { status_message?: string }).status_message).toContain('not today')
  expect(traffic.failures).toEqual([])
  expect(new Set(traffic.versions).size).toBe(1)
})
