import { describe, expect, it } from 'vitest'
import { GithubFailure } from '../../../src/action/github/failure.ts'
import { summaryData } from '../../../src/action/report/data.ts'
import {
  ActionFailure,
  ERROR_CODES,
  errorAnchor,
  type ErrorCode,
  statusOf,
  toFailure,
} from '../../../src/action/report/error-codes.ts'
import { requestFailure as asFailure, sentence } from '../../../src/action/report/request-failure.ts'
import { DuplicateNameError } from '../../../src/client/failure.ts'
import { RATE_LIMITED } from '../../../src/client/retry.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { fakeDeps, inputs } from '../support/deps.ts'
import { githubContext } from '../support/github.ts'

describe('a failure', () => {
  it('has the remedy and the status of its code, unless it says otherwise', () => {
    const plain = new ActionFailure({ code: 'E_TIMEOUT', happened: 'It was slow.' })
    expect(plain).toMatchObject({
      name: 'ActionFailure',
      message: 'It was slow.',
      code: 'E_TIMEOUT',
      tried: undefined,
      next: ERROR_CODES.E_TIMEOUT.remedy,
      aftermath: undefined,
      status: 'timed-out',
    })
    const cause = new Error('x')
    const full = { code: 'E_TIMEOUT', happened: 'a', tried: 'b', next: 'c', aftermath: 'd', status: 'failed', cause } as const
    const { happened: message, ...rest } = full
    expect(new ActionFailure(full)).toMatchObject({ message, ...rest })
  })

  it('is told once more with what came afterwards', () => {
    const cause = new Error('x')
    const before = new ActionFailure({ code: 'E_SMOKE_TEST', happened: 'a', tried: 'b', next: 'c', cause })
    const same = { message: 'a', tried: 'b', next: 'c', cause }
    expect(before.with({ aftermath: 'd' })).toMatchObject({ ...same, code: 'E_SMOKE_TEST', aftermath: 'd', status: 'failed' })
    expect(before.with({ aftermath: 'd', status: 'rolled-back' })).toMatchObject({ ...same, status: 'rolled-back' })
    expect(before.with({ code: 'E_CANCELLED' })).toMatchObject({ ...same, code: 'E_CANCELLED', status: 'cancelled' })
    expect(before.with({})).toMatchObject({ ...same, aftermath: undefined, status: 'failed' })
    expect(new ActionFailure({ code: 'E_AUTH', happened: 'a' }).with({}).tried).toBeUndefined()
  })

  it('is itself, or a fault of the action', () => {
    const failure = new ActionFailure({ code: 'E_AUTH', happened: 'a' })
    expect(toFailure(failure)).toBe(failure)
    const error = new RangeError('far')
    const next = 'This is a fault of the action itself: report it, with the log of this step.'
    expect(toFailure(error)).toMatchObject({
      code: 'E_PROTOCOL',
      message: 'internal error: RangeError: far',
      next,
      cause: error,
      status: 'failed',
    })
    expect(toFailure('words')).toMatchObject({ code: 'E_PROTOCOL', message: 'internal error: words', next, cause: 'words' })
  })

  it.each<[ErrorCode, string]>([
    ['E_TIMEOUT', 'timed-out'],
    ['E_EXPORT_TIMEOUT', 'timed-out'],
    ['E_CANCELLED', 'cancelled'],
    ['E_SUPERSEDED', 'superseded'],
    ['E_EXPORT_CANCELLED', 'failed'],
    ['E_INPUT', 'failed'],
  ])('%s is %s', (code, status) => {
    expect(statusOf(code)).toBe(status)
  })

  it('has a place in the README', () => {
    expect(errorAnchor('E_BUILD_FAILED')).toBe('e_build_failed')
  })
})

const PLAIN = 'The certificate is not trusted: name its authority in NODE_EXTRA_CA_CERTS, or correct control-plane-url.'
const PROJECT =
  'Each deployment has a tracing project of its name. Delete or rename the old one, or choose another deployment-name.'
const WORKSPACE = 'The key belongs to a whole organisation: set workspace-id to the workspace that holds the deployment.'
const RESOLVE = 'The host name does not resolve: check control-plane-url, or region, and the proxy.'
const MAIN_API = { path: '/api/v1/bulk-exports' }

