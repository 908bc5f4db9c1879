import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { WorkflowEvent } from '../support/runner/job-environment.ts'
import { githubFaults } from '../support/github-double.ts'
import { startPreviewWorld, type PreviewWorld } from '../support/preview-world.ts'
import { readable } from '../support/readable.ts'
import type { RunResult } from '../support/runner.ts'
import { DEPLOYED, type Ending, failed } from '../support/scene.ts'

/** The nightly sweep: the bundle, the platform with previews of all kinds, and GitHub's double. */

const NIGHT: WorkflowEvent = {
  name: 'schedule',
  ref: 'refs/heads/main',
  sha: '7fd1a60b01f91b314f59955a4e4d4e80d8edf11d',
  payload: { schedule: '17 3 * * *' },
}
let world: PreviewWorld

beforeAll(async () => {
  world = await startPreviewWorld()
})
afterAll(() => world?.dispose())

const sweep = (inputs: Readonly<Record<string, string>> = {}) =>
  world.step(NIGHT, { mode: 'sweep', 'deployment-name': 'agent', 'source-config': '', ...inputs })
const flaws = (result: RunResult, ending: Ending) => world.flaws(result, ending)
const names = async (nameContains = 'agent-pr-') => (await world.previews(nameContains)).map(({ name }) => name).toSorted()

/** A deployment that nobody waits for; it needs no build that works. */
async function deployment(name: string, source: { repo?: string; image?: string } = {}): Promise<string> {
  const git = {
    source: 'git_host',
    source_config: { repo_url: world.forkUrl(source.repo ?? 'acme/agents'), build_on_push: false },
    source_revision_config: { repo_ref: 'preview-1' },
  }
  const image = {
    source: 'external_docker',
    source_config: { resource_spec: {} },
    source_revision_config: { image_uri: source.image },
  }
  const body = { name, secrets: [], ...(source.image === undefined ? git : image) }
  const answer = await world.request('/v2/deployments', { method: 'POST', body })
  expect(answer.status).toBe(201)
  return ((await answer.json()) as { id: string }).id
}

/** Takes everything away for the next test. */
async function clear(): Promise<void> {
  const { resources } = (await (await world.request('/v2/deployments?limit=100')).json()) as { resources: { id: string }[] }
  for (const { id } of resources) await world.request(`/v2/deployments/${id}?delete_tracing_project=true`, { method: 'DELETE' })
  await expect.poll(async () => (await world.previews()).length, { timeout: 60_000 }).toBe(0)
}

function pullRequests(states: Readonly<Record<number, 'open' | 'closed'>>): void {
  world.github.state.pullRequests.clear()
  for (const [number, state] of Object.entries(states)) world.github.addPullRequest({ number: Number(number), state })
}

