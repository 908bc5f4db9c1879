import { describe, expect, it } from 'vitest'
import type { Deps } from '../../../src/action/deps.ts'
import { markerOf } from '../../../src/action/github/comment.ts'
import { createReporter, type Reporter } from '../../../src/action/github/reporter.ts'
import type { DeployInputs, StepInputs, TeardownInputs } from '../../../src/action/inputs.ts'
import { ActionFailure } from '../../../src/action/report/error-codes.ts'
import { realEffects } from '../../../src/client/effects.ts'
import { workflowEvent } from '../../support/events.ts'
import { ACTIONS_BOT, type GithubDoubleOptions, githubFaults, stateOf } from '../../support/github-double.ts'
import { NEW_REVISION_ID } from '../support/answers.ts'
import { fakeDeps, inputs, type TestDeps } from '../support/deps.ts'
import { githubContext } from '../support/github.ts'
import { type Connected, withGithub } from './support.ts'

type World = Connected & {
  deps: TestDeps & Deps
  reporter: (changes?: Partial<DeployInputs>, mode?: Partial<StepInputs>) => Reporter
}

const CONTEXT = githubContext({
  eventName: 'pull_request',
  payload: workflowEvent('pull-request').payload as Record<string, unknown>,
})

const withWorld = (options: GithubDoubleOptions, body: (world: World) => Promise<void>): Promise<void> =>
  withGithub(options, async (connected) => {
    connected.double.addPullRequest({ number: 7 })
    const deps = {
      ...fakeDeps(),
      github: connected.github,
      context: CONTEXT,
      effects: { ...realEffects, slept: [], advance: () => undefined },
    }
    for (const [name, value] of [
      ['deployment-name', 'agent'],
      ['revision-id', NEW_REVISION_ID],
      ['deployment-url', 'https://agent.example.com'],
    ] as const)
      deps.journal.set(name, value)
    const reporter: World['reporter'] = (changes, mode) =>
      createReporter({ ...inputs({ environment: 'staging', ...changes }), ...mode } as StepInputs, deps)
    await body({ ...connected, deps, reporter })
  })

const failureWith = (code: ActionFailure['code']): { failure: ActionFailure } => ({
  failure: new ActionFailure({ code, happened: 'It failed.' }),
})

function rolledBack(): { failure: ActionFailure } {
  return { failure: new ActionFailure({ code: 'E_SMOKE_TEST', happened: 'It failed.', status: 'rolled-back' }) }
}

