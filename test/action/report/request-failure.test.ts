import { describe, expect, it } from 'vitest'
import { requestFailure as toFailure } from '../../../src/action/report/request-failure.ts'
import { ERROR_CODES, statusOf } from '../../../src/action/report/error-codes.ts'
import { GithubFailure } from '../../../src/action/github/failure.ts'
import { DuplicateNameError } from '../../../src/client/failure.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'

describe('the code of a failed request', () => {
  it.each([
    [httpFailure(401), 'E_AUTH'],
    [httpFailure(403), 'E_AUTH'],
    [httpFailure(404), 'E_NOT_FOUND'],
    [httpFailure(409), 'E_CONFLICT'],
    [httpFailure(400), 'E_VALIDATION'],
    [httpFailure(422), 'E_VALIDATION'],
    [httpFailure(429), 'E_RATE_LIMITED'],
    [httpFailure(408), 'E_UNAVAILABLE'],
    [httpFailure(500), 'E_UNAVAILABLE'],
    [httpFailure(503), 'E_UNAVAILABLE'],
    [httpFailure(302), 'E_PROTOCOL'],
    [httpFailure(418), 'E_PROTOCOL'],
    [requestFailure({ kind: 'network' }), 'E_UNAVAILABLE'],
    [requestFailure({ kind: 'protocol', code: 'html' }), 'E_PROTOCOL'],
    [requestFailure({ kind: 'unsupported' }), 'E_PROTOCOL'],
    [requestFailure({ kind: 'deadline' }), 'E_TIMEOUT'],
    [requestFailure({ kind: 'cancelled' }), 'E_CANCELLED'],
  ])('%s is %s', (failure, code) => {
    expect(toFailure(failure, 'Finding the deployment').code).toBe(code)
  })

  it('is a conflict for a name that two deployments have', () => {
    const failure = toFailure(new DuplicateNameError('agent', ['a', 'b']), 'Finding the deployment')
    expect(failure).toMatchObject({ code: 'E_CONFLICT', next: expect.stringContaining('deployment-id') })
  })

  it('is an internal error for anything else', () => {
    expect(toFailure(new TypeError('x is not a function'), 'The step')).toMatchObject({
      code: 'E_PROTOCOL',
      message: 'internal error: TypeError: x is not a function',
    })
  })
})

