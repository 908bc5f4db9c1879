import { describe, expect, it, vi } from 'vitest'
import { deadlineOf } from '../../../src/client/deadline.ts'
import { payloadOf, servesDescription } from '../../../src/action/github/proof.ts'
import { GithubFailure } from '../../../src/action/github/failure.ts'
import type { DeploymentRecord } from '../../../src/action/github/github.ts'
import { sweepSection } from '../../../src/action/preview/report.ts'
import type { RawInputs } from '../../../src/action/inputs.ts'
import { httpFailure } from '../../support/request-failure.ts'
import { fakeDeps } from '../support/deps.ts'
import { githubContext } from '../support/github.ts'
import { createHub } from './support/hub.ts'
import { createService } from './support/service.ts'
import { runStep } from './support/step.ts'

const OWN = 'https://github.com/acme/agents'
const NOW = Date.UTC(2026, 0, 1)
const DAY = 86_400_000
const CONTROL_PLANE = 'https://control-plane.example.com'

function scene() {
  const [service, hub] = [createService(), createHub()]
  const sweep = async (raw: Partial<RawInputs> = {}, deps = fakeDeps()) =>
    await runStep({
      raw: { mode: 'sweep', 'control-plane-url': CONTROL_PLANE, ...raw },
      context: githubContext({ eventName: 'schedule' }),
      controlPlane: service.controlPlane,
      github: hub,
      deps,
    })
  /** A preview as this repository makes it, unless `fields` says otherwise; its last revision is so many days old. */
  const preview = (number: number, { days = 0, ...fields }: { days?: number; name?: string; repoUrl?: string | null } = {}) => {
    const createdAt = new Date(NOW - days * DAY).toISOString()
    const revision = {
      id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
      createdAt,
      commit: null,
      readsLeft: 0,
      status: 'DEPLOYED',
    }
    return service.add({ name: `agent-pr-${number}`, repoUrl: OWN, revisions: [revision], ...fields })
  }
  const record = (deployment: string, changes: { plane?: string; id?: string; task?: unknown } = {}): DeploymentRecord => ({
    id: hub.records.length + 1,
    environment: 'preview',
    sha: 'a'.repeat(40),
    ref: 'feature',
    task: 'deploy:agent-server',
    createdAt: 0,
    payload: payloadOf({
      deployment,
      'control-plane': changes.plane ?? CONTROL_PLANE,
      mode: 'preview',
      ...(changes.id === undefined ? {} : { 'deployment-id': changes.id }),
    }),
  })
  const names = () => service.held().map(({ name }) => name)
  return { service, hub, sweep, preview, record, names }
}

const verdicts = (ended: { journal: { sweep: readonly { name: string; verdict: string }[] | undefined } }) =>
  Object.fromEntries((ended.journal.sweep ?? []).map(({ name, verdict }) => [name, verdict]))

