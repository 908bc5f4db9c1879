import { describe, expect, it } from 'vitest'
import { markerOf } from '../../src/action/github/comment.ts'
import { startConnectProxy } from '../client/support/connect-proxy.ts'
import { METADATA, says, startAgentDouble, steps } from '../support/agent-double.ts'
import { DOUBLE_COMMIT, type DoubleOptions, type ScriptStep } from '../support/control-plane-model.ts'
import { workflowEvent } from '../support/events.ts'
import {
  type GithubDouble,
  type GithubDoubleOptions,
  githubFaults,
  startGithubDouble,
  stateOf,
} from '../support/github-double.ts'
import { readable } from '../support/readable.ts'
import type { WorkflowEvent } from '../support/runner/job-environment.ts'
import type { RunOptions, RunResult } from '../support/runner.ts'
import { DEPLOYED, failed, type Scene, withScene } from '../support/scene.ts'

const QUICK: readonly ScriptStep[] = [['BUILDING'], ['DEPLOYED']]
/** The commit that the control plane builds. */
const HEAD = DOUBLE_COMMIT
const PULL_REQUEST = changed(workflowEvent('pull-request'), [['6113728f27ae82c7b1a177c8d03f9e96e0adf246', HEAD]])
const STAGING = { environment: 'staging' }

type Hub = Scene & {
  github: GithubDouble
  /** A step on the pull request 7 that deploys `echo-agent`. */
  step: (options?: Partial<RunOptions>) => Promise<RunResult>
}

/** A scene with GitHub in it, which knows the pull request 7. */
async function withHub(
  options: GithubDoubleOptions & { plane?: DoubleOptions },
  body: (hub: Hub) => Promise<void>,
): Promise<void> {
  const { plane = {}, ...rest } = options
  const github = await startGithubDouble(rest)
  github.addPullRequest({ number: 7, headSha: HEAD })
  try {
    await withScene({ script: QUICK, ...plane }, (scene) => {
      const step: Hub['step'] = ({ env, ...run } = {}) =>
        scene.run({ event: PULL_REQUEST, ...run, env: { ...github.env, ...env } })
      return body({ ...scene, github, step })
    })
  } finally {
    await github.stop()
  }
}

const warnings = (result: RunResult): string[] =>
  result.annotations.filter(({ level }) => level === 'warning').map(({ message }) => message)
const states = ({ state }: GithubDouble): string[][] =>
  state.deployments.map(({ statuses }) => statuses.map((status) => status.state))

