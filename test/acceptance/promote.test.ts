import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readable } from '../support/readable.ts'
import { type ReleaseWorld, startReleaseWorld } from '../support/release-world.ts'
import type { RunResult } from '../support/runner.ts'
import { DEPLOYED, failed } from '../support/scene.ts'

type Deployment = { id: string; name: string; source_config: { build_on_push: boolean } }
type Revisions = {
  resources: { id: string; status: string; source_revision_config: { repo_ref: string; repo_commit_sha: string } }[]
}

const PING = JSON.stringify({ messages: [{ role: 'user', content: 'ping' }] })
const TEST = { 'smoke-test-input': PING, 'smoke-test-expect': '^echo [0-9]+: ping$', 'smoke-test-timeout': '20s' }
let world: ReleaseWorld

/** The step that deploys every push to staging, and leaves the record of its smoke test. */
const stage = (inputs: Readonly<Record<string, string>> = {}) =>
  world.step({ 'deployment-name': 'staging', environment: 'staging', ...TEST, ...inputs })

/** The step that promotes to production, on the event of a tag. */
async function promote(tag: string, inputs: Readonly<Record<string, string>> = {}, kind: 'release' | 'push' = 'release') {
  const event = kind === 'release' ? await world.releaseEvent(tag) : await world.tagEvent(tag)
  const wanted = {
    mode: 'promote',
    'promote-from': 'staging',
    'deployment-name': 'production',
    environment: 'production',
    ...TEST,
  }
  return await world.step({ ...wanted, ...inputs }, { event })
}

async function find(name: string): Promise<Deployment | undefined> {
  const { resources } = await world.read<{ resources: Deployment[] }>(`/v2/deployments?name_contains=${name}`)
  return resources.find((deployment) => deployment.name === name)
}

async function revisionsOf(name: string): Promise<Revisions['resources']> {
  const id = (await find(name))?.id
  return id === undefined ? [] : (await world.read<Revisions>(`/v2/deployments/${id}/revisions`)).resources
}

const stateOf = (environment: string) => world.github.state.deployments.findLast((record) => record.environment === environment)

beforeAll(async () => {
  world = await startReleaseWorld()
}, 60_000)
afterAll(async () => {
  await world?.dispose()
})