describe('a sweep', { timeout: 180_000 }, () => {
  it('removes what is closed, keeps what is open, and touches nothing that is not proved to be its own', async () => {
    await world.open(1)
    pullRequests({ 1: 'open', 2: 'closed', 3: 'closed', 4: 'closed', 5: 'closed' })
    await deployment('agent-pr-1')
    await deployment('agent-pr-2')
    await deployment('agent-pr-3', { repo: 'acme/other' })
    await deployment('agent-pr-4', { image: 'registry.example.com/agent:4' })
    await deployment('agent-pr-99')
    const strangers = ['agent-prod', 'my-agent-pr-2', 'agent-pr-2-old', 'other-pr-2']
    for (const name of strangers) await deployment(name)

    const planned = await sweep({ 'dry-run': 'true' })
    expect(await flaws(planned, { status: 'planned' })).toEqual([])
    expect((await names('')).length).toBe(9)

    const result = await sweep()
    expect(await flaws(result, { status: 'removed' })).toEqual([])
    expect(await names('')).toEqual(['agent-pr-1', 'agent-pr-3', 'agent-pr-4', 'agent-pr-99', ...strangers].toSorted())
    expect(await world.projects()).not.toContain('agent-pr-2')
    expect(result.log).toContain('Swept: 1 removed, 1 kept, 3 left alone.')
    const summary = readable(result.summary)
    for (const says of [
      'agent-pr-2',
      'the pull request is closed',
      'acme/other',
      'no deployment record of this repository names it',
      'no pull request 99',
    ])
      expect(summary).toContain(says)
    expect(await flaws(await sweep(), { status: 'unchanged' })).toEqual([])
    await clear()
  })

  it('removes the preview of an image whose revision a deployment record of this repository names', async () => {
    pullRequests({ 6: 'open' })
    const event = { ...world.event(6, 'opened') }
    const inputs = {
      'deployment-name': 'agent',
      'source-config': '',
      'image-uri': 'registry.example.com/agent:6',
      wait: 'false',
      environment: 'preview-6',
    }
    const opened = await world.step(event, inputs)
    expect(['deployed', 'failed']).toContain(opened.outputs['status'])
    await deployment('agent-pr-7', { image: 'registry.example.com/agent:7' })
    // Another repository's image took the name of one that this repository has had.
    pullRequests({ 6: 'open', 8: 'open' })
    const another = await world.step(world.event(8, 'opened'), { ...inputs, environment: 'preview-8' })
    await world.request(`/v2/deployments/${another.outputs['deployment-id']}?delete_tracing_project=true`, { method: 'DELETE' })
    await expect.poll(async () => await names('agent-pr-8'), { timeout: 30_000 }).toEqual([])
    await deployment('agent-pr-8', { image: 'registry.example.com/other:8' })
    pullRequests({ 6: 'closed', 7: 'closed', 8: 'closed' })
    const result = await sweep()
    expect(await flaws(result, { status: 'removed' })).toEqual([])
    expect(await names()).toEqual(['agent-pr-7', 'agent-pr-8'])
    expect(world.github.requestsOf('repos/list-deployments').length).toBeGreaterThan(0)
    await clear()
  })

  it('removes what is older than preview-ttl, which a push makes young again', async () => {
    await world.open(21)
    await world.open(22)
    const named = { 'deployment-name': 'agent' }
    for (const number of [21, 22])
      expect(await flaws(await world.step(world.event(number, 'opened'), named), DEPLOYED)).toEqual([])
    // The gap between the two ages that the sweep has to tell apart, on a slow machine as well.
    await delay(8000)
    await world.push(22)
    const pushed = await world.step(world.event(22, 'synchronize'), named)
    expect(await flaws(pushed, DEPLOYED)).toEqual([])
    const made = (await (await world.request(`/v2/deployments/${pushed.outputs['deployment-id']}/revisions`)).json()) as {
      resources: { created_at: string }[]
    }
    // Between the age of the last revision of 22 and that of its first, which is younger than the only one of 21.
    const ages = made.resources.map(({ created_at: at }) => (Date.now() - Date.parse(at)) / 1000)
    expect((ages[1] ?? 0) - (ages[0] ?? 0)).toBeGreaterThan(8)
    const result = await sweep({ 'preview-ttl': `${Math.floor(ages[1] ?? 0)}s` })
    expect(await flaws(result, { status: 'removed' })).toEqual([])
    expect(await names()).toEqual(['agent-pr-22'])
    expect(readable(result.summary)).toMatch(/the last revision is .* old, and preview-ttl is/)
    await clear()
  })

  it('reads all pages of the list', async () => {
    pullRequests({ 1: 'closed', 2: 'closed' })
    await deployment('agent-pr-1')
    for (let number = 101; number <= 200; number++)
      await deployment(`agent-pr-${number}`, { image: 'registry.example.com/agent:1' })
    await deployment('agent-pr-2')
    const result = await sweep()
    expect(await flaws(result, { status: 'removed' })).toEqual([])
    expect(result.log).toContain('2 removed, 100 left alone')
    // As long as a list has more than a page, some are left.
    await clear().catch(() => clear())
  })
})

describe('a sweep that cannot see', { timeout: 180_000 }, () => {
  beforeAll(async () => {
    await deployment('agent-pr-31')
    await deployment('agent-pr-32')
  })

  it('is red and removes nothing when GitHub does not answer', async () => {
    pullRequests({ 31: 'closed', 32: 'closed' })
    world.github.on({ path: /\/pulls\/32$/, times: 5 }, githubFaults.badGateway)
    expect(await flaws(await sweep(), failed('E_UNAVAILABLE', 'the pull request 32', 'Nothing was removed.'))).toEqual([])
    expect(await names()).toEqual(['agent-pr-31', 'agent-pr-32'])
  })

  it('names the permission that the token lacks', async () => {
    world.github.permit({ 'pull-requests': 'none' })
    const result = await sweep()
    world.github.permit({ 'pull-requests': 'read' })
    expect(await flaws(result, failed('E_AUTH', 'pull-requests: read'))).toEqual([])
    expect(await names()).toEqual(['agent-pr-31', 'agent-pr-32'])
  })

  it('needs a token', async () => {
    const result = await sweep({ 'github-token': ' ' })
    expect(await flaws(result, failed('E_INPUT', 'github-token'))).toEqual([])
  })

  it('goes on after one that cannot be removed, and is red at the end', async () => {
    const { id } = (
      (await (await world.request('/v2/deployments?name_contains=agent-pr-31')).json()) as { resources: [{ id: string }] }
    ).resources[0]
    world.network.on(
      { method: 'DELETE', path: new RegExp(id), times: 20 },
      { kind: 'answer', status: 409, body: { detail: 'It is locked.' } },
    )
    const result = await sweep()
    world.network.clear()
    expect(await flaws(result, failed('E_CONFLICT', '1 of 2 previews', 'agent-pr-31', 'It is locked.'))).toEqual([])
    expect(await names()).toEqual(['agent-pr-31'])
    expect(await flaws(await sweep(), { status: 'removed' })).toEqual([])
    expect(await names()).toEqual([])
  })
})