describe.concurrent('a deploy on a pull request', () => {
  it('is recorded for its environment, and told in one comment that the next one brings up to date', () =>
    withHub({}, async ({ github, step, plane, flaws }) => {
      const first = await step({ with: STAGING })
      expect(await flaws(first, DEPLOYED)).toEqual([])
      expect(warnings(first)).toEqual([])
      expect(first.post?.annotations).toEqual([])
      const [record] = github.state.deployments
      expect(record).toMatchObject({
        environment: 'staging',
        ref: HEAD,
        sha: HEAD,
        task: 'deploy:agent-server',
        transient: false,
        production: false,
        payload: { 'deploy-agent-server': { deployment: 'echo-agent', mode: 'deploy', 'pull-request': 7 } },
      })
      const logUrl = 'https://github.com/acme/agents/actions/runs/30433642/attempts/1'
      expect(record?.statuses).toMatchObject([
        { state: 'in_progress', logUrl },
        {
          state: 'success',
          logUrl,
          environmentUrl: first.outputs['deployment-url'],
          description: `Revision ${first.outputs['revision-id']} serves`,
        },
      ])
      // It was there before anything was asked of the control plane.
      const createdAt = github.requestsOf('repos/create-deployment')[0]?.at ?? Infinity
      expect(createdAt).toBeLessThanOrEqual(plane.requests[0]?.at ?? 0)
      const [comment] = github.state.comments
      expect(comment?.author.login).toBe('github-actions[bot]')
      expect(comment?.body.startsWith(markerOf('staging'))).toBe(true)
      const text = readable(comment?.body ?? '')
      for (const part of ['✅ Deployed: echo-agent', first.outputs['revision-id'] ?? '-', HEAD.slice(0, 12), 'mermaid', logUrl])
        expect(text).toContain(part)

      const second = await step({ with: STAGING })
      expect(await flaws(second, DEPLOYED)).toEqual([])
      expect(github.state.comments).toHaveLength(1)
      expect(github.state.comments[0]).toMatchObject({ id: comment?.id, edits: 1 })
      expect(readable(github.state.comments[0]?.body ?? '')).toContain(second.outputs['revision-id'])
      expect(github.state.deployments.map(stateOf)).toEqual(['inactive', 'success'])
    }))

  it('proves that the smoke test has passed', async () => {
    const agent = await startAgentDouble({ runs: [steps.stream(METADATA, says('echo 1: ping'))] })
    const rewrite = (answer: unknown): unknown =>
      typeof answer === 'object' && answer !== null && 'url' in answer && answer.url !== null
        ? { ...answer, url: agent.url }
        : answer
    try {
      await withHub({ plane: { rewrite } }, async ({ github, step, flaws }) => {
        const test = { 'smoke-test-input': '{"messages": []}', 'smoke-test-assistant': 'agent' }
        const result = await step({ with: { ...STAGING, ...test } })
        expect(await flaws(result, DEPLOYED)).toEqual([])
        const description = `Revision ${result.outputs['revision-id']} serves; smoke test passed`
        expect(github.state.deployments[0]?.statuses.at(-1)).toMatchObject({ state: 'success', description })
        expect(readable(github.state.comments[0]?.body ?? '')).toContain('Smoke test: passed')
      })
    } finally {
      await agent.stop()
    }
  })

  it('that fails says so, with its code and where the help is', () =>
    withHub({ plane: { script: [['BUILDING'], ['BUILD_FAILED']] } }, async ({ github, step, flaws }) => {
      const result = await step({ with: STAGING, env: { GITHUB_ACTION_REPOSITORY: 'acme/deploy-agent-server' } })
      expect(await flaws(result, failed('E_BUILD_FAILED'))).toEqual([])
      const description = `Revision ${result.outputs['revision-id']}: E_BUILD_FAILED, build failed`
      expect(github.state.deployments[0]?.statuses.at(-1)).toMatchObject({ state: 'failure', description, environmentUrl: '' })
      const body = github.state.comments[0]?.body ?? ''
      expect(body).toContain(
        '<a href="https://github.com/acme/deploy-agent-server#e_build_failed"><code>E_BUILD_FAILED</code></a>',
      )
      expect(body).toContain('❌ Build failed')
    }))

  it('works with a GitHub Enterprise Server', () =>
    withHub({ prefix: '/api/v3' }, async ({ github, step, flaws }) => {
      const env = { GITHUB_SERVER_URL: 'https://github.example.com' }
      const result = await step({ with: { ...STAGING, 'repo-url': 'https://github.example.com/acme/agents' }, env })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(stateOf(github.state.deployments[0] ?? never())).toBe('success')
      expect(github.state.deployments[0]?.statuses.at(-1)?.logUrl).toMatch(
        /^https:\/\/github\.example\.com\/acme\/agents\/actions\/runs\//,
      )
      expect(github.state.comments).toHaveLength(1)
    }))

  it('reaches GitHub through the proxy of the runner', () =>
    withHub({}, async ({ github, step, flaws }) => {
      const proxy = await startConnectProxy(() => ({ port: Number(new URL(github.url).port) }))
      try {
        const env = { GITHUB_API_URL: 'http://api.github.test', HTTP_PROXY: proxy.url, http_proxy: proxy.url }
        const result = await step({ with: STAGING, env })
        expect(await flaws(result, DEPLOYED)).toEqual([])
        expect(github.state.deployments.map(stateOf)).toEqual(['success'])
        expect(proxy.asked.map(({ target }) => target)).toContain('api.github.test:80')
      } finally {
        await proxy.stop()
      }
    }))

  it('says nothing where it was told to', () =>
    withHub({}, async ({ github, step, flaws }) => {
      expect(await flaws(await step({ with: { comment: 'false' } }), DEPLOYED)).toEqual([])
      expect(await flaws(await step({ with: { ...STAGING, 'dry-run': 'true' } }), { status: 'planned' })).toEqual([])
      expect(await flaws(await step({ with: {}, event: workflowEvent('push') }), DEPLOYED)).toEqual([])
      const without = await step({ with: { ...STAGING, 'github-token': '' } })
      expect(await flaws(without, DEPLOYED)).toEqual([])
      expect(warnings(without)).toEqual([expect.stringContaining('there is no github-token')])
      expect(github.requests).toEqual([])
    }))

  it('writes nothing that a branch or a title could mean something by', () =>
    withHub({}, async ({ github, step, flaws }) => {
      const branch = 'x`$(id)`<img/src=x>@octocat#1-->|[a](javascript:1)'
      const environment = 'a --> ::error::INJECTED <b>@octocat #1'
      const result = await step({
        with: { environment },
        event: changed(PULL_REQUEST, [
          ['feature/new-prompt', branch],
          ['Use the new prompt', '--> ::error::TITLE'],
        ]),
      })
      expect(
        await flaws(result, { status: result.outputs['status'] ?? '', ...(result.exitCode === 0 ? {} : { code: 'E_INPUT' }) }),
      ).toEqual([])
      const accepted = await step({ with: { environment, 'repo-ref': 'x`$(id)`<img/src=x>@octocat#1|' } })
      expect(await flaws(accepted, DEPLOYED)).toEqual([])
      const body = github.state.comments[0]?.body ?? ''
      expect(body.split('\n')[0]).toBe(markerOf(environment))
      const outside = body.replaceAll(/<code>.*?<\/code>/gs, '').replaceAll(/^<!-- .* -->$/gm, '')
      expect(outside).not.toMatch(/<img|@octocat|&#64;octocat|`\$|javascript|::error/)
      expect(accepted.commandsIssued.map(({ name }) => name)).not.toContain('error')
      expect([...new Set(github.state.deployments.map((record) => record.environment))]).toEqual([environment])
    }))
})

describe.concurrent('a comment', () => {
  it('of somebody else is never touched, whatever it begins with', () =>
    withHub({}, async ({ github, step, flaws }) => {
      const body = `${markerOf('echo-agent')}\nDeployed, I swear`
      const authors = [
        { login: 'mallory', type: 'User' },
        { login: 'github-actions', type: 'User' },
        { login: 'other-app[bot]', type: 'Bot' },
      ] as const
      for (const author of authors) github.addComment({ pullRequest: 7, author, body })
      expect(await flaws(await step(), DEPLOYED)).toEqual([])
      expect(await flaws(await step(), DEPLOYED)).toEqual([])
      expect(github.state.comments.map(({ author, edits }) => [author.login, edits])).toEqual([
        ...authors.map(({ login }) => [login, 0]),
        ['github-actions[bot]', 1],
      ])
    }))

  it.each([
    ['a person', { login: 'octocat', type: 'User' }],
    ['an app', { login: 'acme-deployer[bot]', type: 'Bot' }],
  ] as const)('is found again with the token of %s', (_, account) =>
    withHub({ account, token: 'ghp_anotherTokenOfTheTest0000000000000' }, async ({ github, step, flaws }) => {
      const token = { 'github-token': 'ghp_anotherTokenOfTheTest0000000000000' }
      for (let run = 0; run < 2; run++)
        expect(await flaws(await step({ with: token }), DEPLOYED, [token['github-token']])).toEqual([])
      expect(github.state.comments).toMatchObject([{ author: account, edits: 1 }])
    }),
  )

  it('is one, also when two steps begin it at the same moment', () =>
    withHub({}, async ({ github, step, flaws }) => {
      const both = await Promise.all([step(), step()])
      // One of them may have been superseded by the other.
      for (const result of both)
        expect(await flaws(result, DEPLOYED).then((found) => found.filter((flaw) => /secret|hang/.test(flaw)))).toEqual([])
      expect(github.state.comments).toHaveLength(1)
    }))

  it('is found on the pull request of a comment event', () =>
    withHub({}, async ({ github, step, flaws }) => {
      const payload = {
        action: 'created',
        issue: { number: 7, state: 'open', pull_request: { url: 'https://api.github.com/x' } },
      }
      const event = { name: 'issue_comment', ref: 'refs/heads/main', sha: HEAD, payload }
      expect(await flaws(await step({ event }), DEPLOYED)).toEqual([])
      expect(github.state.comments).toHaveLength(1)
    }))
})

describe.concurrent('a token that may not', () => {
  it('is named once, with the permission that it lacks, and the step is as green as without', () =>
    withHub({ permissions: { deployments: 'none', 'pull-requests': 'read' } }, async ({ github, step, flaws }) => {
      const result = await step({ with: STAGING })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(warnings(result)).toEqual([
        expect.stringContaining('add "deployments: write" to the permissions of the job'),
        expect.stringContaining('add "pull-requests: write" to the permissions of the job'),
      ])
      expect(github.state).toMatchObject({ deployments: [], comments: [] })
      expect(result.post?.log ?? '').not.toContain('environment')
    }))

  it('of a fork says nothing of comments that nobody asked for', () =>
    withHub({ permissions: { 'pull-requests': 'read' } }, async ({ step, flaws }) => {
      const event = changed(PULL_REQUEST, [['"full_name":"acme/agents"', '"full_name":"mallory/agents"']])
      const result = await step({ event, with: { 'repo-url': 'https://github.com/mallory/agents' } })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(warnings(result)).toEqual([])
      expect(result.log).toContain('pull-requests: write')
    }))
})

describe.concurrent('a GitHub that has trouble', () => {
  it('is waited for when it asks for it, and asked again when it hiccups', () =>
    withHub({}, async ({ github, step, flaws }) => {
      github.on({ method: 'POST', path: /\/deployments$/ }, githubFaults.secondaryLimit(1))
      github.on({ method: 'POST', path: /\/statuses$/ }, githubFaults.badGateway)
      github.on({ method: 'GET', path: /\/comments$/ }, { kind: 'reset', when: 'before' })
      github.on({ method: 'POST', path: /\/comments$/ }, { kind: 'reset', when: 'after' })
      const result = await step({ with: STAGING })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(warnings(result)).toEqual([])
      expect(result.log).toContain('answered 403, a rate limit')
      expect(states(github)).toEqual([['in_progress', 'success']])
      expect(github.state.comments).toHaveLength(1)
    }))

  it.each([
    ['refuses every connection', null],
    ['answers nothing but a sign-in page', { kind: 'html', status: 200 }],
    ['asks for an hour of patience', githubFaults.secondaryLimit(3600)],
  ] as const)('%s: the step is as green as without', (_, fault) =>
    withHub({}, async ({ github, step, flaws }) => {
      if (fault !== null) github.on({ times: Infinity }, fault)
      const env = fault === null ? { GITHUB_API_URL: 'http://127.0.0.1:9' } : {}
      const result = await step({ with: STAGING, env })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(warnings(result)).toEqual([expect.stringContaining('environment: '), expect.stringContaining('comment: ')])
    }),
  )

  it(
    'that never answers holds the step for a while, and no longer',
    () =>
      withHub({}, async ({ github, step, flaws }) => {
        github.on({ times: Infinity }, { kind: 'silence' })
        const result = await step({ with: STAGING, timeoutMs: 60_000 })
        expect(await flaws(result, DEPLOYED)).toEqual([])
        expect(result.durationMs).toBeLessThan(40_000)
        expect(warnings(result)).toHaveLength(2)
      }),
    90_000,
  )

  it('gets the end of the record from post, when main could not bring it', () =>
    withHub({}, async ({ github, step, flaws }) => {
      // The first status is `in_progress`; then none for as long as main tries.
      github.on({ method: 'POST', path: /\/statuses$/ }, { kind: 'delay', ms: 1 })
      github.on({ method: 'POST', path: /\/statuses$/, times: 5 }, githubFaults.badGateway)
      const result = await step({ with: STAGING })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(states(github)).toEqual([['in_progress', 'success']])
      expect(result.post?.log).toContain("The deployment record of 'staging' was set to success")
    }))
})

describe.concurrent('a step that is stopped', () => {
  it('by a cancellation ends its record in time', () =>
    withHub({ plane: { script: [['BUILDING']] } }, async ({ github, step, network, flaws }) => {
      const polling = (): boolean => network.requests.some(({ path }) => /\/revisions\/[0-9a-f-]+$/.test(path))
      const result = await step({ with: STAGING, cancelWhen: polling })
      expect(await flaws(result, { status: 'cancelled', code: 'E_CANCELLED' })).toEqual([])
      expect(result.signalsSent).toEqual(['SIGINT'])
      expect(states(github)).toEqual([['in_progress', 'error']])
      expect(github.state.comments).toEqual([])
    }))

  it('while GitHub is silent still ends in time, and post ends the record', () =>
    withHub({ plane: { script: [['BUILDING']] } }, async ({ github, step, network, flaws }) => {
      const polling = (): boolean => network.requests.some(({ path }) => /\/revisions\/[0-9a-f-]+$/.test(path))
      const cancelWhen = (): boolean => {
        if (!polling()) return false
        github.on({ method: 'POST', path: /\/statuses$/ }, { kind: 'silence' })
        return true
      }
      const result = await step({ with: STAGING, cancelWhen })
      expect(await flaws(result, { status: 'cancelled', code: 'E_CANCELLED' })).toEqual([])
      expect(result.signalsSent).toEqual(['SIGINT'])
      expect(states(github)).toEqual([['in_progress', 'error']])
      expect(result.post?.log).toContain('was set to error')
    }))

  it('by being killed leaves its record to post', () =>
    withHub({ plane: { script: [['BUILDING']] } }, async ({ github, step, network }) => {
      const polling = (): boolean => network.requests.some(({ path }) => /\/revisions\/[0-9a-f-]+$/.test(path))
      const result = await step({ with: STAGING, signals: [{ signal: 'SIGKILL', when: polling }] })
      expect(result.exitCode).not.toBe(0)
      expect(result.post?.exitCode).toBe(0)
      expect(states(github)).toEqual([['in_progress', 'error']])
      expect(github.state.deployments[0]?.statuses.at(-1)?.description).toContain('stopped before it was done')
    }))

  it('by being killed while GitHub makes the record has post find it', () =>
    withHub({}, async ({ github, step }) => {
      github.on({ method: 'POST', path: /\/deployments$/ }, { kind: 'reset', when: 'after' })
      github.on({ method: 'GET', path: /\/deployments$/ }, { kind: 'silence' })
      const asked = (): boolean => github.requestsOf('repos/list-deployments').length > 0
      await step({ with: STAGING, signals: [{ signal: 'SIGKILL', when: asked }] })
      expect(states(github)).toEqual([['error']])
    }))
})

/** The event with texts of its payload replaced; the first repository of a pull request is that of its head. */
function changed(event: WorkflowEvent, changes: readonly (readonly [from: string, to: string])[]): WorkflowEvent {
  const text = changes.reduce(
    (rest, [from, to]) => (from.startsWith('"') ? rest.replace(from, to) : rest.replaceAll(from, to)),
    JSON.stringify(event.payload),
  )
  return { ...event, payload: JSON.parse(text) as unknown }
}

function never(): never {
  throw new Error('there is none')
}
