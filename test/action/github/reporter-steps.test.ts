import { describe, expect, it } from 'vitest'
import type { GithubContext } from '../../../src/action/github/context.ts'
import { markerOf } from '../../../src/action/github/comment.ts'
import { GithubFailure } from '../../../src/action/github/failure.ts'
import type { Comment, DeploymentRecord, Github } from '../../../src/action/github/github.ts'
import { payloadOf } from '../../../src/action/github/proof.ts'
import { createReporter, type Reporter } from '../../../src/action/github/reporter.ts'
import type { StepInputs } from '../../../src/action/inputs.ts'
import type { Status } from '../../../src/action/registry.ts'
import { ActionFailure } from '../../../src/action/report/error-codes.ts'
import { deadlineOf } from '../../../src/client/deadline.ts'
import { httpFailure } from '../../support/request-failure.ts'
import { fakeDeps, inputs } from '../support/deps.ts'
import { githubContext } from '../support/github.ts'

const NO_RECORD = 'The step goes on, and the deployments page of GitHub does not tell of it.'
const NO_COMMENT = 'The step is not affected; the pull request has no up-to-date comment.'
const TASK = 'deploy:agent-server'
const LOG_URL = 'https://github.com/acme/agents/actions/runs/1/attempts/1'
const PULL = { eventName: 'pull_request', payload: { pull_request: { number: 7 } } }
const FORK = {
  eventName: 'pull_request',
  payload: { pull_request: { number: 7, head: { ref: 'x', sha: 'b'.repeat(40), repo: { full_name: 'mallory/agents' } } } },
}
const MADE: DeploymentRecord = { id: 5, environment: 'staging', sha: 'x', ref: 'x', task: TASK, payload: null, createdAt: 5 }
const EARLIER: DeploymentRecord = {
  ...MADE,
  id: 4,
  payload: payloadOf({ deployment: 'agent', 'control-plane': 'https://control-plane.example.com', mode: 'deploy' }),
}

/** Modes whose inputs have no deployment. */
const NAMELESS: ReadonlySet<unknown> = new Set(['sweep', 'export'])

type Scene = {
  /** Over those of a deploy of `agent` with the environment `staging`. */
  changes?: Record<string, unknown>
  context?: Partial<GithubContext>
  connected?: boolean
  records?: DeploymentRecord[]
  comments?: Comment[]
  /** What each of them throws. */
  throws?: Partial<Record<keyof Github, unknown>>
}

function world({ changes, context, connected = true, records = [], comments = [], throws = {} }: Scene = {}) {
  const deps = fakeDeps()
  const calls: [keyof Github, unknown][] = []
  const limits: number[] = []
  const signals: AbortSignal[] = []
  const told = async (name: keyof Github, options: unknown, signal: AbortSignal): Promise<void> => {
    calls.push([name, options])
    limits.push((deadlineOf(signal) ?? Infinity) - deps.effects.now())
    signals.push(signal)
    if (name in throws) throw throws[name]
  }
  const github = {
    createDeployment: async (options, signal) => (await told('createDeployment', options, signal), MADE),
    createDeploymentStatus: (options, signal) => told('createDeploymentStatus', options, signal),
    listDeployments: async (options, signal) => (await told('listDeployments', options, signal), records),
    listDeploymentStatuses: async (id, signal) => {
      await told('listDeploymentStatuses', id, signal)
      return [{ state: 'success', description: '', createdAt: 0 }]
    },
    listComments: async (number, signal) => (await told('listComments', number, signal), [...comments]),
    viewer: async (signal) => (await told('viewer', undefined, signal), { login: 'app', isBot: true }),
    createComment: async (number, body, signal) => {
      await told('createComment', [number, body], signal)
      const comment = { id: 9, body, author: 'app[bot]', authorIsBot: true, url: 'https://c/9' }
      comments.push(comment)
      return comment
    },
    updateComment: (id, body, signal) => told('updateComment', [id, body], signal),
  } satisfies Partial<Github> as Partial<Github> as Github
  const all = { ...deps, context: githubContext(context), github: connected ? github : undefined }
  const { target, ...rest } = inputs({ environment: 'staging' })
  const named = NAMELESS.has(changes?.['mode']) ? {} : { target }
  const wish = { ...rest, ...named, ...changes } as unknown as StepInputs
  const reporter: Reporter = createReporter(wish, all, () => 'the-step')
  const of = (name: keyof Github): unknown[] => calls.flatMap(([called, options]) => (called === name ? [options] : []))
  return { deps, reporter, calls, limits, signals, of }
}