describe.concurrent('the end of a record', () => {
  it.each([
    ['deployed', { status: 'deployed' }, 'success', `Revision ${NEW_REVISION_ID} serves`],
    ['unchanged', { status: 'unchanged' }, 'success', `Revision ${NEW_REVISION_ID} serves`],
    ['failed', failureWith('E_DEPLOY_FAILED'), 'failure', `Revision ${NEW_REVISION_ID}: E_DEPLOY_FAILED, deploy failed`],
    ['timed out', failureWith('E_TIMEOUT'), 'error', `Revision ${NEW_REVISION_ID}: E_TIMEOUT, timed out`],
    ['cancelled', failureWith('E_CANCELLED'), 'error', `Revision ${NEW_REVISION_ID}: E_CANCELLED, cancelled`],
    ['rolled back', rolledBack(), 'failure', `E_SMOKE_TEST, smoke test failed; rolled back to revision ${NEW_REVISION_ID}`],
    ['superseded', failureWith('E_SUPERSEDED'), 'inactive', `Revision ${NEW_REVISION_ID}: E_SUPERSEDED, superseded`],
    ['removed', { status: 'removed' }, 'inactive', 'The preview was removed'],
    ['skipped', { status: 'skipped' }, 'inactive', 'The step ended as skipped'],
  ] as const)('of a step that is %s', (_, outcome, state, description) =>
    withWorld({}, async ({ double, deps, reporter }) => {
      const { begin, end } = reporter()
      await begin()
      expect(JSON.parse(deps.state['deploymentRecord'] ?? '')).toMatchObject({
        environment: 'staging',
        id: double.state.deployments[0]?.id,
      })
      await end(outcome)
      const [record] = double.state.deployments
      const environmentUrl = state === 'success' ? 'https://agent.example.com' : ''
      expect(record?.statuses).toMatchObject([{ state: 'in_progress' }, { state, description, environmentUrl }])
      expect(deps.state['deploymentRecord']).toBe('')
      expect(deps.warnings).toEqual([])
    }),
  )

  it('does not claim that anything serves when nobody waited for it', () =>
    withWorld({}, async ({ double, reporter }) => {
      const { begin, end } = reporter({ wait: false })
      await begin()
      await end({ status: 'deployed' })
      expect(double.state.deployments[0]?.statuses.at(-1)?.description).toBe(
        `Revision ${NEW_REVISION_ID} was accepted; its end was not awaited`,
      )
    }))

  it('is that of the deploy, whatever becomes of the export after it', () =>
    withWorld({}, async ({ double, reporter }) => {
      const { begin, deployed, end } = reporter()
      await begin()
      await deployed('deployed')
      expect(double.state.deployments.map(stateOf)).toEqual(['success'])
      await end(failureWith('E_EXPORT_FAILED'))
      expect(double.state.deployments[0]?.statuses.map(({ state }) => state)).toEqual(['in_progress', 'success'])
      expect(double.state.comments).toMatchObject([{ edits: 1 }])
      expect(double.state.comments[0]?.body).toContain('E_EXPORT_FAILED')
    }))

  it('keeps an address with a secret in it to itself', () =>
    withWorld({}, async ({ double, deps, reporter }) => {
      deps.journal.set('deployment-url', 'https://agent.example.com/key-of-the-test')
      const { begin, end } = reporter()
      await begin()
      await end({ status: 'deployed' })
      expect(JSON.stringify(double.state)).not.toContain('key-of-the-test')
    }))
})

describe.concurrent('previews', () => {
  const preview = {
    baseName: 'agent',
    pullRequest: 7,
    eventState: 'open',
    closing: false,
  } as unknown as TeardownInputs['preview']
  const target = { name: 'agent-pr-7' }

  it('are transient, and their records inactive once they are removed', () =>
    withWorld({}, async ({ double, reporter }) => {
      for (let push = 0; push < 2; push++) {
        const { begin, end } = reporter({ target }, { mode: 'preview', preview } as Partial<StepInputs>)
        await begin()
        await end(push === 0 ? { status: 'deployed' } : failureWith('E_BUILD_FAILED'))
      }
      expect(double.state.deployments.map((record) => [record.transient, stateOf(record)])).toEqual([
        [true, 'success'],
        [true, 'failure'],
      ])
      const { begin, end } = reporter({ target }, { mode: 'teardown', preview } as Partial<StepInputs>)
      await begin()
      await end({ status: 'removed' })
      expect(double.state.deployments.map(stateOf)).toEqual(['inactive', 'inactive'])
      expect(double.state.comments).toHaveLength(1)
      expect(double.state.comments[0]?.body).toContain('Removed')
    }))

  it('that a sweep removes have no active record in any environment', () =>
    withWorld({}, async ({ double, deps, reporter }) => {
      const { begin, end } = reporter({ target, environment: 'preview-7' }, { mode: 'preview', preview } as Partial<StepInputs>)
      await begin()
      await end({ status: 'deployed' })
      const verdicts = [{ name: 'agent-pr-7', pullRequest: 7, verdict: 'removed', why: 'it is closed' }] as const
      deps.journal.setSweep(verdicts)
      const { target: _, environment: __, ...rest } = inputs()
      await createReporter({ ...rest, mode: 'sweep' } as unknown as StepInputs, deps).end({ status: 'removed' })
      expect(double.state.deployments.map(stateOf)).toEqual(['inactive'])
    }))
})

