import { describe, expect, it } from 'vitest'
import type { DeploymentRecord, DeploymentRecordStatus, DeploymentState } from '../../../src/action/github/github.ts'
import {
  failsDescription,
  findProof,
  payloadOf,
  type Proof,
  readPayload,
  type RecordPayload,
  servesDescription,
  TASK,
} from '../../../src/action/github/proof.ts'

const FIELDS: RecordPayload = { deployment: 'agent', 'control-plane': 'https://plane.example', mode: 'deploy' }
const FULL: RecordPayload = { ...FIELDS, 'pull-request': 7, 'deployment-id': 'the-id', step: 'one' }
const { signal } = new AbortController()

const record = (id: number, payload: unknown = payloadOf(FIELDS)): DeploymentRecord => ({
  id,
  environment: `environment ${id}`,
  sha: `commit ${id}`,
  ref: 'main',
  task: TASK,
  payload,
  createdAt: id,
})
const status = (state: DeploymentState, description: string): DeploymentRecordStatus => ({ state, description, createdAt: 5 })
const PASSED = status('success', servesDescription('r1', true))
const FAILED = status('failure', failsDescription('r1', 'E_SMOKE_TEST, smoke test failed'))

/** What is found among these records, and which of them were asked for their statuses. */
async function find(
  records: DeploymentRecord[],
  statuses: Record<number, DeploymentRecordStatus[]>,
  deploymentId?: string,
): Promise<{ proof: Proof | null; asked: number[] }> {
  const asked: number[] = []
  const proof = await findProof(
    {
      listDeployments: async (options, given) => {
        expect(options).toEqual({ task: 'deploy:agent-server', max: 1000 })
        expect(given).toBe(signal)
        return records
      },
      listDeploymentStatuses: async (id, given) => {
        expect(given).toBe(signal)
        asked.push(id)
        return statuses[id] ?? []
      },
    },
    {
      deploymentName: 'agent',
      ...(deploymentId === undefined ? {} : { deploymentId }),
      revisionId: 'r1',
      controlPlaneUrl: 'https://plane.example',
    },
    signal,
  )
  return { proof, asked }
}

describe('the payload of a record', () => {
  it.each([[FIELDS], [FULL], [{ ...FIELDS, step: 'one' }], [{ ...FIELDS, 'pull-request': 7 }]])('is read back: %j', (fields) => {
    expect(payloadOf(fields)).toEqual({ 'deploy-agent-server': fields })
    expect(readPayload(payloadOf(fields))).toStrictEqual(fields)
  })

  it('may have more in it', () => {
    const payload = { 'deploy-agent-server': { ...FULL, more: 1 }, other: 2 }
    expect(readPayload(payload)).toStrictEqual(FULL)
  })

  it.each([
    ['nothing', undefined],
    ['text', 'agent'],
    ['another one', { other: FIELDS }],
    ['one without a deployment', { 'deploy-agent-server': { 'control-plane': 'x', mode: 'deploy' } }],
    ['one without a control plane', { 'deploy-agent-server': { deployment: 'agent', mode: 'deploy' } }],
    ['one without a mode', { 'deploy-agent-server': { deployment: 'agent', 'control-plane': 'x' } }],
    ['one with half a pull request', payloadOf({ ...FULL, 'pull-request': 7.5 })],
  ])('is no payload: %s', (_, payload) => {
    expect(readPayload(payload)).toBeNull()
  })
})

describe('the descriptions', () => {
  it('say what became of a revision', () => {
    expect(servesDescription('r1', true)).toBe('Revision r1 serves; smoke test passed')
    expect(servesDescription('r1', false)).toBe('Revision r1 serves')
    expect(failsDescription('r1', 'E_X, failed')).toBe('Revision r1: E_X, failed')
  })
})

describe('a proof', () => {
  it('is the newest record with it', async () => {
    const found = await find([record(3), record(2), record(1)], { 2: [status('inactive', 'later'), PASSED], 1: [PASSED] })
    expect(found).toEqual({
      proof: { sha: 'commit 2', at: 5, environment: 'environment 2', recordId: 2 },
      asked: [3, 2],
    })
  })

  it.each([
    ['of another revision', status('success', servesDescription('r2', true))],
    ['without a smoke test', status('success', servesDescription('r1', false))],
    ['that failed', status('failure', servesDescription('r1', true))],
    ['of a failure of another kind', status('failure', failsDescription('r1', 'E_TIMEOUT'))],
    ['of a failure that is none', status('inactive', failsDescription('r1', 'E_SMOKE_TEST'))],
    ['of a failure that is told elsewhere', status('failure', `After ${failsDescription('r1', 'E_SMOKE_TEST')}`)],
  ])('is no record %s, and behind it others are looked at', async (_, other) => {
    expect(await find([record(2), record(1)], { 2: [other], 1: [PASSED] })).toMatchObject({
      proof: { recordId: 1 },
      asked: [2, 1],
    })
    expect((await find([record(2)], { 2: [other] })).proof).toBeNull()
  })

  it('ends with a later failure of the test', async () => {
    expect(await find([record(2), record(1)], { 2: [FAILED, PASSED], 1: [PASSED] })).toEqual({ proof: null, asked: [2] })
    expect(await find([record(2), record(1)], { 2: [PASSED, FAILED] })).toMatchObject({ proof: { recordId: 2 } })
  })

  it('is of this deployment at this control plane', async () => {
    const byId = payloadOf({ ...FULL, deployment: 'the-id' })
    const records = [
      record(9, payloadOf({ ...FIELDS, deployment: 'other' })),
      record(8, payloadOf({ ...FIELDS, 'control-plane': 'https://another.example' })),
      record(7, payloadOf({ ...FULL, 'control-plane': 'https://another.example' })),
      record(6, null),
      record(5, byId),
      record(4),
    ]
    expect((await find(records, {})).asked).toEqual([4])
    expect((await find(records, {}, 'the-id')).asked).toEqual([5, 4])
    expect((await find(records, {}, 'another-id')).asked).toEqual([4])
  })

  it('is looked for in a hundred records', async () => {
    const records = Array.from({ length: 101 }, (_, index) => record(index))
    expect(await find(records, { 99: [PASSED] })).toMatchObject({ proof: { recordId: 99 } })
    const { proof, asked } = await find(records, { 100: [PASSED] })
    expect([proof, asked.length]).toEqual([null, 100])
  })
})
