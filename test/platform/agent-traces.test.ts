import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Deployment } from '../../src/contract/deployment.ts'
import {
  agentUrl,
  commitAgent,
  createFast,
  type PlatformProcess,
  query,
  reach,
  run,
  startPlatformProcess,
} from './lifecycle-support/platform-process.ts'
import { createGitRepository } from './support/git-repository.ts'
import { until } from './support/processes.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'platform-agent-traces-'))
const data = path.join(folder, 'data')
let platform: PlatformProcess
let deployment: Deployment

interface Run {
  readonly id: string
  readonly name: string
  readonly run_type: string
  readonly trace_id: string
  readonly parent_run_id: string | null
  readonly dotted_order: string
  readonly status: string
  readonly inputs: unknown
}

interface TracingProject {
  readonly id: string
  readonly name: string
}

beforeAll(async () => {
  const repository = createGitRepository(path.join(folder, 'repository'))
  commitAgent(repository, { version: '1' })
  platform = await startPlatformProcess(data)
  deployment = await createFast(platform, { name: 'traced', repository })
  await reach(platform, deployment, ['DEPLOYED'])
})

afterAll(async () => {
  await platform.stop()
  rmSync(folder, { recursive: true, force: true })
})

const runsOf = async (projectId: string) => {
  const body = { session: [projectId], limit: 100 }
  return (await platform.ask<{ runs: Run[] }>('/api/v1/runs/query', { method: 'POST', body })).runs
}

test("a deployed agent's conversation is found as a proper tree in the tracing project of the deployment's name", async () => {
  expect((await run(platform, deployment)).status).toBe(200)
  const [project] = await platform.ask<TracingProject[]>('/sessions?name=traced')
  expect(project?.name).toBe('traced')
  let runs: Run[] = []
  await until(async () => {
    // Queries are limited to 15 in 10 s.
    await sleep(700)
    runs = await runsOf(project?.id ?? '')
    return runs.some((one) => one.parent_run_id === null && one.status === 'success')
  })
  const roots = runs.filter((one) => one.parent_run_id === null)
  expect(roots).toHaveLength(1)
  const root = roots[0] as Run
  expect(root).toMatchObject({ id: root.trace_id, run_type: 'chain', status: 'success' })
  expect(JSON.stringify(root.inputs)).toContain('"content":"0"')
  const byId = new Map(runs.map((one) => [one.id, one]))
  expect(runs.length).toBeGreaterThan(1)
  for (const child of runs.filter((one) => one.parent_run_id !== null)) {
    const parent = byId.get(child.parent_run_id ?? '')
    expect(child.trace_id).toBe(root.id)
    expect(child.dotted_order.startsWith(`${parent?.dotted_order}.`)).toBe(true)
  }
  expect(runs.map((one) => one.name)).toContain('answer')
})

test('the key that an agent traces with lets runs in, opens nothing else, and ends with the agent', async () => {
  const [row] = await query<{ agent_id: string; workspace_id: string }>(data, "select agent_id, workspace_id from api_keys where scope = 'ingest'")
  expect(row?.agent_id).toMatch(/^[0-9a-f-]{36}$/)
  // The agent's own is kept as a hash only: another one of its kind.
  const key = 'das_agent_of_this_test'
  const hash = createHash('sha256').update(key).digest()
  const values = [row?.workspace_id, hash, row?.agent_id]
  await query(data, "insert into api_keys (id, workspace_id, key_hash, scope, agent_id) values (gen_random_uuid(), $1, $2, 'ingest', $3)", values)
  const status = async (address: string, init: RequestInit = {}) => (await fetch(address, { ...init, headers: { 'X-Api-Key': key } })).status
  expect(await status(`${platform.url}/v2/deployments`)).toBe(403)
  expect(await status(`${platform.url}/sessions`)).toBe(403)
  expect(await status(`${agentUrl(platform, deployment)}/ok`)).toBe(401)
  expect(await status(`${platform.url}/runs/batch`, { method: 'POST', body: '{"post":[],"patch":[]}' })).toBe(202)

  await platform.ask(`/v2/deployments/${deployment.id}`, { method: 'DELETE' })
  await until(async () => (await query(data, "select id from api_keys where scope = 'ingest'")).length === 0)
})
