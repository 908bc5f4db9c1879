import { describe, expect, it } from 'vitest'
import { GithubFailure, missingPermission, type Permission, remedyOf } from '../../../src/action/github/failure.ts'
import type { FailureFields, RequestFailure } from '../../../src/client/failure.ts'
import { RATE_LIMITED } from '../../../src/client/retry.ts'
import { httpFailure } from '../../support/request-failure.ts'

const NEEDED: Permission = 'pull-requests: read'
const REFUSAL = 'Resource not accessible by integration'

const request = (changes: Partial<FailureFields> = {}): RequestFailure =>
  httpFailure(403, { path: '/x', detail: REFUSAL, ...changes })

const missing = (accepted?: string, changes: Partial<FailureFields> = {}): Permission | null =>
  missingPermission({ request: request(changes), needed: NEEDED, accepted })

describe('a failure of GitHub', () => {
  it('says what failed, why, and what to write into the workflow', () => {
    const cause = request({ detail: 'Resource not accessible.' })
    const failure = new GithubFailure({ operation: 'reading x', request: cause, permission: NEEDED })
    expect(failure.message).toBe(
      'reading x failed: GET /x answered 403: Resource not accessible. The token lacks the permission pull-requests: read: ' +
        'add "pull-requests: read" to the permissions of the job, or give github-token a token that has it',
    )
    const { name, operation, status, permission } = failure
    expect({ name, operation, status, permission }).toEqual({
      name: 'GithubFailure',
      operation: 'reading x',
      status: 403,
      permission: NEEDED,
    })
    expect(failure.cause).toBe(cause)
    expect(failure.request).toBe(cause)
  })

  it('only supposes a permission after any other status', () => {
    const cause = request({ status: 404, summary: 'answered 404', detail: 'Not. Found' })
    expect(new GithubFailure({ operation: 'a', request: cause, permission: NEEDED }).message).toBe(
      `a failed: GET /x answered 404: Not. Found. The token may lack the permission pull-requests: read: ${remedyOf(NEEDED)}`,
    )
  })

  it('says nothing of permissions where none is missing', () => {
    expect(new GithubFailure({ operation: 'a', request: request(), permission: null }).message).toBe(
      `a failed: GET /x answered 403: ${REFUSAL}`,
    )
  })

  it.each([
    [401, null, true],
    [403, null, true],
    [403, RATE_LIMITED, false],
    [404, null, false],
    [500, null, false],
    [null, null, false],
  ])('with the status %s and the code %s is a refusal: %s', (status, code, refused) => {
    const failure = new GithubFailure({ operation: 'a', request: request({ status, code }), permission: null })
    expect(failure.isRefused).toBe(refused)
  })
})

describe('the missing permission', () => {
  it.each([
    ['no header', undefined, NEEDED],
    ['an empty one', '', NEEDED],
    ['the same one', 'pull_requests=read', NEEDED],
    ['more of the same', ' pull_requests = write ', 'pull-requests: write'],
    ['another one', 'contents=read', 'contents: read'],
    ['other ones', 'administration=write; contents=read', 'administration: write'],
    ['the same one as an alternative', 'issues=write; pull_requests=write', 'pull-requests: write'],
    ['the same one after others of its list', 'issues=read,pull_requests=write', 'issues: read'],
    ['the same one behind nonsense', 'x y=z,pull_requests=write', 'pull-requests: write'],
    ['a name of two words', 'two words=write', NEEDED],
    ['a level that there is not', 'pull_requests=admin', NEEDED],
    ['words behind the level', 'pull_requests=write now', NEEDED],
    ['words before the level', 'pull_requests=all write', NEEDED],
    ['words before the equals sign', 'issues!=write', NEEDED],
    ['a name of signs', '!issues=write', NEEDED],
    ['a name that is too long', `${'a'.repeat(65)}=write`, NEEDED],
    ['a long name', `${'a'.repeat(64)}=write`, `${'a'.repeat(64)}: write`],
  ])('with %s in the header', (_, accepted, expected) => {
    expect(missing(accepted)).toBe(expected)
  })

  it.each([
    ['is what is needed after a 404', { status: 404, detail: 'Not Found' }, NEEDED],
    ['is none of a rate limit', { code: RATE_LIMITED }, null],
    ['is none of a rate limit of 404', { code: RATE_LIMITED, status: 404 }, null],
    ['is none of an answer that is no refusal', { kind: 'protocol', status: 404 }, null],
    ['is none of a lost connection', { kind: 'network', status: null }, null],
    ['is none of another status', { status: 422 }, null],
    ['is none of a refusal without words', { detail: null }, null],
    ['is none of an archive', { detail: 'Repository was archived so is read-only.' }, null],
    ['is known by "must have admin rights"', { detail: 'Must have admin rights to Repository.' }, NEEDED],
    ['is known by "must have push access"', { detail: 'You must have push access' }, NEEDED],
    ['is known by "permission"', { detail: 'Permission denied' }, NEEDED],
    ['is known by "insufficient scope"', { detail: 'insufficient scope' }, NEEDED],
    ['is known by "missing scope"', { detail: 'Missing scope repo' }, NEEDED],
  ] as [string, Partial<FailureFields>, Permission | null][])('%s', (_, changes, expected) => {
    expect(missing(undefined, changes)).toBe(expected)
  })
})
