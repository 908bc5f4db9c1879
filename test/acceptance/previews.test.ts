import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPreviewWorld, type PreviewWorld } from '../support/preview-world.ts'
import { readable } from '../support/readable.ts'
import { DEPLOYED, failed } from '../support/scene.ts'

/** Whole lives of previews: the bundle, the platform, GitHub's double, and the events as GitHub sends them. */

const REMOVED = { status: 'removed' }
const SKIPPED = { status: 'skipped' }
let world: PreviewWorld

beforeAll(async () => {
  world = await startPreviewWorld()
})
afterAll(() => world?.dispose())

const live = (name: string, commit: string) => [{ name, status: 'READY', revision: 'DEPLOYED', commit }]
const headOf = (number: number) => world.github.state.pullRequests.get(number)?.headSha ?? ''

describe('the life of a preview', { timeout: 180_000 }, () => {
  it('is opened, pushed to, closed, opened again and closed again', async () => {
    await world.open(7)
    const opened = await world.step(world.event(7, 'opened'), { environment: 'preview-7' })
    expect(await world.flaws(opened, DEPLOYED)).toEqual([])
    expect(opened.outputs).toMatchObject({ created: 'true', 'deployment-name': 'fast-agent-pr-7', 'commit-sha': headOf(7) })
    expect(await world.ask(opened)).toBe('version 1')

    const commit = await world.push(7)
    const pushed = await world.step(world.event(7, 'synchronize'), { environment: 'preview-7' })
    expect(await world.flaws(pushed, DEPLOYED)).toEqual([])
    expect(pushed.outputs).toMatchObject({
      created: 'false',
      'deployment-id': opened.outputs['deployment-id'],
      'commit-sha': commit,
    })
    expect([await world.ask(pushed), await world.previews()]).toEqual(['version 2', live('fast-agent-pr-7', commit)])

    world.close(7)
    const closed = await world.step(world.event(7, 'closed'), { environment: 'preview-7' })
    expect(await world.flaws(closed, REMOVED)).toEqual([])
    expect(closed.outputs).toMatchObject({
      'deployment-name': 'fast-agent-pr-7',
      'deployment-id': opened.outputs['deployment-id'],
    })
    expect(readable(closed.summary)).toContain('Removed: fast-agent-pr-7')
    expect((await world.request(`/v2/deployments/${closed.outputs['deployment-id']}`)).status).toBe(404)
    expect([await world.previews(), await world.projects()]).toEqual([[], []])
    expect(world.github.state.deployments.map(({ transient, statuses }) => [transient, statuses.at(-1)?.state])).toEqual([
      [true, 'inactive'],
      [true, 'inactive'],
    ])
    expect(world.github.state.comments.filter(({ pullRequest }) => pullRequest === 7)).toHaveLength(1)

    const twice = await world.step(world.event(7, 'closed'))
    expect(await world.flaws(twice, REMOVED)).toEqual([])
    expect(twice.log).toContain("There is no 'fast-agent-pr-7' to remove.")

    world.reopen(7)
    const reopened = await world.step(world.event(7, 'reopened'))
    expect(await world.flaws(reopened, DEPLOYED)).toEqual([])
    expect([reopened.outputs['created'], await world.previews()]).toEqual(['true', live('fast-agent-pr-7', commit)])
    world.close(7)
    expect(await world.flaws(await world.step(world.event(7, 'closed'), { mode: 'teardown' }), REMOVED)).toEqual([])
    expect([await world.previews(), await world.projects()]).toEqual([[], []])
  })

  it('keeps long names within the bounds of the service', async () => {
    await world.open(70)
    const name = `a${'-long-name'.repeat(6)}`
    const opened = await world.step(world.event(70, 'opened'), { 'deployment-name': name })
    expect(await world.flaws(opened, DEPLOYED)).toEqual([])
    expect(opened.outputs['deployment-name']).toMatch(/^a(-long-name){4}-l.*-[0-9a-f]{8}-pr-70$/)
    expect(opened.outputs['deployment-name']?.length).toBeLessThanOrEqual(63)
    world.close(70)
    expect(await world.flaws(await world.step(world.event(70, 'closed'), { 'deployment-name': name }), REMOVED)).toEqual([])
    expect(await world.previews()).toEqual([])
  })
})