describe('its words', () => {
  const PLAIN = 'It speaks plain http there: check the host and the port in'
  const UNENCRYPTED = 'With http:// the key would travel unencrypted.'

  it('say what happened, what was tried, and what to do', () => {
    const failure = toFailure(httpFailure(422, { detail: 'body.name: too long', requestId: 'r-1' }), 'Updating it')
    expect(failure.message).toBe('Updating it failed: GET /v2/deployments answered 422: body.name: too long.\nRequest id: r-1')
    expect(failure.tried).toBe('GET /v2/deployments was sent once.')
    expect(failure.next).toBe(ERROR_CODES.E_VALIDATION.remedy)
  })

  it('doubt whether a change happened, when no answer came back', () => {
    const failure = toFailure(requestFailure({ method: 'POST', attempts: 2, ambiguous: true }), 'Creating it')
    expect(failure.tried).toBe(
      'POST /v2/deployments was sent 2 times. No complete answer came back: it may have been carried out.',
    )
  })

  it.each([
    [httpFailure(403, { detail: 'requires workspace specification' }), 'workspace-id'],
    [httpFailure(409, { detail: 'Deployments create a tracing project in it with the same name.' }), 'tracing project'],
    [requestFailure({ code: 'ENOTFOUND' }), 'resolve'],
    [requestFailure({ code: 'SELF_SIGNED_CERT_IN_CHAIN' }), 'NODE_EXTRA_CA_CERTS'],
  ])('help where a cause is known: %s', (failure, says) => {
    expect(toFailure(failure, 'It').next).toContain(says)
  })

  it('name the address that was asked, where a wrong one is the usual cause', () => {
    const address = 'https://api.host.example.com/prefix'
    const line = `\nThe address that was asked: ${address}`
    expect(toFailure(httpFailure(401, { address, requestId: 'r-1' }), 'It').message).toBe(
      `It failed: GET /v2/deployments answered 401.${line}\nRequest id: r-1`,
    )
    const html = requestFailure({ kind: 'protocol', code: 'html', summary: 'answered 200 with HTML', address })
    expect(toFailure(html, 'It').message).toBe(`It failed: GET /v2/deployments answered 200 with HTML.${line}`)
    expect(toFailure(requestFailure({ kind: 'unsupported', address }), 'It').message).toContain(line)
    expect(toFailure(httpFailure(422, { address }), 'It').message).not.toContain(address)
    expect(toFailure(httpFailure(401), 'It').message).not.toContain('address')
  })

  it('speak of GitHub only where GitHub has refused', () => {
    expect(toFailure(httpFailure(401), 'It').next).not.toContain('GitHub')
    const refused = new GithubFailure({ operation: 'reading', request: httpFailure(401), permission: null })
    expect(toFailure(refused, 'It').next).toContain('github-token')
  })

  it.each([
    [
      '/v2/deployments',
      'https://127.0.0.1:8787',
      'It speaks plain http there: write http://127.0.0.1:8787 in control-plane-url.',
    ],
    ['/api/v1/bulk-exports', 'https://127.0.0.1:8787', 'It speaks plain http there: write http://127.0.0.1:8787 in api-url.'],
    [
      '/v2/deployments',
      'https://localhost:8787',
      'It speaks plain http there: write http://localhost:8787 in control-plane-url.',
    ],
    ['/v2/deployments', 'https://agents.example.com:8080', `${PLAIN} control-plane-url. ${UNENCRYPTED}`],
    ['/api/v1/bulk-exports', 'https://agents.example.com:8080', `${PLAIN} api-url. ${UNENCRYPTED}`],
    ['/v2/deployments', null, `${PLAIN} control-plane-url. ${UNENCRYPTED}`],
  ])('tell who asks for TLS where there is none: %s at %s', (path, address, next) => {
    const detail = 'write EPROTO 40B7:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:record/ssl3_record.c:354:'
    const failure = requestFailure({ code: 'EPROTO', summary: 'could not reach it', detail, path, address })
    expect(toFailure(failure, 'It')).toMatchObject({ code: 'E_UNAVAILABLE', next })
  })

  it.each([
    'tunneling socket could not be established, statusCode=407',
    'tunneling socket could not be established, cause=connect ECONNREFUSED 127.0.0.1:3128',
    'tunneling socket could not be established, cause=getaddrinfo ENOTFOUND proxy.example.com',
    'tunneling socket could not be established, cause=write EPROTO error:0A00010B:SSL routines::wrong version number',
  ])('tell whose proxy does not lead to the service: %s', (detail) => {
    const failure = requestFailure({ code: 'ECONNRESET', summary: 'could not reach it', detail, address: 'https://localhost' })
    expect(toFailure(failure, 'It')).toMatchObject({
      code: 'E_UNAVAILABLE',
      next: 'The proxy did not lead there: check HTTPS_PROXY, with its port and its password, and name hosts that need no proxy in NO_PROXY.',
    })
  })

  it('name the inputs of a field that was refused', () => {
    const detail = 'body.source_revision_config.repo_ref: no such branch'
    expect(toFailure(httpFailure(422, { detail }), 'It').next).toBe(
      `${ERROR_CODES.E_VALIDATION.remedy} In the workflow \`repo_ref\` is \`repo-ref\` or \`tag\`.`,
    )
  })

  it('show the beginning of an answer that was not understood', () => {
    const failure = toFailure(requestFailure({ kind: 'protocol', code: 'html', excerpt: '<html>Sign in' }), 'It')
    expect(failure.message).toContain('The answer began with: <html>Sign in')
  })
})

describe('the status', () => {
  it('is failed, but for the codes that have one of their own', () => {
    expect([statusOf('E_TIMEOUT'), statusOf('E_CANCELLED'), statusOf('E_SUPERSEDED'), statusOf('E_BUILD_FAILED')]).toEqual([
      'timed-out',
      'cancelled',
      'superseded',
      'failed',
    ])
  })
})
