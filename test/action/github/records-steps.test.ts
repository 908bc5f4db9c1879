import { describe, expect, it } from 'vitest'
import type { GithubFailure } from '../../../src/action/github/failure.ts'
import type { DeploymentRecord, DeploymentRecordStatus, Github } from '../../../src/action/github/github.ts'
import { payloadOf } from '../../../src/action/github/proof.ts'
import {
  closeRecord,
  openRecord,
  type OpenRecord,
  readOpenRecord,
  refsOf,
  retireRecords,
  runAddress,
} from '../../../src/action/github/records.ts'
import type { FailureFields } from '../../../src/client/failure.ts'
import { requestFailure } from '../../support/request-failure.ts'
import { inputs } from '../support/deps.ts'
import { githubContext } from '../support/github.ts'
import { githubFailure } from './support.ts'

const { signal } = new AbortController()
const TASK = 'deploy:agent-server'
const FIELDS = { deployment: 'agent', 'control-plane': 'https://plane.example', mode: 'deploy' }

const failure = (status: number | null, changes: Partial<FailureFields> = {}): GithubFailure =>
  githubFailure(requestFailure({ kind: 'http', status, ...changes }))

const record = (id: number, changes: Record<string, unknown> = {}): DeploymentRecord => ({
  id,
  environment: 'staging',
  sha: 'c0ffee',
  ref: 'main',
  task: TASK,
  payload: payloadOf({ ...FIELDS, ...changes }),
  createdAt: id,
})

type Call = [keyof Github, unknown]

/** What was asked of GitHub, in order. */
function fakeGithub(
  answers: {
    /** By the reference: what is thrown instead of a record. */
    refuses?: Record<string, Error>
    status?: Error
    records?: DeploymentRecord[]
    statuses?: Record<number, DeploymentRecordStatus[]>
  } = {},
) {
  const calls: Call[] = []
  const note = (name: keyof Github, options: unknown, given: AbortSignal): void => {
    expect(given).toBe(signal)
    calls.push([name, options])
  }
  const github: Pick<Github, 'createDeployment' | 'createDeploymentStatus' | 'listDeployments' | 'listDeploymentStatuses'> = {
    createDeployment: async (options, given) => {
      note('createDeployment', options, given)
      const error = answers.refuses?.[options.ref]
      if (error !== undefined) throw error
      return record(5)
    },
    createDeploymentStatus: async (options, given) => {
      note('createDeploymentStatus', options, given)
      if (answers.status !== undefined) throw answers.status
    },
    listDeployments: async (options, given) => {
      note('listDeployments', options, given)
      return answers.records ?? []
    },
    listDeploymentStatuses: async (id, given) => {
      note('listDeploymentStatuses', id, given)
      return answers.statuses?.[id] ?? []
    },
  }
  return { github, calls }
}