describe('a preview whose pull request changes while it is deployed', { timeout: 180_000 }, () => {
  /** Until the platform has the deployment: its step is in the middle of its work. */
  const begun = async (name: string): Promise<void> => {
    await expect.poll(async () => (await world.previews(name)).length, { timeout: 60_000 }).toBe(1)
  }

  it('by a push: the newest commit serves, and both steps tell the truth', async () => {
    await world.open(8, { installMs: 4000 })
    const first = world.step(world.event(8, 'opened'))
    await begun('pr-8')
    const commit = await world.push(8)
    const second = await world.step(world.event(8, 'synchronize'))
    expect(await world.flaws(second, DEPLOYED)).toEqual([])
    const { outputs } = await first
    expect(['deployed', 'superseded']).toContain(outputs['status'])
    expect(await world.previews()).toEqual(live('fast-agent-pr-8', commit))
    world.close(8)
    expect(await world.flaws(await world.step(world.event(8, 'closed')), REMOVED)).toEqual([])
  })

  it('by being closed: both steps end green, and nothing is left', async () => {
    await world.open(9, { installMs: 4000 })
    const opening = world.step(world.event(9, 'opened'))
    await begun('pr-9')
    world.close(9)
    const closing = await world.step(world.event(9, 'closed'))
    const opened = await opening
    expect([await world.flaws(closing, REMOVED), await world.flaws(opened, REMOVED)]).toEqual([[], []])
    expect(readable(opened.summary)).toContain('was closed while its preview was deployed')
    expect([await world.previews(), await world.projects()]).toEqual([[], []])
  })

  it('by being closed, and no step for that ever ran: its own step removes it', async () => {
    await world.open(10, { installMs: 2000 })
    const opening = world.step(world.event(10, 'opened'))
    await begun('pr-10')
    world.close(10)
    expect(await world.flaws(await opening, REMOVED)).toEqual([])
    expect([await world.previews(), await world.projects()]).toEqual([[], []])
  })

  it('by being closed, and the teardown looked before the deployment was created', async () => {
    await world.open(11)
    world.network.on({ method: 'GET', path: /name_contains=fast-agent-pr-11/ }, { kind: 'delay', ms: 5000 })
    const opening = world.step(world.event(11, 'opened'))
    await expect.poll(() => world.network.struck(), { timeout: 30_000 }).toBe(1)
    world.close(11)
    const closing = await world.step(world.event(11, 'closed'), { 'control-plane-url': world.platform.url })
    expect(await world.flaws(closing, REMOVED)).toEqual([])
    expect(closing.log).toContain("There is no deployment named 'fast-agent-pr-11'")
    expect(await world.flaws(await opening, REMOVED)).toEqual([])
    expect([await world.previews(), await world.projects()]).toEqual([[], []])
  })

  it('by being closed and opened again at once: it comes back', async () => {
    await world.open(12)
    expect(await world.flaws(await world.step(world.event(12, 'opened')), DEPLOYED)).toEqual([])
    world.close(12)
    const closing = world.step(world.event(12, 'closed'))
    const deleting = async () => (await world.previews('pr-12')).every(({ status }) => status === 'AWAITING_DELETE')
    await expect.poll(deleting, { timeout: 30_000, interval: 20 }).toBe(true)
    world.reopen(12)
    const reopened = await world.step(world.event(12, 'reopened'))
    expect(await world.flaws(await closing, REMOVED)).toEqual([])
    expect(await world.flaws(reopened, DEPLOYED)).toEqual([])
    expect(await world.previews()).toEqual(live('fast-agent-pr-12', headOf(12)))
    world.close(12)
    expect(await world.flaws(await world.step(world.event(12, 'closed')), REMOVED)).toEqual([])
  })

  it('by a cancellation: the revision is interrupted, and the teardown removes the rest', async () => {
    await world.open(13, { installMs: 8000 })
    const cancelled = await world.step(
      world.event(13, 'opened'),
      { 'on-cancel': 'interrupt' },
      { cancelWhen: ({ stdout }) => stdout.includes('BUILDING'), post: true },
    )
    expect(cancelled.outputs['status']).toBe('cancelled')
    world.close(13)
    expect(await world.flaws(await world.step(world.event(13, 'closed')), REMOVED)).toEqual([])
    expect([await world.previews(), await world.projects()]).toEqual([[], []])
  })
})