const failed = (code: ActionFailure['code'], status?: Status): { failure: ActionFailure } => ({
  failure: new ActionFailure({ code, happened: 'It failed.', ...(status === undefined ? {} : { status }) }),
})

const refusal = (status: number): GithubFailure =>
  new GithubFailure({ operation: 'asking', request: httpFailure(status, { path: '/x', detail: 'No.' }), permission: null })

const own = (text: string, key = 'staging'): Comment => ({
  id: 3,
  body: `${markerOf(key)}\n${text}`,
  author: 'app[bot]',
  authorIsBot: true,
  url: 'https://c/3',
})

describe('the begin of a step', () => {
  const PAYLOAD = { deployment: 'agent', 'control-plane': 'https://control-plane.example.com', mode: 'deploy' }

  it.each([
    ['a deploy', {}, {}, PAYLOAD, false],
    ['a deploy for a pull request', {}, PULL, { ...PAYLOAD, 'pull-request': 7 }, false],
    ['a deploy by id', { target: { id: 'the-id' } }, {}, { ...PAYLOAD, deployment: 'the-id', 'deployment-id': 'the-id' }, false],
    [
      'a preview',
      { mode: 'preview', preview: { pullRequest: 8 } },
      PULL,
      { ...PAYLOAD, mode: 'preview', 'pull-request': 8 },
      true,
    ],
    ['a promotion', { mode: 'promote' }, {}, { ...PAYLOAD, mode: 'promote' }, false],
  ])('of %s opens a record', async (_, changes, context, payload, transient) => {
    const { deps, reporter, of, limits } = world({ changes, context })
    await reporter.begin()
    expect(of('createDeployment')).toMatchObject([
      {
        environment: 'staging',
        task: TASK,
        description: `Deploying ${payload.deployment}`,
        payload: { 'deploy-agent-server': { ...payload, step: 'the-step' } },
        transient,
      },
    ])
    expect((of('createDeployment')[0] as { payload: unknown }).payload).toStrictEqual(payloadOf({ ...payload, step: 'the-step' }))
    expect(of('createDeploymentStatus')).toMatchObject([{ deploymentId: 5, state: 'in_progress', logUrl: LOG_URL }])
    expect(limits).toEqual([8000, 8000])
    expect(deps.state['deploymentRecord']).toBe('{"environment":"staging","step":"the-step","id":5}')
    expect([deps.lines, deps.warnings]).toEqual([[], []])
  })

  it.each([
    ['without an environment', { environment: undefined }],
    ['of a dry run', { dryRun: true }],
    ['of a teardown', { mode: 'teardown', preview: { pullRequest: 7 } }],
    ['of a sweep', { mode: 'sweep' }],
    ['of an export', { mode: 'export', export: { projectId: 'p' } }],
  ])('%s opens none', async (_, changes) => {
    const { deps, reporter, calls } = world({ changes })
    await reporter.begin()
    expect([calls, deps.lines, deps.warnings, deps.state]).toEqual([[], [], [], {}])
  })

  it.each([
    [{}, true],
    [{ mode: 'teardown', preview: { pullRequest: 7 } }, true],
    [{ environment: undefined }, false],
    [{ dryRun: true }, false],
    [{ mode: 'sweep' }, false],
    [{ mode: 'export', export: { projectId: 'p' } }, false],
  ])('without GitHub, with %j, warns: %s', async (changes, warns) => {
    const { deps, reporter } = world({ changes, connected: false })
    await reporter.begin()
    await reporter.end({ status: 'deployed' })
    const warning = `environment is set, and there is no github-token or repository: ${NO_RECORD}`
    expect([deps.warnings, deps.lines]).toEqual([warns ? [warning] : [], []])
  })

  it.each([
    [{ comment: true }, {}, 'push'],
    [{ comment: true }, { eventName: '' }, '(none)'],
    [{ comment: true }, PULL, undefined],
    [{ comment: true, dryRun: true }, {}, undefined],
    [{ comment: false }, {}, undefined],
    [{}, {}, undefined],
  ])('with %j and the context %j tells that there is no pull request: %s', async (changes, context, event) => {
    const { deps, reporter } = world({ changes, context })
    await reporter.begin()
    const line = `comment is true, and the event ${event} names no pull request: there is nothing to comment on.`
    expect(deps.lines).toEqual(event === undefined ? [] : [line])
  })
})

