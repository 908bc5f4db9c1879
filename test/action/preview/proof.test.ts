import { describe, expect, it, vi } from 'vitest'
import { GithubFailure } from '../../../src/action/github/failure.ts'
import type { DeploymentRecord, DeploymentRecordStatus, Github } from '../../../src/action/github/github.ts'
import { payloadOf, servesDescription } from '../../../src/action/github/proof.ts'
import type { SweepInputs } from '../../../src/action/inputs.ts'
import { findOwner } from '../../../src/action/preview/proof.ts'
import { httpFailure } from '../../support/request-failure.ts'
import { deployment, DEPLOYMENT_ID, NEW_REVISION_ID, OLD_REVISION_ID, REPO_URL } from '../support/answers.ts'

const CONTROL_PLANE = 'https://control-plane.example.com'
const NAME = 'agent-pr-7'
const signal = new AbortController().signal
const image = (changes: Record<string, unknown> = {}) => deployment({ name: NAME, source_config: {}, ...changes })

function record(id: number, changes: { deployment?: string; plane?: string; deploymentId?: string } = {}): DeploymentRecord {
  const payload = payloadOf({
    deployment: changes.deployment ?? NAME,
    'control-plane': changes.plane ?? CONTROL_PLANE,
    mode: 'preview',
    ...(changes.deploymentId === undefined ? {} : { 'deployment-id': changes.deploymentId }),
  })
  return { id, environment: 'preview', sha: 'a'.repeat(40), ref: 'feature', task: 'deploy:agent-server', createdAt: 0, payload }
}

const serves = (revisionId: string): DeploymentRecordStatus => ({
  state: 'success',
  description: servesDescription(revisionId, false),
  createdAt: 0,
})

/** `statuses`: of each record, by its id; those of others name the revision, unless told otherwise. */
function scene(records: DeploymentRecord[], statuses: Record<number, DeploymentRecordStatus[]> = {}) {
  const listDeployments = vi.fn(async () => records)
  const listDeploymentStatuses = vi.fn(async (id: number) => statuses[id] ?? [serves(OLD_REVISION_ID)])
  const github = { listDeployments, listDeploymentStatuses } as unknown as Github
  const inputs = { controlPlaneUrl: CONTROL_PLANE, sweep: { baseName: 'agent', repoUrl: REPO_URL, ttlMs: 1 } } as SweepInputs
  return { owner: findOwner({ inputs, github, signal }), listDeployments, listDeploymentStatuses }
}

const DOUBT = 'it was built from an image, and no deployment record of this repository names it or its revision by the id'

describe('whose preview it is', () => {
  it('is told by the repository that it was built from, without a look at the records', async () => {
    const { owner, listDeployments } = scene([])
    expect(await owner(deployment({ name: NAME }))).toBeUndefined()
    expect(listDeployments).not.toHaveBeenCalled()
    expect(await owner(deployment({ name: NAME, source_config: { repo_url: 'https://github.com/acme/other' } }))).toBe(
      DOUBT.replace('an image', 'https://github.com/acme/other'),
    )
  })

  it.each([
    ['by its id', [record(1, { deploymentId: DEPLOYMENT_ID })], {}],
    ['by its id, after others that name it', [record(1), record(2, { deploymentId: DEPLOYMENT_ID })], { 1: [] }],
    ['by the revision that serves', [record(1)], {}],
    ['by the newest revision', [record(1)], { 1: [serves(NEW_REVISION_ID)] }],
    ['in one status of several', [record(1)], { 1: [serves('other'), serves(OLD_REVISION_ID), serves('another')] }],
    ['in the statuses of a later record', [record(1), record(2)], { 1: [] }],
  ])('is told by a record of this repository that names it %s', async (_, records, statuses) => {
    const { owner } = scene(records, statuses)
    expect(await owner(image({ latest_revision_id: NEW_REVISION_ID }))).toBeUndefined()
  })

  it.each([
    ['is of another deployment', record(1, { deployment: 'agent-pr-8' })],
    ['is of another deployment, with its id', record(1, { deployment: 'agent-pr-8', deploymentId: DEPLOYMENT_ID })],
    ['is of another control plane', record(1, { plane: 'https://another.example.com' })],
    [
      'is of another control plane, with its id',
      record(1, { plane: 'https://another.example.com', deploymentId: DEPLOYMENT_ID }),
    ],
    ['names another id', record(1, { deploymentId: 'that-of-another-one' })],
    ['was not made by this action', { ...record(1), payload: { deployment: NAME } }],
  ])('is not told by a record that %s, whatever its statuses say', async (_, one) => {
    const { owner, listDeploymentStatuses } = scene([one])
    expect(await owner(image())).toBe(DOUBT)
    expect(listDeploymentStatuses).not.toHaveBeenCalled()
  })

  it('is not told by words that only look like the id of a revision that is not there', async () => {
    const { owner } = scene([record(1)], { 1: [serves('null'), serves('undefined')] })
    expect(await owner(image({ latest_revision_id: null, active_revision_id: null }))).toBe(DOUBT)
    expect(await owner(image({ latest_revision_id: null, active_revision_id: undefined }))).toBe(DOUBT)
  })

  it('is looked for in a thousand records, once, and in the statuses of twenty of them', async () => {
    const records = Array.from({ length: 21 }, (_, index) => record(index + 1))
    const statuses = Object.fromEntries(records.slice(0, 20).map(({ id }) => [id, []]))
    const { owner, listDeployments, listDeploymentStatuses } = scene(records, statuses)
    expect(await owner(image())).toBe(DOUBT)
    expect(listDeploymentStatuses.mock.calls).toEqual(records.slice(0, 20).map(({ id }) => [id, signal]))
    await owner(image())
    expect(listDeployments.mock.calls).toEqual([[{ task: 'deploy:agent-server', max: 1000 }, signal]])
  })

  it('cannot be told when GitHub does not answer: that ends the sweep', async () => {
    const { owner, listDeployments } = scene([])
    const request = httpFailure(502, { path: '/repos/acme/agents/deployments' })
    const failure = new GithubFailure({ operation: 'listing deployment records', request, permission: null })
    listDeployments.mockRejectedValue(failure)
    await expect(owner(image())).rejects.toMatchObject({
      code: 'E_UNAVAILABLE',
      message: 'The sweep failed: GitHub: listing deployment records failed: GET /repos/acme/agents/deployments answered 502.',
      cause: failure,
    })
  })
})