describe('a tag', { timeout: 300_000 }, () => {
  let proven: RunResult

  it('is refused before there is anything to promote, and before it was proven', async () => {
    await world.tag('v1.0.0')
    expect(await world.flaws(await promote('v1.0.0'), failed('E_NOT_FOUND', "'staging' to promote from"))).toEqual([])
    const untested = await stage({ 'smoke-test-input': '', 'smoke-test-expect': '', environment: 'staging' })
    expect(await world.flaws(untested, DEPLOYED)).toEqual([])
    const refused = await promote('v1.0.0')
    expect(
      await world.flaws(
        refused,
        failed('E_CONFLICT', 'no record', untested.outputs['revision-id'] ?? 'none', 'environment and smoke-test-input'),
      ),
    ).toEqual([])
    expect(await find('production')).toBeUndefined()
  })

  it('is shown with its proof in a dry run, which leaves nothing behind', async () => {
    proven = await stage()
    expect(await world.flaws(proven, DEPLOYED)).toEqual([])
    const records = world.github.state.deployments.length
    const planned = await promote('v1.0.0', { 'dry-run': 'true', secrets: 'MODEL_KEY=sk-planned' })
    expect(await world.flaws(planned, { status: 'planned' }, ['sk-planned'])).toEqual([])
    const summary = readable(planned.summary)
    expect(summary).toContain(`Promoting refs/tags/v1.0.0 at ${await world.repository.head()}`)
    expect(summary).toContain(
      `the revision ${proven.outputs['revision-id']} of 'staging' serves it, and passed its smoke test at`,
    )
    expect(summary).toContain('MODEL_KEY')
    expect(world.github.state.deployments).toHaveLength(records)
    expect(await find('production')).toBeUndefined()
  })

  it('is promoted once it was proven, tested there, and recorded', async () => {
    const result = await promote('v1.0.0')
    expect(await world.flaws(result, DEPLOYED)).toEqual([])
    const commit = await world.repository.head()
    expect(result.outputs).toMatchObject({ created: 'true', 'commit-sha': commit, 'smoke-test': 'passed' })
    expect(await world.ask(result)).toBe('echo 1: who?')
    const [revision] = await revisionsOf('production')
    expect(revision?.source_revision_config).toMatchObject({ repo_ref: 'refs/tags/v1.0.0', repo_commit_sha: commit })
    expect((await find('production'))?.source_config.build_on_push).toBe(false)
    expect(stateOf('production')).toMatchObject({ sha: commit })
    expect(stateOf('production')?.statuses.at(-1)?.state).toBe('success')
  })

  it('makes no second revision of what production has, with skip-unchanged', async () => {
    const result = await promote('v1.0.0', { 'skip-unchanged': 'true' }, 'push')
    expect(await world.flaws(result, { status: 'unchanged' })).toEqual([])
    expect(await revisionsOf('production')).toHaveLength(1)
  })

  it('of another commit than the one that serves on staging is refused with both commits', async () => {
    const live = await world.repository.head()
    const wanted = await world.version('2')
    await world.tag('v2.0.0')
    const result = await promote('v2.0.0', {}, 'push')
    expect(await world.flaws(result, failed('E_CONFLICT', `live: ${live}`, `wanted: ${wanted}`, 'Nothing was changed'))).toEqual(
      [],
    )
    expect(await revisionsOf('production')).toHaveLength(1)
    expect(stateOf('production')?.statuses.at(-1)?.state).toBe('failure')
  })

  it('that moves while it is built never comes into service', async () => {
    expect(await world.flaws(await stage(), DEPLOYED)).toEqual([])
    const before = await promote('v2.0.0')
    expect(await world.flaws(before, DEPLOYED)).toEqual([])
    await world.version('3')
    await world.tag('v3.0.0')
    const commit = await world.repository.head()
    expect(await world.flaws(await stage(), DEPLOYED)).toEqual([])
    // GitHub still names the proven commit; what the control plane fetches is another one already.
    const moved = await world.version('4')
    await world.repository.retag('v3.0.0')
    const result = await promote('v3.0.0', { 'rollback-on-failure': 'true' })
    const says = [commit, moved, 'has moved', 'Rolled back', 'Find out who moved the tag']
    expect(await world.flaws(result, { status: 'rolled-back', code: 'E_CONFLICT', says })).toEqual([])
    expect(result.outputs['commit-sha']).toBe(before.outputs['commit-sha'])
    expect(await world.ask(before)).toBe('echo 2: who?')
    const [newest, wrong] = await revisionsOf('production')
    expect(wrong).toMatchObject({ status: 'INTERRUPTED', source_revision_config: { repo_commit_sha: moved } })
    expect(newest?.source_revision_config).toMatchObject({
      repo_ref: 'refs/tags/v2.0.0',
      repo_commit_sha: before.outputs['commit-sha'],
    })
  })

  it('that works on staging and fails in production is rolled back there', async () => {
    await world.repository.checkout('v3.0.0')
    await world.tag('v4.0.0')
    const event = await world.tagEvent('v4.0.0')
    expect(
      await world.flaws(await world.step({ 'deployment-name': 'staging', environment: 'staging', ...TEST }, { event }), DEPLOYED),
    ).toEqual([])
    const result = await promote('v4.0.0', { 'rollback-on-failure': 'true', 'smoke-test-expect': '^echo 2: ping$' })
    expect(
      await world.flaws(result, { status: 'rolled-back', code: 'E_SMOKE_TEST', says: ['echo 4: ping', 'Rolled back'] }),
    ).toEqual([])
    expect(await world.ask(result)).toBe('echo 2: who?')
  })

  it('is refused without the permission to read the records, and without a token', async () => {
    world.github.permit({ deployments: 'none' })
    const refused = await promote('v4.0.0')
    expect(await world.flaws(refused, failed('E_AUTH', 'deployments: read'))).toEqual([])
    world.github.permit({ deployments: 'write' })
    expect(
      await world.flaws(await promote('v4.0.0', { 'github-token': '' }), failed('E_INPUT', 'github-token is empty')),
    ).toEqual([])
  })
})