describe('the end of a record', () => {
  const R1 = { 'revision-id': 'r1', 'deployment-url': 'https://agent.example.com' }
  const served = (address: string | undefined, description = 'Revision r1 serves') => ({
    state: 'success',
    description,
    ...(address === undefined ? {} : { environmentUrl: address }),
  })

  it.each([
    ['deployed', { status: 'deployed' }, R1, {}, served('https://agent.example.com')],
    ['deployed, over http', { status: 'deployed' }, { ...R1, 'deployment-url': 'HTTP://a' }, {}, served('HTTP://a')],
    ['deployed, nowhere', { status: 'deployed' }, { 'revision-id': 'r1' }, {}, served(undefined)],
    ['deployed, elsewhere', { status: 'deployed' }, { ...R1, 'deployment-url': 'ftp://a' }, {}, served(undefined)],
    ['deployed, at no address', { status: 'deployed' }, { ...R1, 'deployment-url': 'x https://a' }, {}, served(undefined)],
    [
      'deployed, in secret',
      { status: 'deployed' },
      { ...R1, 'deployment-url': 'https://key-of-the-test' },
      {},
      served(undefined),
    ],
    [
      'deployed and tested',
      { status: 'deployed' },
      { ...R1, 'smoke-test': 'passed' },
      {},
      served('https://agent.example.com', 'Revision r1 serves; smoke test passed'),
    ],
    [
      'deployed, and tested in vain',
      { status: 'deployed' },
      { ...R1, 'smoke-test': 'failed' },
      {},
      served('https://agent.example.com'),
    ],
    [
      'deployed without a wait',
      { status: 'deployed' },
      R1,
      { wait: false },
      served('https://agent.example.com', 'Revision r1 was accepted; its end was not awaited'),
    ],
    ['unchanged, without a wait', { status: 'unchanged' }, R1, { wait: false }, served('https://agent.example.com')],
    ['deployed as nobody knows what', { status: 'deployed' }, {}, {}, served(undefined, 'Revision  serves')],
    [
      'accepted as nobody knows what',
      { status: 'deployed' },
      {},
      { wait: false },
      served(undefined, 'Revision  was accepted; its end was not awaited'),
    ],
    ['removed', { status: 'removed' }, R1, {}, { state: 'inactive', description: 'The preview was removed' }],
    ['planned', { status: 'planned' }, R1, {}, { state: 'inactive', description: 'The step ended as planned' }],
    [
      'failed before there was a revision',
      failed('E_BUILD_FAILED'),
      {},
      {},
      { state: 'failure', description: 'E_BUILD_FAILED, build failed' },
    ],
    ['failed', failed('E_BUILD_FAILED'), R1, {}, { state: 'failure', description: 'Revision r1: E_BUILD_FAILED, build failed' }],
    ['timed out', failed('E_TIMEOUT'), R1, {}, { state: 'error', description: 'Revision r1: E_TIMEOUT, timed out' }],
    ['cancelled', failed('E_CANCELLED'), R1, {}, { state: 'error', description: 'Revision r1: E_CANCELLED, cancelled' }],
    ['superseded', failed('E_SUPERSEDED'), R1, {}, { state: 'inactive', description: 'Revision r1: E_SUPERSEDED, superseded' }],
    [
      'rolled back',
      failed('E_SMOKE_TEST', 'rolled-back'),
      R1,
      {},
      { state: 'failure', description: 'E_SMOKE_TEST, smoke test failed; rolled back to revision r1' },
    ],
    [
      'rolled back to nobody knows what',
      failed('E_SMOKE_TEST', 'rolled-back'),
      {},
      {},
      { state: 'failure', description: 'E_SMOKE_TEST, smoke test failed; rolled back to revision ' },
    ],
  ] as [string, Parameters<Reporter['end']>[0], Record<string, string>, Record<string, unknown>, Record<string, string>][])(
    'of a step that is %s',
    async (_, outcome, outputs, changes, expected) => {
      const { deps, reporter, of, limits } = world({ changes })
      for (const [name, value] of Object.entries(outputs)) deps.journal.set(name as 'revision-id', value)
      await reporter.begin()
      await reporter.end(outcome)
      const status = { deploymentId: 5, autoInactive: false, logUrl: LOG_URL, ...expected }
      expect(of('createDeploymentStatus').at(1)).toStrictEqual(status)
      expect(limits.slice(2).every((limit) => limit === 15_000)).toBe(true)
      expect(deps.state['deploymentRecord']).toBe('')
    },
  )

  it('after a rollback that failed is about the revision that failed', async () => {
    const { deps, reporter, of } = world()
    deps.journal.set('revision-id', 'r1')
    const report = { status: undefined, commit: undefined, transitions: [], smokeTest: undefined, logTail: undefined }
    deps.journal.setRollback({ ...report, failedRevisionId: 'r2', goodRevisionId: 'r1', revisionId: undefined })
    await reporter.begin()
    await reporter.end(failed('E_SMOKE_TEST'))
    expect(of('createDeploymentStatus').at(-1)).toMatchObject({ description: 'Revision r2: E_SMOKE_TEST, smoke test failed' })
  })

  it('retires what it replaces', async () => {
    const records = [{ ...EARLIER, id: 6 }, { ...EARLIER, id: 5 }, EARLIER]
    const { deps, reporter, of } = world({ records })
    await reporter.begin()
    await reporter.end({ status: 'deployed' })
    expect(of('listDeployments')).toStrictEqual([{ environment: 'staging', task: TASK, max: 20 }])
    expect(of('createDeploymentStatus').slice(2)).toStrictEqual([
      { deploymentId: 4, state: 'inactive', description: 'A later revision serves', autoInactive: false },
    ])
    expect([deps.lines, deps.warnings]).toEqual([[], []])
  })

  it.each([
    ['it is not a success', {}, failed('E_BUILD_FAILED')],
    ['it is a dry run', { dryRun: true }, { status: 'deployed' }],
  ] as [string, Record<string, unknown>, Parameters<Reporter['end']>[0]][])(
    'retires nothing where %s',
    async (_, changes, outcome) => {
      const { reporter, of } = world({ changes, records: [EARLIER] })
      await reporter.begin()
      await reporter.end(outcome)
      expect(of('listDeployments')).toEqual([])
    },
  )

  it('is left to post where GitHub does not take it', async () => {
    const { deps, reporter, of } = world({ records: [EARLIER], throws: { createDeploymentStatus: new Error('a mistake.') } })
    deps.journal.set('revision-id', 'r1')
    await reporter.begin()
    await reporter.deployed('deployed')
    await reporter.end(failed('E_EXPORT_FAILED'))
    expect(deps.warnings).toEqual([`environment: a mistake. ${NO_RECORD}`])
    expect(of('createDeploymentStatus')).toHaveLength(1)
    expect(of('listDeployments')).toEqual([])
    expect(JSON.parse(deps.state['deploymentRecord'] ?? '')).toEqual({
      environment: 'staging',
      step: 'the-step',
      id: 5,
      end: { state: 'success', description: 'Revision r1 serves' },
    })
  })
})