describe('what to do about a failed request', () => {
  it.each<[string, Parameters<typeof asFailure>[0], string]>([
    ['403, a key of an organisation', httpFailure(403, { detail: 'Requires workspace specification' }), WORKSPACE],
    ['403, the same as a code', httpFailure(403, { code: 'org_scoped_key_requires_workspace' }), WORKSPACE],
    ['401, the same in the answer', httpFailure(401, { excerpt: 'requires workspace specification' }), WORKSPACE],
    [
      '403, not enabled',
      httpFailure(403, { detail: 'Not enabled for this organization' }),
      'Enable deployments for the organisation, or use a key of one that has them.',
    ],
    ['403, anything else', httpFailure(403, { detail: 'tracing project' }), ERROR_CODES.E_AUTH.remedy],
    ['409, a project', httpFailure(409, { detail: 'There exists a project of it' }), PROJECT],
    ['409, a tracing project', httpFailure(409, { detail: 'Tracing Project' }), PROJECT],
    ['409, anything else', httpFailure(409, { detail: 'taken' }), ERROR_CODES.E_CONFLICT.remedy],
    ['a certificate', requestFailure({ detail: 'certificate has expired' }), PLAIN],
    ['CERT_HAS_EXPIRED', requestFailure({ code: 'CERT_HAS_EXPIRED' }), PLAIN],
    ['SELF_SIGNED', requestFailure({ code: 'DEPTH_ZERO_SELF_SIGNED' }), PLAIN],
    ['UNABLE_TO_VERIFY', requestFailure({ code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' }), PLAIN],
    ['ENOTFOUND', requestFailure({ code: 'ENOTFOUND' }), RESOLVE],
    ['EAI_AGAIN', requestFailure({ code: 'EAI_AGAIN' }), RESOLVE],
    [
      'ECONNREFUSED',
      requestFailure({ code: 'ECONNREFUSED' }),
      'Nothing listens there: check control-plane-url, and that the control plane runs.',
    ],
    [
      'ECONNREFUSED of the main API',
      requestFailure({ code: 'ECONNREFUSED', ...MAIN_API }),
      'Nothing listens there: check api-url, and that the service runs.',
    ],
    [
      'ENOTFOUND of the main API',
      requestFailure({ code: 'ENOTFOUND', ...MAIN_API }),
      'The host name does not resolve: check api-url, or region, and the proxy.',
    ],
    ['503', httpFailure(503), ERROR_CODES.E_UNAVAILABLE.remedy],
    ['422 of nothing known', httpFailure(422, { detail: 'name: too long' }), ERROR_CODES.E_VALIDATION.remedy],
    ['404 that names a field', httpFailure(404, { detail: 'repo_ref' }), ERROR_CODES.E_NOT_FOUND.remedy],
    [
      '400 that names one in the answer',
      httpFailure(400, { excerpt: 'repo_url is bad' }),
      `${ERROR_CODES.E_VALIDATION.remedy} In the workflow \`repo_url\` is \`repo-url\`.`,
    ],
  ])('%s', (_, failure, next) => {
    expect(asFailure(failure, 'It').next).toBe(next)
  })
})

describe('what is told of a failed request', () => {
  it.each<[string, Parameters<typeof asFailure>[0], { message: string; tried?: string }]>([
    [
      'sent once',
      httpFailure(404, { detail: 'Not here!' }),
      { message: 'It failed: GET /v2/deployments answered 404: Not here!', tried: 'GET /v2/deployments was sent once.' },
    ],
    [
      'sent not at all',
      requestFailure({ kind: 'cancelled', summary: 'was cancelled', attempts: 0 }),
      { message: 'It failed: GET /v2/deployments was cancelled.', tried: 'GET /v2/deployments was sent not at all.' },
    ],
    [
      'read without an answer',
      requestFailure({ attempts: 3, ambiguous: true }),
      {
        message: 'It failed: GET /v2/deployments got no answer (tried 3 times).',
        tried: 'GET /v2/deployments was sent 3 times.',
      },
    ],
    [
      'answered in other words',
      httpFailure(500, { excerpt: 'x'.repeat(301), requestId: 'r-1' }),
      {
        message: `It failed: GET /v2/deployments answered 500.\nThe answer began with: ${'x'.repeat(300)}\nRequest id: r-1`,
      },
    ],
    [
      'answered with words that are told already',
      httpFailure(500, { detail: 'no', excerpt: '{"detail":"no"}' }),
      { message: 'It failed: GET /v2/deployments answered 500: no.' },
    ],
    [
      'broken off, which says nothing of an answer',
      requestFailure({ excerpt: 'x' }),
      { message: 'It failed: GET /v2/deployments got no answer.' },
    ],
  ])('%s', (_, failure, expected) => {
    expect(asFailure(failure, 'It')).toMatchObject({ ...expected, cause: failure })
  })

  it('is that two deployments have the name', () => {
    const error = new DuplicateNameError('agent', ['a', 'b'])
    expect(asFailure(error, 'Finding it')).toMatchObject({
      code: 'E_CONFLICT',
      message: `Finding it failed: ${error.message}.`,
      next: 'Set deployment-id to the one that is meant, in place of deployment-name.',
      cause: error,
    })
  })

  it.each([
    ['a', 'a.'],
    ['a.', 'a.'],
    ['a!', 'a!'],
    ['a?', 'a?'],
    ['a. b', 'a. b.'],
  ])('ends %j as a sentence', (text, expected) => {
    expect(sentence(text)).toBe(expected)
  })
})

describe('what is told of a failure of GitHub', () => {
  const github = (request: ReturnType<typeof httpFailure>, permission: 'deployments: write' | null) =>
    asFailure(new GithubFailure({ operation: 'reading it', request, permission }), 'Proving it')

  it('is the permission that the token lacks', () => {
    const failure = github(httpFailure(403, { requestId: 'r-1', attempts: 2 }), 'deployments: write')
    expect(failure).toMatchObject({
      code: 'E_AUTH',
      message:
        'Proving it failed: GitHub: reading it failed: GET /v2/deployments answered 403 (tried 2 times). The token lacks the ' +
        'permission deployments: write: add "deployments: write" to the permissions of the job, or give github-token a token that ' +
        'has it.\nRequest id: r-1',
      tried: 'GET /v2/deployments was sent 2 times.',
      next: 'Add "deployments: write" to the permissions of the job, or give github-token a token that has it.',
    })
  })

  it('is its state where no permission is missing', () => {
    const next = 'Check github-token, and https://www.githubstatus.com; then run the step again.'
    expect(github(httpFailure(503), null)).toMatchObject({
      code: 'E_UNAVAILABLE',
      message: 'Proving it failed: GitHub: reading it failed: GET /v2/deployments answered 503.',
      next,
    })
    expect(github(httpFailure(403, { code: RATE_LIMITED }), null)).toMatchObject({ code: 'E_RATE_LIMITED', next })
  })
})

describe('what the summary is made from', () => {
  it('is what the step knows, redacted', () => {
    const { journal } = fakeDeps()
    journal.set('deployment-name', 'hunter2')
    journal.note('said hunter2\r\n\x1b[31mtwice')
    journal.transition('BUILDING', 5)
    journal.setLogTail({ title: 'Log', lines: ['hunter\x002', 'x'] })
    const failure = new ActionFailure({ code: 'E_AUTH', happened: 'a hunter2', tried: 'b', next: 'c', aftermath: 'd' })
    const options = {
      status: 'failed',
      failure,
      inputs: inputs(),
      journal,
      github: githubContext(),
      redact: (text: string) => text.replaceAll(/hunter 2|hunter2/g, '***'),
      now: 9,
    } as const
    const { source } = inputs()
    const startedAt = journal.startedAt
    expect(summaryData(options)).toEqual({
      status: 'failed',
      failure: { code: 'E_AUTH', message: 'a ***', tried: 'b', next: 'c', aftermath: 'd' },
      outputs: { 'deployment-name': '***' },
      source,
      transitions: [{ status: 'BUILDING', at: 5 }],
      plan: undefined,
      notes: ['said ***\ntwice'],
      logTail: { title: 'Log', lines: ['***', 'x'] },
      smokeTest: undefined,
      export: undefined,
      rollback: undefined,
      sweep: undefined,
      rateLimitWaitMs: 0,
      rateLimits: [],
      startedAt,
      endedAt: 9,
      github: { serverUrl: 'https://github.com', actionRepository: 'acme/deploy-agent-server' },
    })
    const other = summaryData({
      ...options,
      failure: undefined,
      inputs: undefined,
      rateLimitWaitMs: 7,
      rateLimits: ['GitHub'],
    })
    expect(other).toMatchObject({ failure: undefined, source: undefined, rateLimitWaitMs: 7, rateLimits: ['GitHub'] })
  })
})