describe('a sweep', () => {
  it('removes the previews of closed pull requests and the old ones, and keeps the others', async () => {
    const { hub, sweep, preview, names, service } = scene()
    for (const number of [1, 2, 3, 4]) hub.add(number, { state: number === 1 ? 'closed' : 'open' })
    preview(1)
    preview(2, { days: 8 })
    preview(3, { days: 6.9 })
    preview(4)
    const ended = await sweep()
    expect(ended.status).toBe('removed')
    expect(verdicts(ended)).toEqual({
      'agent-pr-1': 'removed',
      'agent-pr-2': 'removed',
      'agent-pr-3': 'kept',
      'agent-pr-4': 'kept',
    })
    expect([names(), [...service.leftProjects]]).toEqual([['agent-pr-3', 'agent-pr-4'], []])
    expect(ended.groups.find(({ title }) => title === 'Previews')?.lines).toEqual([
      'agent-pr-1: to remove: the pull request is closed',
      'agent-pr-2: to remove: the last revision is 8 days old, and preview-ttl is 7 days',
      'agent-pr-3: kept: the pull request is open, and the last revision is 6 days old',
      'agent-pr-4: kept: the pull request is open, and the last revision is 0 s old',
    ])
    expect(hub.listDeployments).not.toHaveBeenCalledWith(expect.objectContaining({ max: 1000 }), expect.anything())
    expect((await sweep()).status).toBe('unchanged')
  })

  it('counts the age from the last revision, not from the first', async () => {
    const { hub, sweep, preview } = scene()
    hub.add(1)
    const held = preview(1, { days: 300 })
    held.revisions.push({ ...held.revisions[0]!, id: 'x', createdAt: new Date(NOW - DAY).toISOString() })
    expect(verdicts(await sweep())).toEqual({ 'agent-pr-1': 'kept' })
    expect(verdicts(await sweep({ 'preview-ttl': '12h' }))).toEqual({ 'agent-pr-1': 'removed' })
  })

  it('counts what it has found', async () => {
    for (const [count, words] of [
      [0, '0 deployments'],
      [1, '1 deployment'],
      [2, '2 deployments'],
    ] as const) {
      const { hub, sweep, preview } = scene()
      for (let number = 1; number <= count; number++) {
        hub.add(number)
        preview(number)
      }
      expect((await sweep()).lines).toContain(`Found ${words} named like the previews of 'agent'.`)
    }
  })

  it('looks only at what is named exactly like a preview', async () => {
    const { hub, sweep, preview, names } = scene()
    hub.add(1, { state: 'closed' })
    const strangers = ['agent', 'agent-prod', 'my-agent-pr-1', 'agent-pr-1-old', 'agent-pr-01', 'agents-pr-1', 'agent-pr-x']
    for (const name of strangers) preview(1, { name })
    const ended = await sweep()
    expect([ended.status, ended.journal.sweep, names()]).toEqual(['unchanged', [], strangers])
    expect(hub.getPullRequest).not.toHaveBeenCalled()
  })

  it('leaves alone what it cannot prove to be its own, and says why', async () => {
    const { hub, sweep, preview, names } = scene()
    for (const number of [1, 2, 3]) hub.add(number, { state: 'closed' })
    preview(1, { repoUrl: 'https://github.com/acme/other' })
    preview(2, { repoUrl: null })
    preview(3)
    preview(99)
    const ended = await sweep()
    expect(ended.status).toBe('removed')
    expect(verdicts(ended)).toEqual({
      'agent-pr-1': 'unproven',
      'agent-pr-2': 'unproven',
      'agent-pr-3': 'removed',
      'agent-pr-99': 'unproven',
    })
    expect(names()).toEqual(['agent-pr-1', 'agent-pr-2', 'agent-pr-99'])
    expect(ended.journal.sweep?.map(({ why }) => why)).toEqual([
      'it was built from https://github.com/acme/other, and no deployment record of this repository names it or its revision by the id',
      'it was built from an image, and no deployment record of this repository names it or its revision by the id',
      'the pull request is closed',
      'this repository has no pull request 99',
    ])
  })

  it('takes the word of a deployment record of this repository', async () => {
    const { hub, sweep, preview, record } = scene()
    const other = 'https://github.com/mallory/agents'
    for (const number of [1, 2, 3, 4, 5, 6, 7, 8]) hub.add(number, { state: 'closed' })
    const image = preview(1, { repoUrl: null })
    preview(2, { repoUrl: null })
    preview(3, { repoUrl: null })
    const byId = preview(4, { repoUrl: other })
    const byRevision = preview(5, { repoUrl: other })
    preview(6, { repoUrl: other })
    preview(7, { repoUrl: null })
    hub.records.push(record('agent-pr-1'))
    hub.records.push(record('agent-pr-2', { plane: 'https://another.example.com' }))
    hub.records.push({ ...record('agent-pr-3'), payload: { deployment: 'agent-pr-3' } })
    hub.records.push(record('agent-pr-4', { id: byId.id }))
    hub.records.push(record('agent-pr-5'))
    hub.records.push(record('agent-pr-6'))
    hub.records.push(record('agent-pr-7', { id: 'that-of-another-one' }))
    // Another repository's image, of the same name: this repository has had one, too.
    preview(8, { repoUrl: null })
    hub.records.push(record('agent-pr-8'))
    hub.statuses.set(1, [{ state: 'success', description: servesDescription(image.revisions[0]?.id ?? '', false), createdAt: 0 }])
    hub.statuses.set(8, [{ state: 'success', description: servesDescription('another-revision', false), createdAt: 0 }])
    const [revision] = byRevision.revisions
    hub.statuses.set(5, [{ state: 'success', description: servesDescription(revision?.id ?? '', true), createdAt: 0 }])
    hub.statuses.set(6, [{ state: 'success', description: servesDescription('another-revision', true), createdAt: 0 }])
    expect(verdicts(await sweep())).toEqual({
      'agent-pr-1': 'removed',
      'agent-pr-2': 'unproven',
      'agent-pr-3': 'unproven',
      'agent-pr-4': 'removed',
      'agent-pr-5': 'removed',
      'agent-pr-6': 'unproven',
      'agent-pr-7': 'unproven',
      'agent-pr-8': 'unproven',
    })
    expect(vi.mocked(hub.listDeployments).mock.calls.filter(([{ max }]) => max === 1000)).toHaveLength(1)
  })

  it('removes nothing when GitHub cannot be asked about one of them', async () => {
    const { hub, sweep, preview, service, record } = scene()
    hub.add(1, { state: 'closed' })
    preview(1)
    preview(2)
    const request = httpFailure(403, { detail: 'Resource not accessible by integration' })
    const refuse = vi.fn(async () => {
      throw new GithubFailure({ operation: 'reading a pull request', request, permission: 'pull-requests: read' })
    })
    const { getPullRequest } = hub
    hub.getPullRequest = async (number, signal) => (number === 2 ? await refuse() : await getPullRequest(number, signal))
    const ended = await sweep()
    expect([ended.code, ended.failure?.next, service.changes]).toEqual([
      'E_AUTH',
      expect.stringContaining('pull-requests: read'),
      [],
    ])
    hub.getPullRequest = getPullRequest
    hub.add(2)
    preview(3, { repoUrl: null })
    hub.records.push(record('agent-pr-3'))
    hub.listDeployments = refuse
    expect([(await sweep()).code, service.changes]).toEqual(['E_AUTH', []])
  })

  it('goes on after one that cannot be removed, and is red at the end', async () => {
    const { hub, sweep, preview, service, names } = scene()
    for (const number of [1, 2, 3]) hub.add(number, { state: 'closed' })
    const stuck = [preview(1), preview(2), preview(3)][1]
    const { deleteDeployment } = service.controlPlane
    service.controlPlane.deleteDeployment = async (options) => {
      if (options.id === stuck?.id) throw httpFailure(500, { detail: 'out of luck' })
      return await deleteDeployment(options)
    }
    const ended = await sweep()
    expect(ended.code).toBe('E_UNAVAILABLE')
    expect(ended.failure?.message).toMatch(
      /^1 of 3 previews should be gone and could not be removed:\n- agent-pr-2: .*out of luck/,
    )
    expect(ended.failure?.tried).toBe('The others were dealt with: 2 removed, 1 not removed.')
    expect(verdicts(ended)).toEqual({ 'agent-pr-1': 'removed', 'agent-pr-2': 'failed', 'agent-pr-3': 'removed' })
    expect(names()).toEqual(['agent-pr-2'])
  })

  it('keeps one whose pull request is opened again while the others are removed', async () => {
    const { hub, sweep, preview, service, names } = scene()
    for (const number of [1, 2]) hub.add(number, { state: 'closed' })
    preview(1)
    preview(2)
    const { deleteDeployment } = service.controlPlane
    service.controlPlane.deleteDeployment = async (options) => {
      hub.add(2)
      return await deleteDeployment(options)
    }
    expect(verdicts(await sweep())).toEqual({ 'agent-pr-1': 'removed', 'agent-pr-2': 'kept' })
    expect(names()).toEqual(['agent-pr-2'])
  })

  it('waits for one that is being deleted already, and gives up on one that never goes', async () => {
    const { hub, sweep, preview, service } = scene()
    for (const number of [1, 2]) hub.add(number, { state: 'closed' })
    preview(1).goingFor = 3
    const ended = await sweep()
    expect([ended.status, service.changes]).toEqual(['removed', []])
    preview(2).goingFor = Infinity
    const stuck = await sweep({ timeout: '1m' })
    expect([stuck.code, verdicts(stuck)]).toEqual(['E_TIMEOUT', { 'agent-pr-2': 'failed' }])
  })

  it('is only planned by a dry-run', async () => {
    const { hub, sweep, preview, service } = scene()
    for (const number of [1, 2]) hub.add(number, { state: number === 1 ? 'closed' : 'open' })
    preview(1)
    preview(2)
    const ended = await sweep({ 'dry-run': 'true' })
    expect([ended.status, verdicts(ended), service.changes]).toEqual([
      'planned',
      { 'agent-pr-1': 'to remove', 'agent-pr-2': 'kept' },
      [],
    ])
  })

  it('stops when it is cancelled, and needs a token', async () => {
    const { hub, preview, service, sweep } = scene()
    hub.add(1, { state: 'closed' })
    preview(1)
    const deps = fakeDeps()
    service.controlPlane.deleteDeployment = async () => {
      deps.abort()
      throw httpFailure(0, { kind: 'cancelled' })
    }
    expect((await sweep({}, deps)).code).toBe('E_CANCELLED')
    const context = githubContext({ eventName: 'schedule' })
    const { code, failure } = await runStep({
      raw: { mode: 'sweep' },
      context,
      controlPlane: service.controlPlane,
      github: undefined,
    })
    expect([code, failure?.message]).toEqual(['E_INPUT', expect.stringContaining('no github-token')])
  })
})