describe('a preview that is removed', () => {
  const REMOVED = 'The preview was removed'
  const teardown = { mode: 'teardown', preview: { pullRequest: 7 } }

  it('has no active record in its environment', async () => {
    const { reporter, of } = world({ changes: teardown, records: [EARLIER] })
    await reporter.end({ status: 'removed' })
    expect(of('listDeployments')).toStrictEqual([{ environment: 'staging', task: TASK, max: 100 }])
    expect(of('createDeploymentStatus')).toStrictEqual([
      { deploymentId: 4, state: 'inactive', description: REMOVED, autoInactive: false },
    ])
  })

  it.each([
    [{ ...teardown, environment: undefined }, 'removed'],
    [{ ...teardown, dryRun: true }, 'removed'],
    [teardown, 'planned'],
  ] as [Record<string, unknown>, Status][])('is not told of with %j, %s', async (changes, status) => {
    const { reporter, of } = world({ changes, records: [EARLIER] })
    await reporter.end({ status })
    expect([of('listDeployments'), of('createDeploymentStatus')]).toEqual([[], []])
  })

  const swept = (verdict: 'removed' | 'kept' | 'failed', name: string) => ({ name, pullRequest: 7, verdict, why: 'x' })

  it('by a sweep has none in any', async () => {
    const named = (id: number, deployment: string): DeploymentRecord => ({
      ...MADE,
      id,
      payload: payloadOf({ deployment, 'control-plane': 'x', mode: 'preview' }),
    })
    const records = [named(3, 'agent-pr-1'), named(2, 'agent-pr-2'), named(1, 'agent-pr-3')]
    const { deps, reporter, of } = world({ changes: { mode: 'sweep', environment: undefined }, records })
    deps.journal.setSweep([swept('removed', 'agent-pr-1'), swept('kept', 'agent-pr-2'), swept('failed', 'agent-pr-3')])
    await reporter.end({ status: 'removed' })
    expect(of('listDeployments')).toStrictEqual([{ task: TASK, max: 100 }])
    expect(of('createDeploymentStatus')).toStrictEqual([
      { deploymentId: 3, state: 'inactive', description: REMOVED, autoInactive: false },
    ])
  })

  it('by a sweep is told in a line where GitHub does not take it', async () => {
    const { deps, reporter } = world({
      changes: { mode: 'sweep', environment: undefined },
      throws: { listDeployments: 'words.' },
    })
    deps.journal.setSweep([swept('removed', 'agent-pr-1')])
    await reporter.end({ status: 'removed' })
    expect([deps.lines, deps.warnings]).toEqual([[`environment: words. ${NO_RECORD}`], []])
  })

  it('by nobody is not asked for', async () => {
    const { deps, reporter, calls } = world({ changes: { mode: 'sweep', environment: undefined } })
    deps.journal.setSweep([swept('kept', 'agent-pr-1')])
    await reporter.end({ status: 'removed' })
    expect(calls).toEqual([])
  })
})

