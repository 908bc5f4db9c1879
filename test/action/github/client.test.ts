import { describe, expect, it } from 'vitest'
import { createGithub } from '../../../src/action/github/client.ts'
import type { NewDeployment } from '../../../src/action/github/github.ts'
import { startDeadline } from '../../../src/client/deadline.ts'
import { realEffects } from '../../../src/client/effects.ts'
import { githubFaults } from '../../support/github-double.ts'
import { startServer } from '../../support/http-server.ts'
import { GITHUB_TOKEN } from '../../support/runner/job-environment.ts'
import { failureOf, withGithub } from './support.ts'

const SHA = 'c0ffee0000000000000000000000000000000000'
const NEW: NewDeployment = {
  ref: SHA,
  environment: 'staging',
  task: 'deploy:agent-server',
  description: 'Deploying',
  payload: { 'deploy-agent-server': { step: 'one' } },
  transient: true,
  production: false,
}
const PULL = /\/pulls\/7$/

describe.concurrent('operations', () => {
  it('read a pull request', () =>
    withGithub({}, async ({ double, github, signal }) => {
      double.addPullRequest({ number: 7, headSha: SHA, headRef: 'a/b', headRepository: null, state: 'closed' })
      const expected = { number: 7, state: 'closed', headRef: 'a/b', headSha: SHA, headRepository: null }
      expect(await github.getPullRequest(7, signal)).toEqual(expected)
      expect(await github.getPullRequest(8, signal)).toBeNull()
    }))

  it('believe that a pull request is not there only with a token that sees pull requests', () =>
    withGithub({ permissions: { 'pull-requests': 'none' } }, async ({ double, github, signal }) => {
      double.on({ path: PULL }, githubFaults.notFound)
      const failure = await failureOf(github.getPullRequest(7, signal))
      expect(failure).toMatchObject({ status: 403, permission: 'pull-requests: read' })
    }))

  it('follow annotated tags to their commit', () =>
    withGithub({}, async ({ double, github, signal }) => {
      double.addTag('v1', SHA)
      double.addTag('release/v2', SHA, { annotated: true })
      double.state.tags.set('files', { type: 'tree', sha: SHA })
      expect(await github.commitOfTag('v1', signal)).toBe(SHA)
      expect(await github.commitOfTag('refs/tags/release/v2', signal)).toBe(SHA)
      expect(await github.commitOfTag('files', signal)).toBeNull()
      expect(await github.commitOfTag('v', signal)).toBeNull()
    }))

  it('make deployment records and their statuses', () =>
    withGithub({}, async ({ double, github, signal }) => {
      const record = await github.createDeployment(NEW, signal)
      expect(record).toMatchObject({ environment: 'staging', sha: SHA, ref: SHA, task: NEW.task, payload: NEW.payload })
      const long = `${'x'.repeat(139)}💥 and more`
      const status = {
        deploymentId: record.id,
        state: 'success',
        description: long,
        environmentUrl: 'https://a.example',
      } as const
      await github.createDeploymentStatus(status, signal)
      await github.createDeploymentStatus({ ...status, state: 'inactive', description: 'a\nb' }, signal)
      expect(await github.listDeploymentStatuses(record.id, signal)).toMatchObject([
        { state: 'inactive', description: 'a b' },
        { state: 'success', description: `${'x'.repeat(139)}…` },
      ])
      expect(double.state.deployments).toMatchObject([{ transient: true, production: false, description: 'Deploying' }])
      expect(await github.listDeployments({ environment: 'other', max: 10 }, signal)).toEqual([])
    }))

  it('read lists to their end, or to as many as are wanted', () =>
    withGithub({}, async ({ double, github, signal }) => {
      double.addPullRequest({ number: 7 })
      const author = { login: 'octocat', type: 'User' } as const
      for (let index = 0; index < 230; index++) double.addComment({ pullRequest: 7, author, body: `comment ${index}` })
      const comments = await github.listComments(7, signal)
      expect(comments.map(({ body }) => body)).toEqual(Array.from({ length: 230 }, (_, index) => `comment ${index}`))
      expect(double.requestsOf('issues/list-comments')).toHaveLength(3)
      for (let index = 0; index < 5; index++) await github.createDeployment(NEW, signal)
      const newest = await github.listDeployments({ max: 2 }, signal)
      expect(newest.map(({ id }) => id)).toEqual(
        double.state.deployments
          .slice(-2)
          .map(({ id }) => id)
          .toReversed(),
      )
    }))

  it('write comments, and tell whose they are', () =>
    withGithub({}, async ({ double, github, signal }) => {
      double.addPullRequest({ number: 7 })
      const { id, author, authorIsBot } = await github.createComment(7, 'first', signal)
      expect({ author, authorIsBot }).toEqual({ author: 'github-actions[bot]', authorIsBot: true })
      await github.updateComment(id, 'second', signal)
      expect(double.state.comments).toMatchObject([{ id, body: 'second', edits: 1 }])
      await github.deleteComment(id, signal)
      await github.deleteComment(id, signal)
      expect(double.state.comments).toEqual([])
      expect(await github.viewer(signal)).toEqual({ login: 'github-actions[bot]', isBot: true })
    }))

  it('work below the path of a GitHub Enterprise Server', () =>
    withGithub({ prefix: '/api/v3' }, async ({ double, github, signal }) => {
      double.addPullRequest({ number: 7 })
      expect(await github.getPullRequest(7, signal)).toMatchObject({ number: 7 })
      expect(await github.viewer(signal)).toMatchObject({ isBot: true })
    }))
})