describe('the section of the summary', () => {
  it('has a row for each, in which no text can mean anything', () => {
    const text = sweepSection([
      { name: 'agent-pr-1', pullRequest: 1, verdict: 'unproven', why: 'it was built from https://x/|<b>@mallory' },
    ])
    expect(text.split('\n').at(-1)).toBe(
      '| <code>agent-pr-1</code> | 1 | ⚠️ left alone | it was built from https&#58;//x/&#124;&#60;b&#62;&#64;mallory |',
    )
    expect([sweepSection(undefined), sweepSection([])]).toEqual(['', expect.stringContaining('There are none')])
  })
})

describe('what a sweep tells', () => {
  const closed = (numbers: number[]) => {
    const made = scene()
    for (const number of numbers) {
      made.hub.add(number, { state: 'closed' })
      made.preview(number)
    }
    return made
  }
  const row = (pullRequest: number, verdict: string, why = 'the pull request is closed') => ({
    name: `agent-pr-${pullRequest}`,
    pullRequest,
    verdict,
    why,
  })

  it('is what became of each, in the order of the pull requests', async () => {
    const { sweep } = closed([10, 2, 7])
    const { journal, lines } = await sweep()
    expect(journal.sweep).toEqual([row(2, 'removed'), row(7, 'removed'), row(10, 'removed')])
    expect(lines.filter((line) => line.startsWith('Removed'))).toEqual([
      "Removed 'agent-pr-2': the pull request is closed.",
      "Removed 'agent-pr-7': the pull request is closed.",
      "Removed 'agent-pr-10': the pull request is closed.",
    ])
  })

  it('is known while it goes on: what is planned, what was removed, what failed', async () => {
    const { sweep, service, hub } = closed([1, 2, 3])
    const deps = fakeDeps()
    const told: Record<string, unknown>[] = []
    const { deleteDeployment, getDeployment } = service.controlPlane
    const tell = (doing: string) => void told.push({ [doing]: Object.values(verdicts(deps)) })
    service.controlPlane.deleteDeployment = async (options) => {
      tell('delete')
      hub.add(2)
      if (told.length === 2) throw httpFailure(500)
      return await deleteDeployment(options)
    }
    service.controlPlane.getDeployment = async (id, signal) => {
      tell('look')
      return await getDeployment(id, signal)
    }
    await sweep({}, deps)
    expect(told.slice(0, 2)).toEqual([
      { delete: ['to remove', 'to remove', 'to remove'] },
      { delete: ['to remove', 'kept', 'to remove'] },
    ])
    expect(told.slice(2).every((one) => JSON.stringify(one) === '{"look":["to remove","kept","failed"]}')).toBe(true)
    expect(told.length).toBeGreaterThan(2)
    expect(Object.values(verdicts(deps))).toEqual(['removed', 'kept', 'failed'])
    expect(deps.lines).toContain("Keeping 'agent-pr-2' after all: the pull request is open, and the last revision is 0 s old.")
  })

  it('is known of those that are gone while it waits for the others', async () => {
    const { sweep, service } = closed([1, 2])
    const deps = fakeDeps()
    const [first] = service.held()
    const { getDeployment } = service.controlPlane
    const told: unknown[] = []
    service.controlPlane.getDeployment = async (id, signal) => {
      if (id !== first?.id) told.push(Object.values(verdicts(deps)))
      return await getDeployment(id, signal)
    }
    await sweep({}, deps)
    expect(told[0]).toEqual(['removed', 'to remove'])
  })

  it('about those that it leaves alone, in the log', async () => {
    const { sweep, hub, preview } = scene()
    hub.add(1)
    preview(1)
    preview(2)
    const { groups } = await sweep()
    expect(groups).toContainEqual({
      title: 'Previews',
      lines: [
        'agent-pr-1: kept: the pull request is open, and the last revision is 0 s old',
        'agent-pr-2: left alone: this repository has no pull request 2',
      ],
    })
  })

  it('about a dry-run', async () => {
    const { sweep } = closed([1])
    expect((await sweep({ 'dry-run': 'true' })).lines).toContain('dry-run: nothing was changed.')
    expect((await closed([1]).sweep()).lines).not.toContain('dry-run: nothing was changed.')
  })

  it('about those that could not be removed: a warning for each, and all of them in the failure', async () => {
    const { sweep, service } = closed([1, 2, 3])
    const [first, second] = service.held()
    const { deleteDeployment } = service.controlPlane
    service.controlPlane.deleteDeployment = async (options) => {
      if (options.id === first?.id)
        throw httpFailure(403, { method: 'DELETE', path: '/v2/deployments/1', detail: 'not enabled for this organization' })
      if (options.id === second?.id) throw httpFailure(500, { method: 'DELETE', path: '/v2/deployments/2' })
      return await deleteDeployment(options)
    }
    const { failure, warnings, journal } = await sweep()
    const whys = [
      `Removing the deployment 'agent-pr-1' (${first?.id}) failed: DELETE /v2/deployments/1 answered 403: not enabled for this organization.`,
      `Removing the deployment 'agent-pr-2' (${second?.id}) failed: DELETE /v2/deployments/2 answered 500.`,
    ]
    expect(warnings).toEqual([`'agent-pr-1' could not be removed: ${whys[0]}`, `'agent-pr-2' could not be removed: ${whys[1]}`])
    // The code and the advice are those of the first.
    expect(failure).toMatchObject({
      code: 'E_AUTH',
      message: `2 of 3 previews should be gone and could not be removed:\n- agent-pr-1: ${whys[0]}\n- agent-pr-2: ${whys[1]}`,
      tried: 'The others were dealt with: 1 removed, 2 not removed.',
      next: 'Enable deployments for the organisation, or use a key of one that has them.',
    })
    expect(journal.sweep).toEqual([row(1, 'failed', whys[0]), row(2, 'failed', whys[1]), row(3, 'removed')])
  })

  it('about GitHub, when that did not answer: nothing was removed, and nothing is known', async () => {
    const { sweep, hub } = closed([1, 2])
    const request = httpFailure(502, { path: '/repos/acme/agents/pulls/1', attempts: 3 })
    hub.getPullRequest = async () => {
      throw new GithubFailure({ operation: 'reading a pull request', request, permission: null })
    }
    const { failure, journal } = await sweep()
    expect(failure).toMatchObject({
      code: 'E_UNAVAILABLE',
      message: expect.stringMatching(/^The sweep failed: GitHub: reading a pull request failed: .*\nNothing was removed\.$/),
      tried: 'GET /repos/acme/agents/pulls/1 was sent 3 times.',
      next: 'Check github-token, and https://www.githubstatus.com; then run the step again.',
      cause: { request },
    })
    expect(journal.sweep).toEqual([])
  })

  it('about the control plane, when that did not list anything', async () => {
    const { sweep, service } = closed([1])
    service.controlPlane.listDeployments = async () => {
      throw httpFailure(401)
    }
    const { failure, journal } = await sweep()
    expect(failure).toMatchObject({ code: 'E_AUTH', message: 'Listing the previews failed: GET /v2/deployments answered 401.' })
    expect(journal.sweep).toEqual([])
  })

  it('about a token that is missing', async () => {
    const { service } = scene()
    const context = githubContext({ eventName: 'schedule' })
    const { failure } = await runStep({
      raw: { mode: 'sweep' },
      context,
      controlPlane: service.controlPlane,
      github: undefined,
    })
    expect(failure).toMatchObject({
      code: 'E_INPUT',
      message: 'mode is sweep, and there is no github-token: the state of the pull requests cannot be read.',
      tried: 'Nothing was removed.',
      next: 'Leave github-token at its default, and give the job the permission `pull-requests: read`.',
    })
  })

  it('ends with the cancellation: the others are not touched any more', async () => {
    const { sweep, service, names } = closed([1, 2])
    const deps = fakeDeps()
    const deleteDeployment = vi.fn(async () => {
      deps.abort()
      throw httpFailure(0, { kind: 'cancelled', method: 'DELETE', summary: 'was cancelled' })
    })
    service.controlPlane.deleteDeployment = deleteDeployment
    const { failure, warnings } = await sweep({}, deps)
    expect(failure).toMatchObject({
      code: 'E_CANCELLED',
      message: expect.stringMatching(/^Removing the deployment 'agent-pr-1'/),
    })
    expect([warnings, deleteDeployment.mock.calls.length, names()]).toEqual([[], 1, ['agent-pr-1', 'agent-pr-2']])
    expect(verdicts(deps)).toEqual({ 'agent-pr-1': 'to remove', 'agent-pr-2': 'to remove' })
  })
})

describe('what a sweep asks for', () => {
  it('is a list of what may be a preview, within the timeout, and nothing listens afterwards', async () => {
    const { sweep, service } = scene()
    const listDeployments = vi.spyOn(service.controlPlane, 'listDeployments')
    const deps = fakeDeps()
    await sweep({ timeout: '20m' }, deps)
    const [[options]] = listDeployments.mock.calls as [[Parameters<typeof listDeployments>[0]]]
    expect([options.nameContains, deadlineOf(options.signal)]).toEqual(['agent-pr-', deps.effects.now() + 1_200_000])
    deps.abort()
    expect(options.signal.aborted).toBe(false)
  })

  it('is each deployment once, also when two pages have it', async () => {
    const { sweep, service, hub, preview } = scene()
    hub.add(1)
    preview(1)
    const { listDeployments } = service.controlPlane
    service.controlPlane.listDeployments = async (options) => {
      const listed = await listDeployments(options)
      return [...listed, ...listed]
    }
    expect((await sweep()).journal.sweep).toHaveLength(1)
  })
})
