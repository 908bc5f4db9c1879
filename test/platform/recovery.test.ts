import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Deployment } from '../../src/contract/deployment.ts'
import {
  commitAgent,
  createFast,
  patch,
  type PlatformProcess,
  query,
  reach,
  run,
  startPlatformProcess,
  statusOf,
  stepsOf,
} from './lifecycle-support/platform-process.ts'
import { createGitRepository, type GitRepository } from './support/git-repository.ts'
import { processesWith, until } from './support/processes.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'platform-recovery-'))
const data = path.join(folder, 'data')
let repository: GitRepository
let platform: PlatformProcess
let deployment: Deployment

const LOST = 'BUILDING>AWAITING_BUILD: its worker was lost (1 of 3 times)'

beforeAll(async () => {
  repository = createGitRepository(path.join(folder, 'repository'))
  commitAgent(repository, { version: '1' })
  platform = await startPlatformProcess(data)
})

afterAll(async () => {
  await platform.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function killAndRestart(): Promise<void> {
  await platform.kill()
  platform = await startPlatformProcess(data)
}

/** The revision serves: one process of it, and the address answers with its version. */
async function expectServing(version: string, revisionId: string | null): Promise<void> {
  await until(async () => (await run(platform, deployment)).text.includes(`version ${version}`), 30_000)
  const agents = await query<{ revision_id: string; state: string }>(data, `select revision_id, state from agents where deployment_id = $1`, [
    deployment.id,
  ])
  expect(agents.filter((agent) => agent.state === 'serving')).toEqual([{ revision_id: revisionId, state: 'serving' }])
  // The agent runs once: its process, and the two that guard it. A process that has just forked looks like its parent for a moment.
  await until(() => processesWith(`${revisionId}/state`).length <= 3)
}

describe('a platform that is killed comes back', () => {
  test('while it serves: the agent serves again, and nothing of before is left', async () => {
    deployment = await createFast(platform, { name: 'recovery', repository })
    // Acknowledged is kept: killed in the very moment after the answer.
    await killAndRestart()
    await reach(platform, deployment, ['DEPLOYED'])
    const before = processesWith(`${deployment.latest_revision_id}/state`)
    await killAndRestart()
    await expectServing('1', deployment.latest_revision_id)
    expect(processesWith(`${deployment.latest_revision_id}/state`).filter((pid) => before.includes(pid))).toEqual([])
    expect((await statusOf(platform, deployment)).status).toBe('DEPLOYED')
  })

  test('while it clones, and again while it builds: taken up again, with a counter', async () => {
    commitAgent(repository, { version: '2', installMs: 2500 })
    deployment = await patch(platform, deployment.id)
    await reach(platform, deployment, ['BUILDING'])
    await killAndRestart()
    expect(await stepsOf(data, deployment.latest_revision_id)).toContain(LOST)
    await until(() => processesWith('install.sh').length > 0, 30_000)
    const installers = processesWith('install.sh')
    await platform.kill()
    platform = await startPlatformProcess(data)
    // The version before serves while the new one is built once more.
    await expectServing('1', (await platform.ask<Deployment>(`/v2/deployments/${deployment.id}`)).active_revision_id)
    await reach(platform, deployment, ['DEPLOYED'])
    expect(processesWith('install.sh').filter((pid) => installers.includes(pid)), 'the build of before is gone').toEqual([])
    expect(await stepsOf(data, deployment.latest_revision_id)).toContain('BUILDING>AWAITING_BUILD: its worker was lost (2 of 3 times)')
    await expectServing('2', deployment.latest_revision_id)
  })

  test('while it starts an agent, and in the moment of the swap', async () => {
    commitAgent(repository, { version: '3', loadMs: 2000 })
    deployment = await patch(platform, deployment.id)
    await reach(platform, deployment, ['DEPLOYING'])
    await killAndRestart()
    expect(await stepsOf(data, deployment.latest_revision_id)).toContain('DEPLOYING>AWAITING_DEPLOY: its worker was lost (1 of 3 times)')
    await reach(platform, deployment, ['DEPLOYED'])
    // The revision before drains at this moment.
    await killAndRestart()
    await expectServing('3', deployment.latest_revision_id)
    expect(await query(data, `select id from agents where deployment_id = $1`, [deployment.id])).toHaveLength(1)
  })

  test('SIGTERM while it builds: handed back without a charge, and resumed', async () => {
    commitAgent(repository, { version: '4', installMs: 2500 })
    deployment = await patch(platform, deployment.id)
    await until(() => processesWith('install.sh').length > 0, 30_000)
    expect(await platform.stop()).toBe(0)
    expect(processesWith(folder), 'nothing goes on').toEqual([])
    platform = await startPlatformProcess(data)
    await reach(platform, deployment, ['DEPLOYED'])
    expect(await stepsOf(data, deployment.latest_revision_id)).toContain('BUILDING>AWAITING_BUILD: the platform was stopped')
    const [row] = await query<{ losses: number }>(data, 'select losses from revisions where id = $1', [deployment.latest_revision_id])
    expect(row?.losses).toBe(0)
    await expectServing('4', deployment.latest_revision_id)
  })

  test('with its builds gone: the recorded commit is built again, and serves', async () => {
    // The branch has moved on: what is built again is the revision's own commit.
    commitAgent(repository, { version: '5' })
    await platform.kill()
    for (const name of readdirSync(path.join(data, 'builds'))) rmSync(path.join(data, 'builds', name), { recursive: true, force: true })
    platform = await startPlatformProcess(data)
    await expectServing('4', deployment.latest_revision_id)
    expect((await statusOf(platform, deployment)).status).toBe('DEPLOYED')
    expect(existsSync(path.join(data, 'builds', deployment.latest_revision_id ?? ''))).toBe(true)
  })

  test('an interruption ends the whole tree of a build, then the queue moves on', async () => {
    commitAgent(repository, { version: '6', installMs: 60_000 })
    deployment = await patch(platform, deployment.id)
    await until(() => processesWith('sleep 60').length > 0, 30_000)
    const stuck = deployment.latest_revision_id
    commitAgent(repository, { version: '7' })
    deployment = await patch(platform, deployment.id)
    await platform.ask(`/v2/deployments/${deployment.id}/revisions/${stuck}/interruption`, { method: 'POST' })
    await reach(platform, deployment, ['INTERRUPTED'], { revisionId: stuck, timeoutMs: 15_000 })
    expect(processesWith('sleep 60'), 'its grandchildren are gone').toEqual([])
    await reach(platform, deployment, ['DEPLOYED'])
    await expectServing('7', deployment.latest_revision_id)
    expect(await platform.stop()).toBe(0)
    expect(processesWith(folder), 'a stopped platform leaves no process behind').toEqual([])
  })
})