describe.concurrent('repetitions', () => {
  it.each([
    ['an outage', githubFaults.badGateway, 0],
    ['a broken connection', { kind: 'reset', when: 'before' }, 0],
    ['a page of a proxy', { kind: 'html', status: 503 }, 0],
    ['a sign-in page', { kind: 'html', status: 200 }, 0],
    ['a secondary rate limit', githubFaults.secondaryLimit(3), 3000],
    ['too many requests', githubFaults.tooMany(4), 4000],
    ['a secondary rate limit that does not say how long', githubFaults.secondaryLimit(), 60_000],
  ] as const)('wait for %s to pass', (_, fault, waitMs) =>
    withGithub({}, async ({ double, github, signal, slept }) => {
      double.addPullRequest({ number: 7 })
      double.on({ path: PULL }, fault)
      expect(await github.getPullRequest(7, signal)).toMatchObject({ number: 7 })
      expect(slept).toEqual([waitMs])
    }),
  )

  it('wait until the primary rate limit begins anew', () =>
    withGithub({}, async ({ double, github, signal, slept }) => {
      double.addPullRequest({ number: 7 })
      double.on({ path: PULL }, githubFaults.primaryLimit(Date.now() + 30_000))
      expect(await github.getPullRequest(7, signal)).toMatchObject({ number: 7 })
      expect(slept[0]).toBeGreaterThan(29_000)
      expect(slept[0]).toBeLessThan(33_000)
    }))

  it('begin no wait that the deadline does not allow', () =>
    withGithub({}, async ({ double, github, signal, slept }) => {
      double.on({ path: PULL }, githubFaults.secondaryLimit(50))
      const deadline = startDeadline({ timeoutMs: 20_000, parent: signal, effects: realEffects })
      const failure = await failureOf(github.getPullRequest(7, deadline.signal))
      deadline.stop()
      expect(failure.message).toContain('asked to wait 50 s')
      expect(failure).toMatchObject({ status: 403, permission: null, isRefused: false })
      expect(slept).toEqual([])
    }))

  it('end: an outage is told with the number of attempts', () =>
    withGithub({ policy: { attempts: 3 } }, async ({ double, github, signal }) => {
      double.on({ times: 9 }, githubFaults.badGateway)
      const failure = await failureOf(github.getPullRequest(7, signal))
      expect(failure.message).toBe(
        'reading the pull request 7 failed: GET /repos/acme/agents/pulls/7 answered 502 (tried 3 times): Server Error',
      )
      expect(double.requests).toHaveLength(3)
    }))

  it('are not made for a comment that may have been written', () =>
    withGithub({}, async ({ double, github, signal }) => {
      double.addPullRequest({ number: 7 })
      double.on({ method: 'POST' }, { kind: 'reset', when: 'after' })
      const failure = await failureOf(github.createComment(7, 'once', signal))
      expect(failure.request.ambiguous).toBe(true)
      expect(double.state.comments).toHaveLength(1)
    }))

  it('find a record that an unanswered request has made', () =>
    withGithub({}, async ({ double, github, signal }) => {
      double.on({ method: 'POST' }, { kind: 'reset', when: 'after' })
      const record = await github.createDeployment(NEW, signal)
      expect(double.state.deployments.map(({ id }) => id)).toEqual([record.id])
    }))

  it('make a record again that was not made, beside one of another step', () =>
    withGithub({}, async ({ double, github, signal }) => {
      await github.createDeployment({ ...NEW, payload: { 'deploy-agent-server': { step: 'other' } } }, signal)
      double.on({ method: 'POST' }, { kind: 'reset', when: 'before' })
      const record = await github.createDeployment(NEW, signal)
      expect(double.state.deployments).toHaveLength(2)
      expect(double.state.deployments[1]?.id).toBe(record.id)
    }))
})

