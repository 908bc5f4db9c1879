import { describe, expect, it, vi } from 'vitest'
import type { ControlPlane } from '../../../src/client/control-plane.ts'
import { deadlineOf } from '../../../src/client/deadline.ts'
import type { TeardownInputs } from '../../../src/action/inputs.ts'
import { removeAll, teardown } from '../../../src/action/preview/teardown.ts'
import { httpFailure } from '../../support/request-failure.ts'
import { deployment, DEPLOYMENT_ID, REPO_URL } from '../support/answers.ts'
import { fakeDeps, inputs } from '../support/deps.ts'
import { createHub } from './support/hub.ts'

const NAME = 'agent-pr-7'
const OTHER_ID = '2b4e28ba-2fa1-4d2b-883f-0016d3cca427'
const TIMEOUT_MS = 600_000
const preview = deployment({ name: NAME })
const other = deployment({ name: NAME, id: OTHER_ID, source_config: {}, url: null })
const notFound = (id: string) => httpFailure(404, { detail: `Deployment ID ${id} not found.` })

function wanted(changes: Partial<TeardownInputs> = {}): TeardownInputs {
  return {
    ...inputs({ timeoutMs: TIMEOUT_MS }),
    mode: 'teardown',
    target: { name: NAME },
    preview: {
      baseName: 'agent',
      pullRequest: 7,
      eventState: 'closed',
      headSha: undefined,
      repositories: [REPO_URL],
      closing: true,
    },
    ...changes,
  }
}

function scene(listed: Awaited<ReturnType<ControlPlane['listDeployments']>>, state: 'open' | 'closed' = 'closed') {
  const hub = createHub()
  hub.add(7, { state })
  const order: string[] = []
  const listDeployments = vi.fn<ControlPlane['listDeployments']>(async () => listed)
  const deleteDeployment = vi.fn<ControlPlane['deleteDeployment']>(async ({ id }) => {
    order.push(`delete ${id}`)
    return { alreadyGone: false }
  })
  const getDeployment = vi.fn<ControlPlane['getDeployment']>(async (id) => {
    order.push(`look ${id}`)
    throw notFound(id)
  })
  const deps = { ...fakeDeps({ listDeployments, deleteDeployment, getDeployment }), github: hub }
  return { deps, order, listDeployments, deleteDeployment, getDeployment }
}