describe.concurrent('the comment of a step', () => {
  it.each([['E_CANCELLED'], ['E_SUPERSEDED']] as const)(
    'that ended with %s is not begun, and takes nothing from a newer one',
    (code) =>
      withWorld({}, async ({ double, deps, reporter }) => {
        await reporter().end(failureWith(code))
        expect(double.state.comments).toEqual([])
        const newer = `${markerOf('staging')}\n<!-- started: ${deps.journal.startedAt + 1} -->\nnewer`
        double.addComment({ pullRequest: 7, author: ACTIONS_BOT, body: newer })
        await reporter().end(failureWith(code))
        expect(double.state.comments).toMatchObject([{ body: newer }])
        const older = newer.replace(/\d+ -->/, `${deps.journal.startedAt - 1} -->`)
        Object.assign(double.state.comments[0] ?? {}, { body: older })
        await reporter().end(failureWith(code))
        expect(double.state.comments[0]?.body).toContain(code)
      }),
  )

  it('is that of the deployment where there is no environment', () =>
    withWorld({}, async ({ double, reporter }) => {
      await createReporterWithout(reporter).end({ status: 'deployed' })
      expect(double.state.comments[0]?.body.startsWith(markerOf('agent'))).toBe(true)
      expect(double.requestsOf('repos/create-deployment')).toEqual([])
    }))
})

/** A reporter of a step without an environment. */
function createReporterWithout(reporter: World['reporter']): Reporter {
  return reporter({}, { environment: undefined } as unknown as Partial<StepInputs>)
}

describe.concurrent('trouble', () => {
  it('is told once for each of the two, and costs nothing more', () =>
    withWorld({ permissions: { deployments: 'none', 'pull-requests': 'none' } }, async ({ double, deps, reporter }) => {
      const { begin, deployed, end } = reporter()
      await begin()
      await deployed('deployed')
      await end({ status: 'deployed' })
      expect(deps.warnings).toEqual([
        expect.stringMatching(/^environment: .*"deployments: write"/),
        expect.stringMatching(/^comment: .*"pull-requests: /),
      ])
      expect(double.requests).toHaveLength(2)
      expect(deps.state['deploymentRecord']).toBe('')
    }))

  it('leaves for post what GitHub did not take', () =>
    withWorld({}, async ({ double, deps, reporter }) => {
      const { begin, end } = reporter()
      await begin()
      double.on({ method: 'POST', path: /statuses$/, times: 5 }, githubFaults.badGateway)
      await end({ status: 'deployed' })
      expect(JSON.parse(deps.state['deploymentRecord'] ?? '')).toMatchObject({ end: { state: 'success' } })
      expect(deps.warnings).toEqual([expect.stringContaining('answered 502 (tried 5 times)')])
    }))

  it('leaves for post the end of the deploy, not that of the export after it', () =>
    withWorld({}, async ({ double, deps, reporter }) => {
      const { begin, deployed, end } = reporter()
      await begin()
      double.on({ method: 'POST', path: /statuses$/, times: 5 }, githubFaults.badGateway)
      await deployed('deployed')
      await end(failureWith('E_EXPORT_FAILED'))
      const left: unknown = JSON.parse(deps.state['deploymentRecord'] ?? '')
      expect(left).toMatchObject({ end: { state: 'success', description: `Revision ${NEW_REVISION_ID} serves` } })
    }))

  it('is nothing to a cancelled step but a line', () =>
    withWorld({}, async ({ double, deps, reporter }) => {
      const { begin, end } = reporter()
      await begin()
      double.on({ times: Infinity }, { kind: 'silence' })
      deps.abort()
      await end(failureWith('E_CANCELLED'))
      expect(deps.warnings).toEqual([])
      expect(deps.lines.some((line) => line.startsWith('environment: '))).toBe(true)
    }))

  it('changes nothing where nothing is to be told', () =>
    withWorld({}, async ({ double, reporter }) => {
      const { begin, end } = reporter({ dryRun: true })
      await begin()
      await end({ status: 'planned' })
      await createReporterWithout((changes, mode) => reporter({ ...changes, comment: false }, mode)).end({ status: 'deployed' })
      expect(double.requests).toEqual([])
    }))
})
