import { describe, expect, it } from 'vitest'
import { failsDescription, findProof, payloadOf, readPayload, servesDescription, TASK } from '../../../src/action/github/proof.ts'
import {
  closeRecord,
  openRecord,
  type OpenRecord,
  readOpenRecord,
  refsOf,
  retireRecords,
  runAddress,
} from '../../../src/action/github/records.ts'
import { stateOf } from '../../support/github-double.ts'
import { inputs } from '../support/deps.ts'
import { githubContext } from '../support/github.ts'
import { type Connected, failureOf, withGithub } from './support.ts'

const SHA = 'c0ffee0000000000000000000000000000000000'
const REVISION = '00000000-0000-4000-8000-000000000002'

type Wish = { environment?: string; deployment?: string; refs?: readonly string[]; transient?: boolean; step?: string }

async function open({ github, signal }: Connected, wish: Wish = {}): Promise<(OpenRecord | undefined)[]> {
  const { environment = 'staging', deployment = 'agent', refs = [SHA], transient = false, step = 'one' } = wish
  const told: (OpenRecord | undefined)[] = []
  const payload = { deployment, 'control-plane': 'https://plane.example', mode: 'deploy', step }
  const onOpen = (record: OpenRecord | undefined): void => void told.push(record)
  await openRecord({
    github,
    refs,
    environment,
    payload,
    transient,
    logUrl: 'https://github.com/acme/agents/actions/runs/1',
    onOpen,
    signal,
  })
  return told
}

const succeed = async ({ github, signal }: Connected, record: OpenRecord | undefined, description = 'x'): Promise<void> => {
  if (record === undefined) throw new Error('there is no record')
  await closeRecord({ github, record, end: { state: 'success', description }, logUrl: undefined, signal })
}

describe.concurrent('a record', () => {
  it('is told of before GitHub is asked, and again as soon as it has an id', () =>
    withGithub({}, async (connected) => {
      const told = await open(connected)
      const [record] = connected.double.state.deployments
      expect(told).toEqual([
        { environment: 'staging', step: 'one' },
        { environment: 'staging', step: 'one', id: record?.id },
      ])
      expect(record).toMatchObject({
        ref: SHA,
        sha: SHA,
        task: TASK,
        description: 'Deploying agent',
        transient: false,
        production: false,
      })
      expect(record?.statuses).toMatchObject([{ state: 'in_progress', logUrl: 'https://github.com/acme/agents/actions/runs/1' }])
      expect(readPayload(record?.payload)).toEqual({
        deployment: 'agent',
        'control-plane': 'https://plane.example',
        mode: 'deploy',
        step: 'one',
      })
    }))

  it.each([
    ['production', false, true],
    ['Prod', false, true],
    ['production', true, false],
    ['reproduction', false, false],
  ])('of %s (transient: %s) is one of production: %s', (environment, transient, production) =>
    withGithub({}, async (connected) => {
      await open(connected, { environment, transient })
      expect(connected.double.state.deployments).toMatchObject([{ production, transient }])
    }),
  )

  it('takes the commit of the event when GitHub does not know the branch', () =>
    withGithub({}, async (connected) => {
      await open(connected, { refs: ['gone', SHA] })
      expect(connected.double.state.deployments).toMatchObject([{ ref: SHA }])
      expect((await failureOf(open(connected, { refs: ['gone'] }))).status).toBe(422)
    }))

  it('that GitHub refuses leaves nothing to end', () =>
    withGithub({ permissions: { deployments: 'none' } }, async (connected) => {
      const { github, signal } = connected
      const told: (OpenRecord | undefined)[] = []
      const payload = { deployment: 'agent', 'control-plane': 'x', mode: 'deploy', step: 'one' }
      const options = { refs: [SHA], environment: 'e', payload, transient: false, logUrl: undefined }
      await failureOf(openRecord({ github, ...options, onOpen: (record) => void told.push(record), signal }))
      expect(told).toEqual([{ environment: 'e', step: 'one' }, undefined])
    }))

  it('whose first status GitHub refuses is still to be ended', () =>
    withGithub({}, async (connected) => {
      connected.double.on({ method: 'POST', path: /\/statuses$/ }, { kind: 'answer', status: 422, message: 'Validation Failed' })
      const { github, signal } = connected
      const told: (OpenRecord | undefined)[] = []
      const payload = { deployment: 'agent', 'control-plane': 'x', mode: 'deploy', step: 'one' }
      const options = { refs: [SHA], environment: 'e', payload, transient: false, logUrl: undefined }
      await failureOf(openRecord({ github, ...options, onOpen: (record) => void told.push(record), signal }))
      expect(told.at(-1)).toEqual({ environment: 'e', step: 'one', id: connected.double.state.deployments[0]?.id })
    }))

  it('whose id nobody knows is found by its step', () =>
    withGithub({}, async (connected) => {
      await open(connected, { step: 'one' })
      await open(connected, { step: 'two' })
      await succeed(connected, { environment: 'staging', step: 'one' })
      await succeed(connected, { environment: 'staging', step: 'three' })
      expect(connected.double.state.deployments.map(stateOf)).toEqual(['success', 'in_progress'])
    }))
})