describe('the comment of a step', () => {
  const plain = { environment: undefined }

  it.each([
    ['the environment', {}, PULL, 7, 'staging'],
    ['the deployment', plain, PULL, 7, 'agent'],
    ['the id', { ...plain, target: { id: 'the-id' } }, PULL, 7, 'the-id'],
    ['the pull request of a preview', { mode: 'preview', preview: { pullRequest: 8 } }, PULL, 8, 'staging'],
    ['an export', { mode: 'export', comment: true, export: { projectId: 'p' } }, PULL, 7, 'export p'],
    ['a wish for it', { comment: true }, PULL, 7, 'staging'],
  ])('is that of %s', async (_, changes, context, number, key) => {
    const { deps, reporter, of, limits } = world({ changes, context })
    await reporter.end({ status: 'deployed' })
    expect(of('createComment')).toMatchObject([[number, expect.stringContaining(`${markerOf(key)}\n<!-- started: `)]])
    expect(JSON.stringify(of('createComment'))).toContain(LOG_URL)
    expect(deps.lines).toEqual([`The comment on the pull request ${number} was created.`])
    expect(limits.every((limit) => limit === 15_000)).toBe(true)
  })

  it.each([
    ['no pull request', {}, {}],
    ['no wish', { comment: false }, PULL],
    ['a dry run', { dryRun: true, comment: true }, PULL],
    ['a sweep', { mode: 'sweep', comment: true }, PULL],
    ['an export that says nothing of it', { mode: 'export', export: { projectId: 'p' } }, PULL],
  ])('is none with %s', async (_, changes, context) => {
    const { reporter, calls } = world({ changes: { ...plain, ...changes }, context })
    await reporter.end({ status: 'deployed' })
    expect(calls).toEqual([])
  })

  it.each([
    [{ status: 'removed' }, false],
    [{ status: 'skipped' }, false],
    [failed('E_CANCELLED'), false],
    [failed('E_SUPERSEDED'), false],
    [{ status: 'unchanged' }, true],
    [failed('E_TIMEOUT'), true],
    [failed('E_BUILD_FAILED'), true],
  ] as [Parameters<Reporter['end']>[0], boolean][])('is begun: %#', async (outcome, begun) => {
    const { reporter, of } = world({ changes: plain, context: PULL })
    await reporter.end(outcome)
    expect(of('createComment')).toHaveLength(begun ? 1 : 0)
  })

  it.each([
    [{ status: 'skipped' }, 1, false],
    [{ status: 'skipped' }, 0, true],
    [failed('E_CANCELLED'), 1, false],
    [failed('E_SUPERSEDED'), 1, false],
    [{ status: 'removed' }, 1, true],
    [{ status: 'deployed' }, 1, true],
  ] as [Parameters<Reporter['end']>[0], number, boolean][])('takes the place of another: %#', async (outcome, later, updated) => {
    const started = fakeDeps().journal.startedAt + later
    const comments = [own(`<!-- started: ${started} -->\nanother`)]
    const { deps, reporter, of } = world({ context: PULL, comments })
    await reporter.end(outcome)
    expect(of('updateComment')).toHaveLength(updated ? 1 : 0)
    expect(deps.lines).toEqual(updated ? ['The comment on the pull request 7 was updated.'] : [])
  })

  it('takes the place of one that does not say when it was begun', async () => {
    const { reporter, of } = world({ context: PULL, comments: [own('another')] })
    await reporter.end({ status: 'skipped' })
    expect(of('updateComment')).toHaveLength(1)
  })

  it('that is the same is not told of', async () => {
    const { deps, reporter } = world({ changes: plain, context: PULL })
    await reporter.end({ status: 'deployed' })
    await reporter.end({ status: 'deployed' })
    expect(deps.lines).toEqual(['The comment on the pull request 7 was created.'])
  })
})