describe.concurrent('an answer that does not come', () => {
  it.each([['stall'], ['silence']] as const)('%s ends by the limit of one attempt', (kind) =>
    withGithub({ timeoutMs: 200, policy: { attempts: 2 } }, async ({ double, github, signal }) => {
      double.addPullRequest({ number: 7 })
      double.on({ times: 2 }, { kind })
      const failure = await failureOf(github.getPullRequest(7, signal))
      expect(failure.message).toContain('got no complete answer from GitHub within 0.2 s (tried 2 times)')
    }),
  )

  it.each([['stall'], ['silence']] as const)('%s ends at once with the signal', (kind) =>
    withGithub({}, async ({ double, github }) => {
      double.addPullRequest({ number: 7 })
      double.on({ times: 2 }, { kind })
      const controller = new AbortController()
      const pending = failureOf(github.getPullRequest(7, controller.signal))
      await expect.poll(() => double.requests.length).toBe(1)
      controller.abort(new DOMException('received SIGINT', 'AbortError'))
      expect((await pending).request.kind).toBe('cancelled')
    }),
  )
})

describe.concurrent('what a failure says', () => {
  it('names the missing permission, and how a workflow gives it', () =>
    withGithub({ permissions: { deployments: 'read' } }, async ({ github, signal }) => {
      const failure = await failureOf(github.createDeployment(NEW, signal))
      expect(failure).toMatchObject({ status: 403, permission: 'deployments: write', isRefused: true })
      expect(failure.message).toContain(
        'The token lacks the permission deployments: write: add "deployments: write" to the permissions',
      )
    }))

  it('of the comments names the one permission that all of it needs', () =>
    withGithub({ permissions: { 'pull-requests': 'none', issues: 'none' } }, async ({ double, github, signal }) => {
      double.addPullRequest({ number: 7 })
      const permission = 'pull-requests: write'
      expect(await failureOf(github.listComments(7, signal))).toMatchObject({ permission })
      double.on({ times: 3 }, githubFaults.refused('issues=read; pull_requests=read'))
      expect(await failureOf(github.listComments(7, signal))).toMatchObject({ permission })
      expect(await failureOf(github.viewer(signal))).toMatchObject({ permission })
      expect(await failureOf(github.createComment(7, 'x', signal))).toMatchObject({ permission })
    }))

  it('names the higher one, where GitHub asks for more than was known', () =>
    withGithub({}, async ({ double, github, signal }) => {
      double.on({}, githubFaults.refused('pull_requests=write'))
      expect(await failureOf(github.getPullRequest(7, signal))).toMatchObject({ permission: 'pull-requests: write' })
    }))

  it('names the permission that GitHub names, where that is another one', () =>
    withGithub({}, async ({ double, github, signal }) => {
      double.on({}, githubFaults.refused('administration=write,metadata=read'))
      expect(await failureOf(github.createDeployment(NEW, signal))).toMatchObject({ permission: 'administration: write' })
    }))

  it('says that a 404 may be a missing permission', () =>
    withGithub({}, async ({ double, github, signal }) => {
      double.on({}, githubFaults.notFound)
      const failure = await failureOf(github.createDeployment(NEW, signal))
      expect(failure.message).toContain('The token may lack the permission deployments: write')
    }))

  it('blames no permission for other refusals', () =>
    withGithub({}, async ({ double, github, signal }) => {
      double.on({}, { kind: 'answer', status: 403, message: 'Repository was archived so is read-only.' })
      expect(await failureOf(github.createDeployment(NEW, signal))).toMatchObject({ permission: null, status: 403 })
    }))

  it('keeps the token out, and control characters', () =>
    withGithub({}, async ({ double, github, signal }) => {
      double.on({}, { kind: 'answer', status: 422, message: `\u001b[31m::error::${GITHUB_TOKEN}\nnext` })
      const failure = await failureOf(github.createDeployment(NEW, signal))
      expect(failure.message).not.toContain(GITHUB_TOKEN)
      expect(failure.message).not.toMatch(/[\u0000-\u001f]/)
      expect(JSON.stringify(failure.request)).not.toContain(GITHUB_TOKEN)
    }))

  it('tells a server that is not there from one that did not answer', async () => {
    const server = await startServer(() => undefined)
    await server.stop()
    const github = createGithub({
      token: GITHUB_TOKEN,
      repository: 'acme/agents',
      apiUrl: server.url,
      redact: (text) => text,
      effects: realEffects,
      onRetry: () => undefined,
      policy: { attempts: 1 },
    })
    const failure = await failureOf(github.viewer(new AbortController().signal))
    expect(failure.message).toContain('could not reach GitHub')
    expect(failure.request).toMatchObject({ kind: 'network', ambiguous: false })
  })
})
