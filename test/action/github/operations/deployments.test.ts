import { describe, expect, it } from 'vitest'
import { deploymentOperations } from '../../../../src/action/github/operations/deployments.ts'
import { httpFailure, requestFailure } from '../../../support/request-failure.ts'
import { githubFailure } from '../support.ts'
import { fakeSend, HERE, record, signal } from './support.ts'

const AT = Date.UTC(2026, 0, 2, 3, 4, 5)
const status = (id: number, changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  id,
  state: 'success',
  description: `number ${id}`,
  created_at: '2026-01-02T03:04:05Z',
  ...changes,
})
const NEW = {
  ref: 'main',
  environment: 'staging',
  task: 'deploy',
  description: 'Deploying',
  payload: { step: 'one' },
  transient: true,
  production: false,
}
const ASKED_RECORDS = {
  operation: 'listing deployment records',
  permission: 'deployments: read',
  route: 'GET /repos/{owner}/{repo}/deployments',
}

describe('deployment records', () => {
  it('are made without checks and merges', async () => {
    const { asked, here } = fakeSend({ body: record({ payload: '{"step":"one"}' }) })
    expect(await deploymentOperations(here).createDeployment(NEW, signal)).toEqual({
      id: 1,
      environment: 'staging',
      sha: 'c0ffee',
      ref: 'main',
      task: 'deploy',
      payload: { step: 'one' },
      createdAt: AT,
    })
    expect(asked).toEqual([
      {
        operation: "creating a deployment record of 'staging'",
        permission: 'deployments: write',
        route: 'POST /repos/{owner}/{repo}/deployments',
        parameters: {
          ...HERE,
          ref: 'main',
          environment: 'staging',
          task: 'deploy',
          payload: { step: 'one' },
          description: 'Deploying',
          auto_merge: false,
          required_contexts: [],
          transient_environment: true,
          production_environment: false,
        },
      },
    ])
  })

  it('are listed newest first, the later id before the earlier one of the same moment', async () => {
    const bodies = [
      record({ id: 2 }),
      record({ id: 9, created_at: '2026-01-01T00:00:00Z' }),
      record({ id: 5, payload: 'not JSON' }),
      record({ id: 1, created_at: '2026-01-03T00:00:00Z', payload: null }),
    ]
    const { asked, here } = fakeSend({ body: bodies })
    const records = await deploymentOperations(here).listDeployments({ environment: 'staging', task: 't', max: 20 }, signal)
    expect(records.map(({ id, payload }) => [id, payload])).toEqual([
      [1, null],
      [5, 'not JSON'],
      [2, { step: 'one' }],
      [9, { step: 'one' }],
    ])
    expect(asked).toEqual([
      { ...ASKED_RECORDS, parameters: { ...HERE, environment: 'staging', task: 't', per_page: 20, page: 1 } },
    ])
  })

  it('have statuses, newest first', async () => {
    const bodies = [
      status(1, { created_at: '2026-01-02T03:04:04Z' }),
      status(3),
      status(4, { description: null, state: 'error' }),
      status(2, { created_at: '2026-01-02T03:04:06Z' }),
    ]
    const { asked, here } = fakeSend({ body: bodies })
    expect(await deploymentOperations(here).listDeploymentStatuses(7, signal)).toEqual([
      { state: 'success', description: 'number 2', createdAt: AT + 1000 },
      { state: 'error', description: '', createdAt: AT },
      { state: 'success', description: 'number 3', createdAt: AT },
      { state: 'success', description: 'number 1', createdAt: AT - 1000 },
    ])
    expect(asked).toEqual([
      {
        operation: 'listing the statuses of the deployment record 7',
        permission: 'deployments: read',
        route: 'GET /repos/{owner}/{repo}/deployments/{deployment_id}/statuses',
        parameters: { ...HERE, deployment_id: 7, per_page: 100, page: 1 },
      },
    ])
  })

  it('whose time is none are no records', async () => {
    const { here } = fakeSend({ body: [record({ created_at: 'soon' })] })
    const pending = deploymentOperations(here).listDeployments({ max: 1 }, signal)
    await expect(pending).rejects.toMatchObject({ issues: [{ code: 'custom', message: 'is not a time' }] })
  })

  it.each([
    [{}, {}],
    [
      { environmentUrl: 'https://a', logUrl: 'https://b', autoInactive: false },
      { environment_url: 'https://a', log_url: 'https://b', auto_inactive: false },
    ],
  ])('get a status with %j', async (options, parameters) => {
    const { asked, here } = fakeSend({ body: status(1) })
    const given = { deploymentId: 7, state: 'error', description: ' a \n\n b ', ...options } as const
    await deploymentOperations(here).createDeploymentStatus(given, signal)
    expect(asked).toEqual([
      {
        operation: 'setting the deployment record 7 to error',
        permission: 'deployments: write',
        route: 'POST /repos/{owner}/{repo}/deployments/{deployment_id}/statuses',
        parameters: { ...HERE, deployment_id: 7, state: 'error', description: 'a b', ...parameters },
        idempotent: true,
      },
    ])
  })

  it.each([
    ['x'.repeat(140), 'x'.repeat(140)],
    ['x'.repeat(141), `${'x'.repeat(139)}…`],
    [`${'x'.repeat(138)}💥y`, `${'x'.repeat(138)}…`],
    [`${'x'.repeat(137)}💥yy`, `${'x'.repeat(137)}💥…`],
  ])('have a description of at most 140 characters: %#', async (description, expected) => {
    const { asked, here } = fakeSend({ body: status(1) })
    await deploymentOperations(here).createDeploymentStatus({ deploymentId: 7, state: 'error', description }, signal)
    expect(asked[0]?.parameters['description']).toBe(expected)
  })
})

describe('a record that may have been made', () => {
  const lost = githubFailure(requestFailure({ summary: 'lost', ambiguous: true }))
  const other = [record({ id: 4, payload: { step: 'two' } }), record({ id: 5, ref: 'other' })]

  it('is looked for by its reference and its payload', async () => {
    const { asked, here } = fakeSend(lost, { body: [...other, record({ id: 6 })] })
    expect((await deploymentOperations(here).createDeployment(NEW, signal)).id).toBe(6)
    expect(asked[1]).toEqual({
      ...ASKED_RECORDS,
      parameters: { ...HERE, environment: 'staging', task: 'deploy', per_page: 20, page: 1 },
    })
  })

  it('is asked for three times at most', async () => {
    const { asked, here } = fakeSend(lost, { body: other }, lost, { body: other }, lost, { body: other })
    await expect(deploymentOperations(here).createDeployment(NEW, signal)).rejects.toBe(lost)
    expect(asked.map(({ route }) => route.split(' ')[0])).toEqual(['POST', 'GET', 'POST', 'GET', 'POST', 'GET'])
  })

  it('is not asked for again where the list cannot be read', async () => {
    const { asked, here } = fakeSend(lost, githubFailure(httpFailure(403)))
    await expect(deploymentOperations(here).createDeployment(NEW, signal)).rejects.toBe(lost)
    expect(asked).toHaveLength(2)
  })

  it.each([
    ['a refusal', githubFailure(httpFailure(422))],
    ['a mistake', new Error('a mistake')],
  ])('is none after %s', async (_, error) => {
    const { asked, here } = fakeSend(error, { body: [record()] })
    await expect(deploymentOperations(here).createDeployment(NEW, signal)).rejects.toBe(error)
    expect(asked).toHaveLength(1)
  })
})
