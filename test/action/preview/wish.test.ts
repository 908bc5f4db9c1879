import { describe, expect, it } from 'vitest'
import { parseStepInputs, type RawInputs } from '../../../src/action/inputs.ts'
import type { InputProblem } from '../../../src/action/parse/problem.ts'
import { previewOf, sweepOf } from '../../../src/action/preview/wish.ts'
import { DEPLOYMENT_ID, DIGEST } from '../support/answers.ts'
import { githubContext } from '../support/github.ts'
import { DEFAULT_INPUTS, refusal } from '../support/inputs.ts'

const HEAD = { ref: 'feature', sha: 'b'.repeat(40), repo: { full_name: 'acme/agents' } }
const DAY = 86_400_000

function pullRequest(changes: { action?: string; state?: string; head?: unknown; eventName?: string } = {}) {
  const { action = 'synchronize', state = 'open', head = HEAD, eventName = 'pull_request' } = changes
  return githubContext({
    eventName,
    ref: 'refs/pull/7/merge',
    payload: { action, number: 7, pull_request: { number: 7, state, head } },
  })
}

const parse = (changes: Partial<RawInputs>, context = pullRequest()) =>
  parseStepInputs({ ...DEFAULT_INPUTS, 'deployment-name': 'agent', ...changes }, context, 0)
const refused = (changes: Partial<RawInputs>, context = pullRequest()): string => refusal(() => parse(changes, context))

describe('mode: preview', () => {
  it('deploys the head of the pull request to a deployment of its own', () => {
    expect(parse({ mode: 'preview' })).toMatchObject({
      mode: 'preview',
      target: { name: 'agent-pr-7' },
      source: { repoUrl: 'https://github.com/acme/agents', repoRef: 'feature', commit: HEAD.sha },
      preview: { baseName: 'agent', pullRequest: 7, eventState: 'open', headSha: HEAD.sha, closing: false },
      warnings: [],
    })
  })

  it('takes an image as well', () => {
    expect(parse({ mode: 'preview', 'image-uri': DIGEST })).toMatchObject({ mode: 'preview', source: { imageUri: DIGEST } })
  })

  it.each(['pull_request', 'pull_request_target'])(
    'of a closed one is a teardown, whatever is left of its head (%s)',
    (eventName) => {
      const closed = { action: 'closed', state: 'closed', eventName }
      for (const head of [HEAD, { ...HEAD, repo: null }, { ...HEAD, repo: { full_name: 'mallory/agents' } }]) {
        expect(parse({ mode: 'preview', secrets: 'A=b' }, pullRequest({ ...closed, head }))).toMatchObject({
          mode: 'teardown',
          target: { name: 'agent-pr-7' },
          preview: { eventState: 'closed', closing: true },
          timeoutMs: 1_800_000,
          warnings: [],
        })
      }
    },
  )

  it.each<[Partial<RawInputs>, RegExp]>([
    [
      { 'deployment-name': '', 'deployment-id': DEPLOYMENT_ID },
      /deployment-id is set, and mode is preview.*\n.*deployment-name is empty|deployment-name is empty.*\n.*deployment-id is set/,
    ],
    [{ tag: 'v1' }, /tag is set, and mode is preview/],
    [{ 'repo-ref': 'main' }, /repo-ref is set, and mode is preview/],
    [{ 'image-uri': DIGEST, 'config-path': 'a.json' }, /config-path and image-uri/],
    [{ 'smoke-test-expect': 'pong' }, /smoke-test-input is empty/],
    [{ 'preview-ttl': '7' }, /preview-ttl '7' has no unit/],
  ])('refuses %j', (changes, says) => {
    expect(refused({ mode: 'preview', ...changes })).toMatch(says)
  })

  it('refuses a fork that nobody named, and an event without a pull request', () => {
    const fork = pullRequest({ head: { ...HEAD, repo: { full_name: 'mallory/agents' } }, eventName: 'pull_request_target' })
    expect(refused({ mode: 'preview' }, fork)).toMatch(/repo-url is empty, and the pull request comes from a fork/)
    const named = parse({ mode: 'preview', 'repo-url': 'https://github.com/mallory/agents' }, fork)
    expect(named).toMatchObject({
      preview: {
        repositories: [
          'https://github.com/acme/agents',
          'https://github.com/mallory/agents',
          'https://github.com/mallory/agents',
        ],
      },
    })
    expect(refused({ mode: 'preview' }, githubContext())).toMatch(
      /mode is preview, and the event push is not one of a pull request/,
    )
    expect(refused({ mode: 'preview' }, githubContext({ eventName: 'pull_request' }))).toMatch(/has no pull request/)
  })
})