describe('trouble with GitHub', () => {
  const WHY = 'comment: asking failed: GET /x answered 403: No. '
  const told = `${WHY}${NO_COMMENT}`

  it.each([
    ['a fork that may not', FORK, {}, refusal(403), [told], []],
    ['a fork that was told to', FORK, { comment: true }, refusal(403), [], [told]],
    ['one of this repository', PULL, {}, refusal(403), [], [told]],
    ['a fork, when GitHub is away', FORK, {}, refusal(502), [], [told.replace('403', '502')]],
    ['a fork, by a mistake', FORK, {}, new Error('a mistake. Two.'), [], [`comment: a mistake. Two. ${NO_COMMENT}`]],
    ['a fork, by words', FORK, {}, 'words.', [], [`comment: words. ${NO_COMMENT}`]],
  ])('about a comment of %s', async (_, context, changes, error, lines, warnings) => {
    const { deps, reporter, of } = world({
      changes: { environment: undefined, ...changes },
      context,
      throws: { listComments: error },
    })
    await reporter.deployed('deployed')
    await reporter.end({ status: 'deployed' })
    expect([deps.lines, deps.warnings]).toEqual([lines, warnings])
    expect(of('listComments')).toHaveLength(1)
  })

  it('about a record of a fork is a warning', async () => {
    const { deps, reporter, of } = world({ context: FORK, throws: { createDeployment: refusal(403) } })
    await reporter.begin()
    await reporter.end({ status: 'deployed' })
    expect(deps.warnings).toEqual([`environment: asking failed: GET /x answered 403: No. ${NO_RECORD}`])
    expect(of('createComment')).toHaveLength(1)
    expect(deps.state['deploymentRecord']).toBe('')
  })

  it('is a line to a step that was cancelled, which waits two seconds for it', async () => {
    const { deps, reporter, signals } = world({ throws: { createDeploymentStatus: refusal(502) } })
    deps.abort()
    await reporter.begin()
    expect([deps.lines, deps.warnings]).toEqual([[`environment: asking failed: GET /x answered 502: No. ${NO_RECORD}`], []])
    expect(deps.effects.slept).toEqual([2000])
    expect(signals).toHaveLength(2)
  })
})