describe('teardown', () => {
  it('removes every preview of the name, tells the step about each, and waits for all of them at the end', async () => {
    const { deps, order, listDeployments } = scene([preview, other])
    expect(await teardown(wanted(), deps)).toBe('removed')
    expect(order).toEqual(
      [DEPLOYMENT_ID, OTHER_ID].map((id) => `delete ${id}`).concat([DEPLOYMENT_ID, OTHER_ID].map((id) => `look ${id}`)),
    )
    expect(deps.lines).toEqual([
      `Removing the deployment '${NAME}' (${DEPLOYMENT_ID}) with its tracing project.`,
      `Removing the deployment '${NAME}' (${OTHER_ID}) with its tracing project.`,
    ])
    expect(deps.outputs).toEqual({
      'deployment-name': NAME,
      'deployment-id': OTHER_ID,
      'deployment-url': 'https://agent.example.com',
    })
    expect(deps.state).toEqual({ deploymentId: OTHER_ID, pending: '' })
    expect(listDeployments.mock.calls[0]?.[0]).toMatchObject({ nameContains: NAME })
  })

  it('has the outputs of what it found before anything is removed', async () => {
    const { deps, deleteDeployment } = scene([preview])
    const seen: unknown[] = []
    deleteDeployment.mockImplementation(async () => {
      seen.push({ ...deps.outputs }, deps.state['deploymentId'])
      return { alreadyGone: false }
    })
    await teardown(wanted(), deps)
    const outputs = { 'deployment-name': NAME, 'deployment-id': DEPLOYMENT_ID, 'deployment-url': 'https://agent.example.com' }
    expect(seen).toEqual([outputs, DEPLOYMENT_ID])
  })

  it('says that there was none', async () => {
    const { deps, order } = scene([])
    expect(await teardown(wanted(), deps)).toBe('removed')
    expect([deps.lines, deps.outputs, order]).toEqual([
      [`There is no deployment named '${NAME}'.`],
      { 'deployment-name': NAME },
      [],
    ])
  })

  it('leaves the preview alone when the pull request is open again, in the log and in the summary', async () => {
    const { deps, listDeployments } = scene([preview], 'open')
    const reason = 'The pull request 7 is open again: its preview stays.'
    expect(await teardown(wanted(), deps)).toBe('skipped')
    expect([deps.notices, deps.journal.notes]).toEqual([[reason], [reason]])
    expect(listDeployments).not.toHaveBeenCalled()
    const asked = wanted({ preview: { ...wanted().preview, closing: false } })
    expect(await teardown(asked, deps)).toBe('removed')
  })

  it('refuses a preview of another repository before anything is removed', async () => {
    const address = 'https://github.com/acme/other'
    const foreign = deployment({ name: NAME, id: OTHER_ID, source_config: { repo_url: address } })
    for (const dryRun of [false, true]) {
      const { deps, order } = scene([preview, foreign])
      await expect(teardown(wanted({ dryRun }), deps)).rejects.toMatchObject({
        code: 'E_CONFLICT',
        message: `The deployment '${NAME}' (${OTHER_ID}) was built from ${address}, which is neither this repository nor the head of the pull request.`,
        tried: 'Nothing was removed.',
        next: 'Choose a deployment-name that no other repository of this workspace uses; if this one is yours, set repo-url to its address.',
      })
      // The outputs are those of the one that stands in the way.
      expect([order, deps.outputs['deployment-id'], deps.journal.plan]).toEqual([[], OTHER_ID, undefined])
    }
  })

  it('has the whole timeout, and leaves nothing that listens', async () => {
    for (const dryRun of [false, true]) {
      const { deps, listDeployments } = scene([preview])
      await teardown(wanted({ dryRun }), deps)
      const signal = listDeployments.mock.calls[0]?.[0]?.signal
      expect(deadlineOf(signal!)).toBe(deps.effects.now() + TIMEOUT_MS)
      deps.abort()
      expect(signal?.aborted).toBe(false)
    }
  })

  it('is cancelled with the step', async () => {
    const { deps, getDeployment } = scene([preview])
    getDeployment.mockImplementation(async () => {
      deps.abort()
      return preview
    })
    await expect(teardown(wanted(), deps)).rejects.toMatchObject({ name: 'AbortError', message: 'received SIGINT' })
  })
})

describe('the plan of a teardown', () => {
  it('names each deployment that would go', async () => {
    const { deps, order } = scene([preview, other])
    expect(await teardown(wanted({ dryRun: true }), deps)).toBe('planned')
    expect(deps.journal.plan).toEqual([
      { field: 'deployment', live: `${NAME} (${DEPLOYMENT_ID})`, wanted: '(none)' },
      { field: 'deployment', live: `${NAME} (${OTHER_ID})`, wanted: '(none)' },
    ])
    expect(deps.groups).toEqual([
      {
        title: 'Plan: remove the deployment',
        lines: [`${NAME} (${DEPLOYMENT_ID}), with its tracing project`, `${NAME} (${OTHER_ID}), with its tracing project`],
      },
    ])
    expect(deps.lines).toEqual(['dry-run: nothing was changed.'])
    expect([deps.outputs['deployment-id'], deps.state['deploymentId'], order]).toEqual([OTHER_ID, OTHER_ID, []])
  })

  it('of nothing is no plan', async () => {
    const { deps } = scene([])
    expect(await teardown(wanted({ dryRun: true }), deps)).toBe('planned')
    expect([deps.journal.plan, deps.groups]).toEqual([undefined, []])
    expect(deps.lines).toEqual([`There is no deployment named '${NAME}' to remove.`, 'dry-run: nothing was changed.'])
  })
})

describe('removeAll', () => {
  it('counts what it removed', async () => {
    expect(await removeAll(wanted(), scene([preview, other]).deps)).toBe(2)
    expect(await removeAll(wanted(), scene([]).deps)).toBe(0)
  })
})
