import { describe, expect, it } from 'vitest'
import { always, CREATE, LIST, PATCH } from '../support/fault-rules.ts'
import { faults } from '../support/fault-server.ts'
import { LIVE } from '../support/live-deployment.ts'
import { failed, withScene } from '../support/scene.ts'

describe.concurrent('who may not', () => {
  it('a key that is refused', () =>
    withScene({}, async ({ run, flaws }) => {
      const wrong = 'lsv2_pt_this-key-was-revoked'
      const result = await run({ with: { 'api-key': wrong } })
      const says = ['401', 'api-key']
      expect(await flaws(result, failed('E_AUTH', ...says), [wrong])).toEqual([])
    }))

  it('a workspace that is not the key\'s', () =>
    withScene({}, async ({ run, flaws }) => {
      const result = await run({ with: { 'workspace-id': '11111111-1111-4111-8111-111111111111' } })
      expect(await flaws(result, failed('E_AUTH', '403'))).toEqual([])
    }))

  it('a key of a whole organisation without a workspace', () =>
    withScene({}, async ({ network, run, flaws }) => {
      network.on(always(LIST), faults.status(403, { detail: 'requires workspace specification' }))
      const says = ['403', 'workspace-id']
      expect(await flaws(await run(), failed('E_AUTH', ...says))).toEqual([])
    }))

  it('another workspace\'s deployment', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      const { id } = plane.addDeployment({ name: 'theirs', tenantId: '22222222-2222-4222-8222-222222222222', ...LIVE })
      const result = await run({ with: { 'deployment-name': '', 'deployment-id': id } })
      expect(await flaws(result, failed('E_NOT_FOUND', id))).toEqual([])
      expect(plane.requests.filter(({ method }) => method !== 'GET')).toEqual([])
    }))
})

describe.concurrent('what the control plane refuses', () => {
  it('a value, with its place as a path', () =>
    withScene({}, async ({ network, plane, run, flaws }) => {
      const fault = (loc: (string | number)[], msg: string) => ({ loc, msg, type: 'value_error', input: plane.apiKey })
      const detail = [
        fault(['body', 'source_revision_config', 'repo_ref'], 'no such branch'),
        fault(['body', 'secrets', 0, 'name'], 'reserved'),
      ]
      network.on(CREATE, faults.status(422, { detail }))
      const says = ['422', 'body.source_revision_config.repo_ref: no such branch', 'body.secrets.0.name: reserved']
      expect(await flaws(await run(), failed('E_VALIDATION', ...says))).toEqual([])
      expect(network.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
    }))

  it('a request, in its own words', () =>
    withScene({}, async ({ network, plane, run, flaws }) => {
      plane.addDeployment({ name: 'echo-agent', ...LIVE })
      network.on(PATCH, faults.status(400, { detail: 'resource_spec.cpu must be greater than 0' }))
      const says = ['400', 'resource_spec.cpu must be greater than 0']
      expect(await flaws(await run(), failed('E_VALIDATION', ...says))).toEqual([])
    }))

  it('a name that an old tracing project has', () =>
    withScene({}, async ({ network, plane, run, flaws }) => {
      const detail = 'There already exists a project in LangSmith named: echo-agent.'
      network.on(always(CREATE), faults.status(409, { detail }))
      const says = ['409', detail, 'tracing project']
      expect(await flaws(await run(), failed('E_CONFLICT', ...says))).toEqual([])
      expect(plane.deployments).toEqual([])
    }))
})