describe('opening a record', () => {
  const options = {
    refs: ['one', 'two'],
    environment: 'staging',
    payload: { ...FIELDS, step: 'the-step' },
    transient: false,
    logUrl: undefined as string | undefined,
    signal,
  }
  const open = async (github: ReturnType<typeof fakeGithub>['github'], changes: Partial<typeof options> = {}) => {
    const told: (OpenRecord | undefined)[] = []
    const error = await openRecord({ github, ...options, ...changes, onOpen: (known) => void told.push(known) }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    return { told, error }
  }
  const OPEN = { environment: 'staging', step: 'the-step' }
  const CREATED = {
    ref: 'one',
    environment: 'staging',
    task: TASK,
    description: 'Deploying agent',
    payload: { 'deploy-agent-server': { ...FIELDS, step: 'the-step' } },
    transient: false,
    production: false,
  }
  const IN_PROGRESS = { deploymentId: 5, state: 'in_progress', description: 'Deploying agent', autoInactive: false }

  it.each([
    [undefined, {}],
    ['https://run', { logUrl: 'https://run' }],
  ])('makes it, and then its first status (%s)', async (logUrl, log) => {
    const { github, calls } = fakeGithub()
    expect(await open(github, { logUrl })).toEqual({ told: [OPEN, { ...OPEN, id: 5 }], error: undefined })
    expect(calls).toStrictEqual([
      ['createDeployment', CREATED],
      ['createDeploymentStatus', { ...IN_PROGRESS, ...log }],
    ])
  })

  it.each([
    ['prod', false, true],
    ['PRODUCTION', false, true],
    ['prod', true, false],
    ['prods', false, false],
    ['a-prod', false, false],
    ['production-2', false, false],
  ])('of %s (transient: %s) for production: %s', async (environment, transient, production) => {
    const { github, calls } = fakeGithub()
    await open(github, { environment, transient })
    expect(calls[0]).toMatchObject(['createDeployment', { environment, transient, production }])
  })

  it('takes the next reference where GitHub does not know the first', async () => {
    const { github, calls } = fakeGithub({ refuses: { one: failure(422) } })
    expect((await open(github)).error).toBeUndefined()
    expect(calls.map(([, asked]) => asked)).toMatchObject([{ ref: 'one' }, { ref: 'two' }, { deploymentId: 5 }])
  })

  it.each([
    ['the last is not known', { one: failure(422), two: failure(422) }, 'two', 2],
    ['the first is refused', { one: failure(403) }, 'one', 1],
  ])('ends where %s', async (_, refuses: Record<string, Error>, thrown, asked) => {
    const { github, calls } = fakeGithub({ refuses })
    expect(await open(github)).toEqual({ told: [OPEN, undefined], error: refuses[thrown] })
    expect(calls).toHaveLength(asked)
  })

  it('ends without a reference', async () => {
    const { github, calls } = fakeGithub()
    const error = new Error('the event names no commit that could be recorded')
    expect(await open(github, { refs: [] })).toEqual({ told: [OPEN], error })
    expect(calls).toEqual([])
  })

  it.each([
    ['may have been made', failure(502, { ambiguous: true })],
    ['was asked for in vain', failure(null, { kind: 'network' })],
    ['failed by a mistake', Object.assign(new Error('a mistake'), { status: 422 })],
  ])('leaves for later one that %s', async (_, error) => {
    const { github } = fakeGithub({ refuses: { one: error } })
    expect(await open(github)).toEqual({ told: [OPEN], error })
  })

  it('leaves for later one whose status was refused', async () => {
    const error = failure(422)
    expect(await open(fakeGithub({ status: error }).github)).toEqual({ told: [OPEN, { ...OPEN, id: 5 }], error })
  })
})

describe('closing a record', () => {
  const end = { state: 'success', description: 'done' } as const

  it.each([
    [{}, undefined, {}],
    [{ environmentUrl: 'https://a' }, 'https://run', { environmentUrl: 'https://a', logUrl: 'https://run' }],
  ])('sets its status (%j, %s)', async (addresses, logUrl, expected) => {
    const { github, calls } = fakeGithub()
    await closeRecord({ github, record: { environment: 'e', step: 's', id: 5 }, end: { ...end, ...addresses }, logUrl, signal })
    const status = { deploymentId: 5, state: 'success', description: 'done', autoInactive: false, ...expected }
    expect(calls).toStrictEqual([['createDeploymentStatus', status]])
  })

  it('looks for the one of its step', async () => {
    const records = [{ ...record(9), payload: null }, record(8), record(7, { step: 's' }), record(6, { step: 's' })]
    const { github, calls } = fakeGithub({ records })
    await closeRecord({ github, record: { environment: 'e', step: 's' }, end, logUrl: undefined, signal })
    await closeRecord({ github, record: { environment: 'e', step: 'another' }, end, logUrl: undefined, signal })
    const list = ['listDeployments', { environment: 'e', task: TASK, max: 20 }]
    const status = { deploymentId: 7, state: 'success', description: 'done', autoInactive: false }
    expect(calls).toStrictEqual([list, ['createDeploymentStatus', status], list])
  })
})

describe('retiring records', () => {
  const status = (state: DeploymentRecordStatus['state'], description = ''): DeploymentRecordStatus[] => [
    { state, description, createdAt: 1 },
    { state: 'success', description: '', createdAt: 0 },
  ]
  const deployments = new Set(['agent'])
  const retired = (calls: Call[]): unknown[] =>
    calls.flatMap(([name, options]) => (name === 'createDeploymentStatus' ? [options] : []))
  const inactive = (deploymentId: number) => ({ deploymentId, state: 'inactive', description: 'later', autoInactive: false })

  it('takes earlier successes of the deployment', async () => {
    const { github, calls } = fakeGithub({
      records: [
        record(9),
        record(8),
        record(7, { deployment: 'other' }),
        { ...record(6), payload: {} },
        record(5),
        record(4),
        record(3),
        record(2),
      ],
      statuses: { 9: status('success'), 5: status('failure'), 4: status('inactive', 'x'), 3: status('success') },
    })
    const options = { environment: 'staging', deployments, except: 8, all: false, description: 'later', signal }
    expect(await retireRecords({ github, ...options })).toBe(1)
    expect(calls[0]).toStrictEqual(['listDeployments', { environment: 'staging', task: TASK, max: 20 }])
    expect(calls.filter(([name]) => name === 'listDeploymentStatuses').map(([, id]) => id)).toEqual([5, 4, 3, 2])
    expect(retired(calls)).toStrictEqual([inactive(3)])
  })

  it('stops behind one that was retired', async () => {
    const records = [record(5), record(4), record(3)]
    const { github, calls } = fakeGithub({
      records,
      statuses: { 5: status('success'), 4: status('inactive', 'later'), 3: status('success') },
    })
    expect(await retireRecords({ github, deployments, all: false, description: 'later', signal })).toBe(1)
    expect(retired(calls)).toStrictEqual([inactive(5)])
  })

  it('takes all but those that are inactive, in every environment', async () => {
    const records = [record(5), record(4), record(3), record(2)]
    const { github, calls } = fakeGithub({
      records,
      statuses: { 5: status('failure'), 4: status('inactive', 'later'), 3: status('in_progress') },
    })
    expect(await retireRecords({ github, deployments, all: true, description: 'later', signal })).toBe(3)
    expect(calls[0]).toStrictEqual(['listDeployments', { task: TASK, max: 100 }])
    expect(retired(calls)).toStrictEqual([inactive(5), inactive(3), inactive(2)])
  })

  it('takes nothing where no deployment has a name', async () => {
    const { github, calls } = fakeGithub({ records: [{ ...record(5), payload: null }] })
    expect(await retireRecords({ github, deployments, all: true, description: 'later', signal })).toBe(0)
    expect(retired(calls)).toEqual([])
  })
})

describe('what main leaves for post', () => {
  const open = { environment: 'e', step: 's' }
  it.each([
    [open, true],
    [{ ...open, id: 7 }, true],
    [{ ...open, end: { state: 'error', description: 'd' } }, true],
    [{ ...open, id: 7, end: { state: 'error', description: 'd', environmentUrl: 'https://x' } }, true],
    [{ environment: 'e' }, false],
    [{ step: 's' }, false],
    [{ ...open, id: 7.5 }, false],
    [{ ...open, end: { state: 'error' } }, false],
    [{ ...open, end: { description: 'd' } }, false],
    [{ ...open, end: { state: 'error', description: 'd', environmentUrl: 7 } }, false],
  ])('is %j: %s', (left, taken) => {
    expect(readOpenRecord(JSON.stringify(left))).toEqual(taken ? left : undefined)
  })
})

describe('the address of the run', () => {
  it.each([
    [{ runAttempt: '' }, 'https://github.com/acme/agents/actions/runs/1'],
    [{ runId: '1 2', runAttempt: '3/4' }, 'https://github.com/acme/agents/actions/runs/1%202/attempts/3%2F4'],
    [{ serverUrl: 'HTTP://ghe.example' }, 'HTTP://ghe.example/acme/agents/actions/runs/1/attempts/1'],
    [{ runId: '' }, undefined],
    [{ repository: '' }, undefined],
    [{ serverUrl: 'ssh://https://x' }, undefined],
  ])('with %j is %s', (changes, address) => {
    expect(runAddress(githubContext(changes))).toBe(address)
  })
})

describe('what is recorded as deployed', () => {
  const EVENT = 'a'.repeat(40)
  const git = { kind: 'git_host', repoUrl: 'https://github.com/acme/agents', repoRef: 'refs/tags/v1', configPath: 'x' } as const

  it('is named once', () => {
    expect(refsOf(inputs({ source: { ...git, commit: EVENT } }), githubContext())).toEqual([EVENT])
  })

  it('is nothing where the event has no commit', () => {
    const elsewhere = { ...git, repoUrl: 'https://github.com/acme/else' }
    expect(refsOf(inputs({ source: elsewhere }), githubContext({ sha: '' }))).toEqual([])
    expect(refsOf(inputs({ source: git }), githubContext({ sha: '' }))).toEqual(['v1'])
    expect(refsOf(inputs({ source: elsewhere }), githubContext({ sha: 'short' }))).toEqual(['short'])
  })

  it('is a branch by its name, whatever is in it', () => {
    const source = { ...git, repoRef: 'x/refs/tags/v1' }
    expect(refsOf(inputs({ source }), githubContext())).toEqual(['x/refs/tags/v1', EVENT])
  })
})
