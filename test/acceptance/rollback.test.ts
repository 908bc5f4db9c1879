import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readable } from '../support/readable.ts'
import { type ReleaseWorld, startReleaseWorld } from '../support/release-world.ts'
import type { RunResult } from '../support/runner.ts'
import { DEPLOYED, type Ending } from '../support/scene.ts'

type Deployment = {
  latest_revision_id: string
  active_revision_id: string
  source_config: { build_on_push: boolean }
  source_revision_config: { repo_ref: string; repo_commit_sha: string }
}

const PING = JSON.stringify({ messages: [{ role: 'user', content: 'ping' }] })
const SECRET = 'sk-secret-of-the-release'
let world: ReleaseWorld
let good: { commit: string; revision: string; result: RunResult }

/** A release of what is on the branch now, that is to answer as an echo does. */
async function release(inputs: Readonly<Record<string, string>> = {}, options: Parameters<ReleaseWorld['step']>[1] = {}) {
  return await world.step(
    {
      'deployment-name': 'production',
      'rollback-on-failure': 'true',
      'smoke-test-input': PING,
      'smoke-test-expect': '^echo [0-9]+: ping$',
      'smoke-test-timeout': '20s',
      ...inputs,
    },
    options,
  )
}

const rolledBack = (code: string, ...says: (string | RegExp)[]): Ending => ({ status: 'rolled-back', code, says })
const deployment = () => world.read<Deployment>(`/v2/deployments/${good.result.outputs['deployment-id']}`)

beforeAll(async () => {
  world = await startReleaseWorld()
}, 60_000)
afterAll(async () => {
  await world?.dispose()
})