describe('a step that comes too late', { timeout: 180_000 }, () => {
  it('makes no preview of a pull request that has been closed', async () => {
    await world.open(14)
    const opened = world.event(14, 'opened')
    world.close(14)
    const before = world.network.requests.length
    const late = await world.step(opened)
    expect(await world.flaws(late, SKIPPED)).toEqual([])
    expect(late.annotations.map(({ level, message }) => [level, message])).toEqual([
      ['notice', 'The pull request 14 is closed: nothing is deployed.'],
    ])
    expect(world.network.requests.slice(before).filter(({ method }) => method !== 'GET')).toEqual([])
    expect(await world.previews()).toEqual([])
  })

  it('does not remove the preview of a pull request that is open again', async () => {
    await world.open(15)
    world.close(15)
    const closed = world.event(15, 'closed')
    world.reopen(15)
    expect(await world.flaws(await world.step(world.event(15, 'reopened')), DEPLOYED)).toEqual([])
    expect(await world.flaws(await world.step(closed), SKIPPED)).toEqual([])
    expect(await world.previews()).toEqual(live('fast-agent-pr-15', headOf(15)))
    const label = await world.step(world.event(15, 'unlabeled'), { mode: 'teardown' })
    expect(await world.flaws(label, REMOVED)).toEqual([])
    expect(await world.previews()).toEqual([])
  })
})

describe('a pull request from a fork', { timeout: 180_000 }, () => {
  it('without secrets is skipped, green, with one notice', async () => {
    await world.open(16, { from: 'mallory/agents' })
    const before = world.network.requests.length
    for (const action of ['opened', 'closed'] as const) {
      if (action === 'closed') world.close(16)
      const skipped = await world.step(world.event(16, action), { 'api-key': '', secrets: 'MODEL_KEY=' })
      expect(await world.flaws(skipped, SKIPPED)).toEqual([])
      expect(skipped.annotations).toMatchObject([{ level: 'notice', message: expect.stringContaining('comes from a fork') }])
      expect(readable(skipped.summary)).toContain('Skipped')
    }
    expect(world.network.requests.length).toBe(before)
    expect(
      await world.flaws(await world.step(world.event(7, 'opened'), { 'api-key': '' }), failed('E_INPUT', 'api-key')),
    ).toEqual([])
  })

  it('with secrets is deployed only where the workflow names the fork, and is removed with it', async () => {
    await world.open(17, { from: 'mallory/agents' })
    const event = () => world.event(17, 'opened', 'pull_request_target')
    expect(await world.flaws(await world.step(event()), failed('E_INPUT', 'repo-url', 'fork'))).toEqual([])
    const repoUrl = (await world.step(event(), { 'dry-run': 'true', 'repo-url': 'https://example.com/x/y' })).outputs['status']
    expect(repoUrl).toBe('planned')
    const fork = world.forkUrl('mallory/agents')
    expect(await world.flaws(await world.step(event(), { 'repo-url': fork }), DEPLOYED)).toEqual([])
    expect(await world.previews()).toEqual(live('fast-agent-pr-17', headOf(17)))
    world.close(17)
    const closed = world.event(17, 'closed', 'pull_request_target')
    expect(await world.flaws(await world.step(closed), REMOVED)).toEqual([])
    expect(await world.previews()).toEqual([])
  })
})

describe('a dry-run', { timeout: 180_000 }, () => {
  it('tells what would be made and what would be removed, and does neither', async () => {
    await world.open(18)
    const planned = { status: 'planned' }
    const opened = await world.step(world.event(18, 'opened'), { 'dry-run': 'true' })
    expect(await world.flaws(opened, planned)).toEqual([])
    expect(await world.previews()).toEqual([])
    expect(await world.flaws(await world.step(world.event(18, 'opened')), DEPLOYED)).toEqual([])
    world.close(18)
    const closed = await world.step(world.event(18, 'closed'), { 'dry-run': 'true' })
    expect(await world.flaws(closed, planned)).toEqual([])
    expect(closed.groups.map(({ title }) => title)).toContain('Plan: remove the deployment')
    expect(await world.previews()).toEqual(live('fast-agent-pr-18', headOf(18)))
    expect(await world.flaws(await world.step(world.event(18, 'closed')), REMOVED)).toEqual([])
  })
})

describe('a token that may not read pull requests', { timeout: 180_000 }, () => {
  it('leaves the word to the event, with one warning that names the permission', async () => {
    await world.open(19)
    world.github.permit({ 'pull-requests': 'none' })
    const step = (action: 'opened' | 'closed') => world.step(world.event(19, action), { comment: 'false' })
    const opened = await step('opened')
    expect(await world.flaws(opened, DEPLOYED)).toEqual([])
    const warnings = opened.annotations.filter(({ level }) => level === 'warning').map(({ message }) => message)
    expect(warnings).toEqual([expect.stringMatching(/pull-requests: read.*: the event says open\./s)])
    world.close(19)
    expect(await world.flaws(await step('closed'), REMOVED)).toEqual([])
    expect(await world.previews()).toEqual([])
    world.github.permit({ 'pull-requests': 'write' })
  })
})