describe('mode: teardown', () => {
  it('needs the number of the pull request and nothing of its source', () => {
    expect(parse({ mode: 'teardown' })).toMatchObject({
      mode: 'teardown',
      target: { name: 'agent-pr-7' },
      preview: { closing: false },
      warnings: [],
    })
    const comment = { issue: { number: 7, state: 'open', pull_request: { url: 'x' } } }
    expect(parse({ mode: 'teardown' }, githubContext({ eventName: 'issue_comment', payload: comment }))).toMatchObject({
      target: { name: 'agent-pr-7' },
    })
  })

  it('says which inputs it does not use', () => {
    expect(
      parse({ mode: 'teardown', tag: 'v1', secrets: 'A=b', environment: 'preview', 'repo-url': 'https://github.com/acme/agents' })
        .warnings,
    ).toEqual(['mode is teardown: tag, secrets are not used.'])
  })

  it('refuses an event without a pull request, an issue among them', () => {
    const issue = githubContext({ eventName: 'issue_comment', payload: { issue: { number: 7, state: 'open' } } })
    expect(refused({ mode: 'teardown' }, issue)).toMatch(
      /mode is teardown, and the payload of the event issue_comment has no pull request/,
    )
    expect(refused({ mode: 'teardown', 'deployment-id': DEPLOYMENT_ID })).toMatch(/deployment-id is set/)
  })
})

describe('mode: sweep', () => {
  it('needs only the name that the previews begin with', () => {
    const inputs = parse({ mode: 'sweep' }, githubContext({ eventName: 'schedule' }))
    expect(inputs).toMatchObject({
      mode: 'sweep',
      sweep: { baseName: 'agent', repoUrl: 'https://github.com/acme/agents', ttlMs: 7 * DAY },
      warnings: [],
    })
    expect(parse({ mode: 'sweep', 'preview-ttl': '30d' })).toMatchObject({ sweep: { ttlMs: 30 * DAY } })
    expect(parse({ mode: 'sweep', 'image-uri': DIGEST }).warnings).toEqual(['mode is sweep: image-uri is not used.'])
  })

  it('refuses to sweep without a name, without a repository, and with an odd age', () => {
    expect(refused({ mode: 'sweep', 'deployment-name': '' })).toMatch(/deployment-name is empty, and mode is sweep/)
    expect(refused({ mode: 'sweep' }, githubContext({ repository: '' }))).toMatch(/GITHUB_REPOSITORY/)
    expect(refused({ mode: 'sweep', 'preview-ttl': '366d' })).toMatch(/longer than 365 days/)
  })
})

describe('what is refused', () => {
  const nowhere = githubContext({ eventName: '', repository: '' })

  it.each([
    [
      'a preview of another event',
      previewOf,
      { mode: 'preview', context: githubContext() },
      'is preview, and the event push is not one of a pull request',
      'run this step on pull_request, or use mode: deploy for other events',
    ],
    [
      'a preview of no event',
      previewOf,
      { mode: 'preview', context: nowhere },
      'is preview, and the event (none) is not one of a pull request',
      'run this step on pull_request, or use mode: deploy for other events',
    ],
    [
      'a teardown of an event without a pull request',
      previewOf,
      { mode: 'teardown', context: githubContext() },
      'is teardown, and the payload of the event push has no pull request',
      'run this step on pull_request events',
    ],
    [
      'a teardown of no event',
      previewOf,
      { mode: 'teardown', context: nowhere },
      'is teardown, and the payload of the event (none) has no pull request',
      'run this step on pull_request events',
    ],
    [
      'a sweep outside a workflow',
      sweepOf,
      { context: nowhere },
      'is sweep, and GITHUB_REPOSITORY does not say which repository this is',
      'run this step in a workflow',
    ],
  ] as const)('is %s, with what helps', (_, read, options, problem, fix) => {
    const problems: InputProblem[] = []
    const fields = { 'deployment-name': 'agent' }
    expect((read as (given: object) => unknown)({ ...options, fields, problems })).toBeUndefined()
    expect(problems).toEqual([{ input: 'mode', problem, fix }])
  })

  it('is nothing more where only the name is missing: that is told elsewhere', () => {
    const problems: InputProblem[] = []
    expect(sweepOf({ fields: {}, context: githubContext(), problems })).toBeUndefined()
    expect(previewOf({ mode: 'preview', fields: {}, context: pullRequest(), problems })).toBeUndefined()
    expect(problems).toEqual([])
  })
})

describe('the age that a preview may have', () => {
  it('is a week where nothing is said', () => {
    const fields = { 'deployment-name': 'agent' }
    expect(sweepOf({ fields, context: githubContext(), problems: [] })).toMatchObject({ ttlMs: 7 * DAY })
    expect(sweepOf({ fields: { ...fields, 'preview-ttl': 1000 }, context: githubContext(), problems: [] })).toMatchObject({
      ttlMs: 1000,
    })
  })
})