describe.concurrent('earlier records', () => {
  const retire = async ({ github, signal, double }: Connected, all: boolean): Promise<number> => {
    const except = all ? {} : { except: double.state.deployments.at(-1)?.id ?? 0 }
    const options = { environment: 'staging', deployments: new Set(['agent']), description: 'later', all, ...except }
    return await retireRecords({ github, ...options, signal })
  }

  it('that were successful become inactive; failed ones, other deployments and other environments stay', () =>
    withGithub({}, async (connected) => {
      const { double, github, signal } = connected
      for (const step of ['1', '2', '3']) await succeed(connected, (await open(connected, { step })).at(-1))
      const failedId = (await open(connected, { step: '4' })).at(-1)?.id ?? 0
      await github.createDeploymentStatus({ deploymentId: failedId, state: 'failure', description: '' }, signal)
      await succeed(connected, (await open(connected, { step: '5', deployment: 'other' })).at(-1))
      await succeed(connected, (await open(connected, { step: '6', environment: 'qa' })).at(-1))
      await open(connected, { step: '7' })
      await succeed(connected, (await open(connected, { step: '8' })).at(-1))
      expect(await retire(connected, false)).toBe(3)
      const after = ['inactive', 'inactive', 'inactive', 'failure', 'success', 'success', 'in_progress', 'success']
      expect(double.state.deployments.map(stateOf)).toEqual(after)
      double.requests.length = 0
      expect(await retire(connected, false)).toBe(0)
      // Behind the first inactive one nothing is looked at any more.
      expect(double.requestsOf('repos/list-deployment-statuses').length).toBeLessThanOrEqual(3)
    }))

  it('are found behind one that is inactive for another reason', () =>
    withGithub({}, async (connected) => {
      const { double, github, signal } = connected
      await succeed(connected, (await open(connected, { step: '1' })).at(-1))
      const deploymentId = (await open(connected, { step: '2' })).at(-1)?.id ?? 0
      await github.createDeploymentStatus({ deploymentId, state: 'inactive', description: 'superseded' }, signal)
      await succeed(connected, (await open(connected, { step: '3' })).at(-1))
      expect(await retire(connected, false)).toBe(1)
      expect(double.state.deployments.map(stateOf)).toEqual(['inactive', 'inactive', 'success'])
    }))

  it('all become inactive when the deployment is removed', () =>
    withGithub({}, async (connected) => {
      await succeed(connected, (await open(connected, { step: '1' })).at(-1))
      await open(connected, { step: '2' })
      await open(connected, { step: '3', deployment: 'other' })
      expect(await retire(connected, true)).toBe(2)
      expect(connected.double.state.deployments.map(stateOf)).toEqual(['inactive', 'inactive', 'in_progress'])
      expect(await retire(connected, true)).toBe(0)
    }))
})