describe('a release on the platform', { timeout: 300_000 }, () => {
  it('that works is not rolled back', async () => {
    const result = await release({ secrets: `RELEASE_KEY=${SECRET}` })
    expect(await world.flaws(result, DEPLOYED, [SECRET])).toEqual([])
    good = { commit: await world.repository.head(), revision: result.outputs['revision-id'] ?? '', result }
  })

  it('that serves and fails its smoke test is rolled back, and tells both stories', async () => {
    const bad = await world.version('broken')
    const result = await release()
    expect(
      await world.flaws(result, rolledBack('E_SMOKE_TEST', 'echo broken: ping', 'Rolled back', good.revision), [SECRET]),
    ).toEqual([])
    expect(result.outputs).toMatchObject({
      'commit-sha': good.commit,
      'revision-status': 'DEPLOYED',
      'previous-revision-id': good.revision,
      'smoke-test': 'passed',
    })
    expect(await deployment()).toMatchObject({
      active_revision_id: result.outputs['revision-id'],
      source_revision_config: { repo_commit_sha: good.commit },
    })
    expect(await world.ask(result)).toBe('echo 1: who?')
    const summary = readable(result.summary)
    expect(summary).toContain('Rolled back: production')
    expect(summary).toContain('Smoke test: failed')
    expect(summary).toContain('Smoke test after the rollback: passed')
    expect(summary).toContain(good.revision)
    expect(bad).not.toBe(good.commit)
    good.revision = result.outputs['revision-id'] ?? ''
  })

  it('of the same ref that cannot be deployed leaves what serves, which proves itself', async () => {
    await world.repository.commit({ 'agent.mjs': "import './prompts.mjs'\n" })
    const result = await release()
    expect(await world.flaws(result, rolledBack('E_DEPLOY_FAILED', 'prompts.mjs', 'never stopped serving'), [SECRET])).toEqual([])
    expect(result.outputs).toMatchObject({ 'revision-id': good.revision, 'commit-sha': good.commit, 'smoke-test': 'passed' })
    expect(await deployment()).toMatchObject({ active_revision_id: good.revision })
    expect(await world.ask(result)).toBe('echo 1: who?')
  })

  it('of a tag that cannot be built brings the branch back, and the environment', async () => {
    await world.repository.commit({ 'langgraph.json': '{' })
    await world.tag('v9.0.0')
    const result = await release({ tag: 'v9.0.0', secrets: 'RELEASE_KEY=another\nOTHER_KEY=more' })
    expect(
      await world.flaws(result, rolledBack('E_BUILD_FAILED', 'Rolled back', /Whether RELEASE_KEY, OTHER_KEY/), [
        SECRET,
        'another',
      ]),
    ).toEqual([])
    expect(await deployment()).toMatchObject({
      active_revision_id: result.outputs['revision-id'],
      latest_revision_id: result.outputs['revision-id'],
      source_revision_config: { repo_ref: 'main', repo_commit_sha: good.commit },
    })
    expect(await deployment()).toMatchObject({ secrets: [{ name: 'RELEASE_KEY', value: '' }] })
    expect(await world.ask(result)).toBe('echo 1: who?')
  })

  it('whose rollback fails as well is red with both failures, and says what serves', async () => {
    await world.repository.commit({
      'langgraph.json': JSON.stringify({ node_version: '24', dependencies: ['.'], graphs: { agent: './agent.mjs:graph' } }),
    })
    await world.version('7')
    const result = await release({ 'smoke-test-expect': '^never$' })
    expect(
      await world.flaws(
        result,
        { status: 'failed', code: 'E_SMOKE_TEST', says: ['echo 7: ping', /rollback failed as well.*E_SMOKE_TEST/s, 'serves.'] },
        [SECRET],
      ),
    ).toEqual([])
    expect(await world.ask(result)).toBe('echo 1: who?')
  })

  it('that is cancelled during its rollback says that the rollback goes on, and it does', async () => {
    const result = await release(
      { 'smoke-test-expect': '^never$', 'on-cancel': 'interrupt' },
      { cancelWhen: ({ stdout }) => stdout.includes('Rollback: Waiting for the revision') },
    )
    expect(
      await world.flaws(
        result,
        { status: 'cancelled', code: 'E_CANCELLED', says: ['echo 7: ping', 'goes on by itself, whatever on-cancel says'] },
        [SECRET],
      ),
    ).toEqual([])
    await expect
      .poll(async () => (await deployment()).source_revision_config.repo_commit_sha, { timeout: 60_000 })
      .toBe(good.commit)
    const settled = async () => {
      const { active_revision_id: active, latest_revision_id: latest } = await deployment()
      return active === latest
    }
    await expect.poll(settled, { timeout: 60_000 }).toBe(true)
    expect(await world.ask(result)).toBe('echo 1: who?')
  })
})

describe('steps at the same time on one deployment', { timeout: 300_000 }, () => {
  it('end truthfully: what a green one deployed did serve, what gave way is superseded and names what took its place', async () => {
    await world.version('8')
    const inputs = { 'rollback-on-failure': 'false' }
    const ended = await Promise.all([release(inputs), release(inputs), release(inputs)])
    const { active_revision_id: active } = await deployment()
    const green = ended.filter(({ outputs }) => outputs['status'] === 'deployed')
    expect(green.map(({ outputs }) => outputs['revision-id'])).toContain(active)
    const made = ended.map(({ outputs }) => outputs['revision-id'] ?? '')
    expect(new Set(made).size).toBe(3)
    for (const result of ended) {
      const superseded: Ending = { status: 'superseded', code: 'E_SUPERSEDED', says: [new RegExp(made.join('|'))] }
      const isGreen = result.outputs['status'] === 'deployed'
      expect(await world.flaws(result, isGreen ? DEPLOYED : superseded, [SECRET])).toEqual([])
      const { status } = await world.read<{ status: string }>(
        `/v2/deployments/${result.outputs['deployment-id']}/revisions/${result.outputs['revision-id']}`,
      )
      // A skipped revision has never served; a green step's has.
      expect(status).toBe(isGreen ? 'DEPLOYED' : result.outputs['revision-status'])
    }
  })
})
