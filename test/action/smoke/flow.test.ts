import { describe, expect, it, vi } from 'vitest'
import type { AgentServer } from '../../../src/client/agent-server.ts'
import type { ControlPlane } from '../../../src/client/control-plane.ts'
import type { RunEvent } from '../../../src/contract/run-stream.ts'
import type { Inputs } from '../../../src/action/inputs.ts'
import { run } from '../../../src/action/main.ts'
import type { SmokeTest } from '../../../src/action/smoke/smoke-test.ts'
import { COMMIT, deployment, DIGEST, NEW_REVISION_ID, REPO_URL, revision } from '../support/answers.ts'
import { fakeDeps, inputs } from '../support/deps.ts'

const TEST: SmokeTest = { input: {}, assistant: 'agent', streamMode: 'updates', timeoutMs: 120_000 }
const ANSWER: RunEvent = { event: 'updates', data: { node: { answer: 'pong' } } }

/** One step with a smoke test against an agent that streams these events. */
async function step(wanted: Partial<Inputs> = {}, changes: Partial<ControlPlane> = {}, events: RunEvent[] = [ANSWER]) {
  const deps = fakeDeps(changes)
  const asked: string[] = []
  const agentServer = (url: string): AgentServer => ({
    url,
    streamRun: async function* () {
      asked.push(url)
      yield* events
    },
    searchAssistants: vi.fn(async () => []),
    ok: async () => undefined,
  })
  const outcome = await run(inputs({ smokeTest: TEST, ...wanted }), { ...deps, agentServer })
  return { ...deps, asked, ended: 'status' in outcome ? outcome.status : outcome.failure.code }
}

describe('a step with a smoke test', () => {
  it('talks to the agent once the revision serves, and is green when it answers', async () => {
    const { ended, outputs, asked } = await step()
    expect(ended).toBe('deployed')
    expect(asked).toEqual(['https://agent.example.com/'])
    expect(outputs).toMatchObject({ 'smoke-test': 'passed', 'revision-status': 'DEPLOYED' })
  })

  it('is red when the agent does not answer, and knows the revision all the same', async () => {
    const { ended, outputs, controlPlane } = await step({}, {}, [{ event: 'error', data: 'no' }])
    expect(ended).toBe('E_SMOKE_TEST')
    expect(outputs).toMatchObject({ 'smoke-test': 'failed', 'revision-id': NEW_REVISION_ID, 'revision-status': 'DEPLOYED' })
    expect(controlPlane.interruptRevision).not.toHaveBeenCalled()
  })

  it('takes the address that the control plane tells at the end', async () => {
    const served = { latest_revision_id: NEW_REVISION_ID, active_revision_id: NEW_REVISION_ID }
    const custom = { ...served, url: null, source_config: { repo_url: REPO_URL, custom_url: 'https://custom.example.com/a' } }
    const { asked } = await step({}, { findDeploymentByName: async () => null, getDeployment: async () => deployment(custom) })
    expect(asked).toEqual(['https://custom.example.com/a'])
  })

  it('is red where no address is told', async () => {
    const served = deployment({ latest_revision_id: NEW_REVISION_ID, active_revision_id: NEW_REVISION_ID, url: null })
    const created = { deployment: served, recovered: false }
    const answers = {
      findDeploymentByName: async () => null,
      createDeployment: async () => created,
      getDeployment: async () => served,
    }
    const { ended, asked } = await step({}, answers)
    expect(ended).toBe('E_SMOKE_TEST')
    expect(asked).toEqual([])
  })

  it('proves an unchanged deployment as well: that it is live is no proof that it answers', async () => {
    const unchanged = { skipUnchanged: true, source: { kind: 'external_docker', imageUri: DIGEST } } as const
    const live = deployment({ source: 'external_docker', source_config: {}, source_revision_config: { image_uri: DIGEST } })
    const answers = {
      findDeploymentByName: async () => live,
      getRevision: async () => revision('DEPLOYED', { source: 'external_docker', source_revision_config: { image_uri: DIGEST } }),
    }
    const good = await step(unchanged, answers)
    expect([good.ended, good.outputs['smoke-test'], good.asked.length]).toEqual(['unchanged', 'passed', 1])
    expect(good.controlPlane.patchDeployment).not.toHaveBeenCalled()
    const bad = await step(unchanged, answers, [])
    expect([bad.ended, bad.outputs['smoke-test']]).toEqual(['E_SMOKE_TEST', 'failed'])
  })

  it.each<[string, Partial<Inputs>, Partial<ControlPlane>, string]>([
    ['it does not wait', { wait: false }, {}, 'deployed'],
    ['it only plans', { dryRun: true }, {}, 'planned'],
    ['the revision fails', {}, { getRevision: async () => revision('BUILD_FAILED') }, 'E_BUILD_FAILED'],
  ])('skips it when %s', async (_, wanted, changes, expected) => {
    const { ended, asked, outputs } = await step(wanted, changes)
    expect(ended).toBe(expected)
    expect(asked).toEqual([])
    expect(outputs['smoke-test']).toBe('skipped')
  })

  it('says nothing of it when none was asked for', async () => {
    const { smokeTest: _, ...wanted } = inputs({ smokeTest: TEST })
    const deps = fakeDeps()
    await run(
      {
        ...wanted,
        source: { kind: 'git_host', repoUrl: REPO_URL, repoRef: 'main', configPath: 'langgraph.json', commit: COMMIT },
      },
      deps,
    )
    expect(deps.outputs).not.toHaveProperty('smoke-test')
  })
})