describe.concurrent('the proof of a smoke test', () => {
  const find = async (
    { github, signal }: Connected,
    options: { deploymentName?: string; deploymentId?: string; revisionId?: string; controlPlaneUrl?: string } = {},
  ) => {
    const names = { deploymentName: 'agent', revisionId: REVISION, controlPlaneUrl: 'https://plane.example', ...options }
    return await findProof(github, names, signal)
  }

  it('is the record of this revision of this deployment, also when a later one has taken its place', () =>
    withGithub({}, async (connected) => {
      const { double, github, signal } = connected
      const first = (await open(connected, { step: '1' })).at(-1)
      await succeed(connected, first, servesDescription(REVISION, true))
      await github.createDeploymentStatus({ deploymentId: first?.id ?? 0, state: 'inactive', description: 'later' }, signal)
      await open(connected, { step: '2' })
      expect(await find(connected)).toMatchObject({ sha: SHA, environment: 'staging', recordId: double.state.deployments[0]?.id })
      expect(await find(connected, { deploymentName: 'other' })).toBeNull()
      expect(await find(connected, { revisionId: REVISION.replace('2', '3') })).toBeNull()
      expect(await find(connected, { controlPlaneUrl: 'https://another.example' })).toBeNull()
    }))

  it('is not a revision that merely serves, a failed one, or a record of something else', () =>
    withGithub({}, async (connected) => {
      const { github, signal } = connected
      await succeed(connected, (await open(connected, { step: '1' })).at(-1), servesDescription(REVISION, false))
      const second = (await open(connected, { step: '2' })).at(-1)?.id ?? 0
      await github.createDeploymentStatus(
        { deploymentId: second, state: 'failure', description: servesDescription(REVISION, true) },
        signal,
      )
      const foreign = { ref: SHA, environment: 'staging', description: '', transient: false, production: false }
      const payload = payloadOf({ deployment: 'agent', 'control-plane': 'https://plane.example', mode: 'deploy' })
      for (const options of [
        { task: 'deploy', payload },
        { task: TASK, payload: { deployment: 'agent' } },
      ]) {
        const { id } = await github.createDeployment({ ...foreign, ...options }, signal)
        await github.createDeploymentStatus(
          { deploymentId: id, state: 'success', description: servesDescription(REVISION, true) },
          signal,
        )
      }
      expect(await find(connected)).toBeNull()
    }))

  it('is gone once the same revision has failed its test, until it passes again', () =>
    withGithub({}, async (connected) => {
      const { github, signal } = connected
      await succeed(connected, (await open(connected, { step: '1' })).at(-1), servesDescription(REVISION, true))
      const deploymentId = (await open(connected, { step: '2' })).at(-1)?.id ?? 0
      const description = failsDescription(REVISION, 'E_SMOKE_TEST, smoke test failed')
      await github.createDeploymentStatus({ deploymentId, state: 'failure', description }, signal)
      expect(await find(connected)).toBeNull()
      await succeed(connected, (await open(connected, { step: '3' })).at(-1), servesDescription(REVISION, true))
      expect(await find(connected)).not.toBeNull()
    }))

  it('is found by the id, where the workflow gave that', () =>
    withGithub({}, async ({ github, signal }) => {
      const id = '1b4e28ba-2fa1-4d2b-883f-0016d3cca427'
      const payload = payloadOf({ deployment: id, 'control-plane': 'x', mode: 'deploy', 'deployment-id': id })
      const fields = { ref: SHA, environment: 'e', task: TASK, description: '', transient: false, production: false }
      const record = await github.createDeployment({ ...fields, payload }, signal)
      const proof = { deploymentId: record.id, state: 'success', description: servesDescription(REVISION, true) } as const
      await github.createDeploymentStatus(proof, signal)
      const names = { deploymentName: 'agent', deploymentId: id, revisionId: REVISION, controlPlaneUrl: 'x' }
      expect(await findProof(github, names, signal)).toMatchObject({ recordId: record.id })
    }))

  it('that cannot be read is no absence of it', () =>
    withGithub({ permissions: { deployments: 'none' } }, async (connected) => {
      expect(await failureOf(find(connected))).toMatchObject({ permission: 'deployments: read' })
    }))

  it('fits into a description', () => {
    expect(servesDescription(REVISION, true).length).toBeLessThanOrEqual(140)
    expect(servesDescription(REVISION, true)).toBe(`Revision ${REVISION} serves; smoke test passed`)
  })
})

describe('what is recorded as deployed', () => {
  const git = {
    kind: 'git_host',
    repoUrl: 'https://github.com/acme/agents',
    repoRef: 'main',
    configPath: 'langgraph.json',
  } as const
  const context = githubContext({ sha: 'a'.repeat(40), eventName: 'workflow_dispatch', ref: 'refs/heads/main' })

  it.each([
    ['the commit of the event', { ...git, commit: SHA }, [SHA, 'a'.repeat(40)]],
    ['another branch by its name', { ...git, repoRef: 'other' }, ['other', 'a'.repeat(40)]],
    ['a tag by its name', { ...git, repoRef: 'refs/tags/v1' }, ['v1', 'a'.repeat(40)]],
    ['of another repository the commit of the event', { ...git, repoUrl: 'https://github.com/acme/else' }, ['a'.repeat(40)]],
    ['of an image the commit of the event', { kind: 'external_docker', imageUri: 'r.example/a:1' } as const, ['a'.repeat(40)]],
  ])('is %s', (_, source, refs) => {
    expect(refsOf(inputs({ source }), context)).toEqual(refs)
  })
})

describe('what a promotion records', () => {
  it('is the tag, whatever commit the event says', () => {
    const context = githubContext({ sha: SHA, eventName: 'release', ref: 'refs/tags/v1' })
    const repoUrl = 'https://github.com/acme/agents'
    const source = { kind: 'git_host', repoUrl, repoRef: 'refs/tags/v1', configPath: 'langgraph.json', commit: SHA } as const
    const promotion = {
      ...inputs({ source }),
      mode: 'promote',
      promote: { from: { name: 'staging' }, tag: 'refs/tags/v1' },
    } as const
    expect(refsOf(promotion, context)).toEqual(['v1', SHA])
  })
})

describe('what main leaves for post', () => {
  it.each(['', 'null', '{}', '[]', '{"environment":1}', '{'])('is nothing when it is %j', (text) => {
    expect(readOpenRecord(text)).toBeUndefined()
  })

  it('is read back', () => {
    const record: OpenRecord = {
      environment: 'e',
      step: 's',
      id: 7,
      end: { state: 'success', description: 'd', environmentUrl: 'https://x' },
    }
    expect(readOpenRecord(JSON.stringify(record))).toEqual(record)
  })
})

describe('the address of the run', () => {
  it('is that of the attempt, on the server of the runner', () => {
    const context = githubContext({ serverUrl: 'https://github.example.com', runId: '5', runAttempt: '2' })
    expect(runAddress(context)).toBe('https://github.example.com/acme/agents/actions/runs/5/attempts/2')
    expect(runAddress(githubContext({ runId: '' }))).toBeUndefined()
    expect(runAddress(githubContext({ serverUrl: 'file:///srv/git', runId: '5' }))).toBeUndefined()
  })
})
