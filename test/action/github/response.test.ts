import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { BLOCKED, type Facts, failureOf, pathOf, read, responseOf, textOf } from '../../../src/action/github/response.ts'
import { type FailureFields, RequestFailure } from '../../../src/client/failure.ts'
import { RATE_LIMITED } from '../../../src/client/retry.ts'
import { requestFailure } from '../../support/request-failure.ts'

const NOW = Date.UTC(2026, 0, 1)
const facts = (changes: Partial<Facts> = {}): Facts => ({
  method: 'GET',
  path: '/x/secret',
  hide: (text) => text.replaceAll('secret', '***'),
  timeoutMs: 1500,
  signal: new AbortController().signal,
  now: NOW,
  ...changes,
})

function fieldsOf(failure: RequestFailure): FailureFields {
  const { kind, method, path, summary, status, code, detail } = failure
  const { excerpt, requestId, retryAfterMs, attempts, ambiguous } = failure
  return { kind, method, path, summary, status, code, detail, excerpt, requestId, retryAfterMs, attempts, ambiguous }
}

const BLANK = fieldsOf(requestFailure({ path: '/x/***' }))

/** As octokit throws it. */
const answer = (status: number, data?: unknown, headers: Record<string, string | number> = {}): Error =>
  Object.assign(new Error('from octokit'), { status: 500, response: { status, headers, data } })

const failed = (error: unknown, changes: Partial<Facts> = {}, timedOut = false): FailureFields =>
  fieldsOf(failureOf({ error, facts: facts(changes), timedOut }))

const coded = (message: string, fields: Record<string, unknown>): Error => Object.assign(new Error(message), fields)

describe('a request that was not answered', () => {
  it('is the failure itself where it is one already', () => {
    const failure = failureOf({ error: new Error('x'), facts: facts(), timedOut: false })
    expect(failureOf({ error: failure, facts: facts(), timedOut: true })).toBe(failure)
  })

  it.each([
    ['AbortError', 'cancelled', 'was cancelled'],
    ['TimeoutError', 'deadline', 'ran out of time'],
  ])('because of an %s', (name, kind, summary) => {
    const signal = AbortSignal.abort(new DOMException('x', name))
    expect(failed(answer(500), { signal }, true)).toEqual({ ...BLANK, kind, summary, ambiguous: true })
  })

  it('in time says how long it was waited for', () => {
    const summary = 'got no complete answer from GitHub within 1.5 s'
    expect(failed(new Error('x'), {}, true)).toEqual({ ...BLANK, kind: 'network', code: 'timeout', summary, ambiguous: true })
  })

  const LOST = 'lost the connection to GitHub before an answer'
  const UNREACHED = 'could not reach GitHub'

  it.each([
    ['a reset', coded('read secret', { code: 'ECONNRESET' }), 'ECONNRESET', LOST, 'read ***', true],
    ['a refusal', coded('refused', { code: 'ECONNREFUSED', syscall: 'connect' }), 'ECONNREFUSED', UNREACHED, 'refused', false],
    ['a slow host', coded('slow', { code: 'UND_ERR_CONNECT_TIMEOUT' }), 'UND_ERR_CONNECT_TIMEOUT', UNREACHED, 'slow', false],
    ['a bad port', new Error('bad port'), BLOCKED, UNREACHED, 'bad port', false],
    ['no error', 'words', null, LOST, 'words', true],
    [
      'a cause within a cause',
      new Error('a', { cause: new Error('b', { cause: coded('c', { code: 'X' }) }) }),
      'X',
      LOST,
      'c',
      true,
    ],
    ['a cause that is none', new Error('a', { cause: 'b' }), null, LOST, 'a', true],
    ['a response that is none', coded('a', { response: undefined }), null, LOST, 'a', true],
  ])('because of %s', (_, error, code, summary, detail, ambiguous) => {
    expect(failed(error)).toEqual({ ...BLANK, kind: 'network', code, summary, detail, ambiguous })
  })

  it('because of causes without an end is not looked through for ever', () => {
    const chain = ['6', '5', '4', '3', '2', '1', '0'].reduce<Error | undefined>(
      (cause, message) => new Error(message, { cause }),
      undefined,
    )
    expect(failed(chain).detail).toBe('5')
  })
})

describe('an answer that is a failure', () => {
  it.each([
    ['words', answer(422, { message: 'No secret' }), { status: 422, detail: 'No ***' }],
    ['no words', answer(422, {}), { status: 422 }],
    ['null', answer(422, null), { status: 422 }],
    ['words that are none', answer(422, { message: 7, errors: 'x' }), { status: 422 }],
    ['a page', answer(422, '<p>secret</p>'), { status: 422, excerpt: '<p>***</p>' }],
    ['an empty page', answer(422, ''), { status: 422 }],
    ['an id', answer(422, {}, { 'x-github-request-id': 'A:1' }), { status: 422, requestId: 'A:1' }],
    ['a wait', answer(422, {}, { 'retry-after': '3' }), { status: 422, retryAfterMs: 3000 }],
    ['a timeout', answer(408), { status: 408, ambiguous: true }],
    ['an outage', answer(502), { status: 502, ambiguous: true }],
    ['what is not implemented', answer(501), { status: 501 }],
  ])('with %s', (_, error, expected) => {
    expect(failed(error)).toEqual({ ...BLANK, kind: 'http', summary: `answered ${expected.status}`, ...expected })
  })

  it.each([
    [{ message: 'A', errors: ['b', { message: 'c' }, { field: 'd', code: 'e' }, { code: 'f' }, 7] }, 'A; b; c; d e; f'],
    [{ message: '', errors: [null, { field: 7, code: 8 }, 'b'] }, 'b'],
    [{ message: 'A', errors: ['1', '2', '3', '4', '5', '6'] }, 'A; 1; 2; 3; 4; 5'],
    [{ message: 'x'.repeat(1001) }, 'x'.repeat(1000)],
    [{ errors: [] }, null],
  ])('tells the words of %#', (data, detail) => {
    expect(failed(answer(422, data)).detail).toBe(detail)
  })

  const reset = String(NOW / 1000 + 30)
  it.each([
    ['the wait that is asked for', 403, { 'retry-after': '5' }, '', 5000],
    ['the wait that is asked for', 429, { 'retry-after': 5 }, '', 5000],
    ['the primary limit', 403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset }, '', 31_000],
    ['the primary limit, in numbers', 429, { 'x-ratelimit-remaining': 0, 'x-ratelimit-reset': Number(reset) }, '', 31_000],
    ['a primary limit that is over', 403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1' }, '', 1000],
    [
      'the wait before the primary limit',
      403,
      { 'retry-after': '5', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset },
      '',
      5000,
    ],
    ['a secondary limit', 403, {}, 'You have exceeded a secondary Rate Limit', 60_000],
    ['abuse', 403, {}, 'You have triggered an abuse detection mechanism', 60_000],
    ['too many requests', 429, {}, '', 60_000],
    ['too many requests, with some left', 429, { 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': reset }, '', 60_000],
    ['a reset that is none', 429, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': 'soon' }, '', 60_000],
    ['no reset', 429, { 'x-ratelimit-remaining': '0' }, '', 60_000],
  ] as [string, number, Record<string, string | number>, string, number][])(
    'is a rate limit: %s (%s)',
    (_, status, headers, message, retryAfterMs) => {
      const { summary, code, retryAfterMs: waits, ambiguous } = failed(answer(status, { message }, headers))
      expect({ summary, code, waits, ambiguous }).toEqual({
        summary: `answered ${status}, a rate limit`,
        code: RATE_LIMITED,
        waits: retryAfterMs,
        ambiguous: false,
      })
    },
  )

  it.each([
    ['other words', 403, {}, 'Forbidden'],
    ['some requests left', 403, { 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': reset }, ''],
    ['a reset that is none', 403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '' + 2 ** 60 }, ''],
    ['another status', 422, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset }, 'rate limit'],
  ] as [string, number, Record<string, string>, string][])('is none with %s', (_, status, headers, message) => {
    expect(failed(answer(status, { message }, headers))).toMatchObject({
      code: null,
      retryAfterMs: null,
      summary: `answered ${status}`,
    })
  })
})

describe('the body of an answer', () => {
  const schema = z.object({ a: z.number(), b: z.object({ c: z.number() }), d: z.number(), e: z.number() })
  const readFailure = (data: unknown, as: z.ZodType = schema): FailureFields => {
    try {
      read({ answer: { status: 200, headers: {}, data }, schema: as, facts: facts() })
    } catch (error) {
      if (error instanceof RequestFailure) return fieldsOf(error)
      throw error
    }
    throw new Error('it was read')
  }

  it('is what the schema makes of it', () => {
    const number = z.object({ a: z.number() })
    expect(read({ answer: { status: 200, headers: {}, data: { a: 1, b: 2 } }, schema: number, facts: facts() })).toEqual({ a: 1 })
  })

  it.each([
    ['empty', '  \n', 'answered 200 with an empty or broken body', null],
    ['html', ' <html>secret', 'answered 200 with HTML instead of JSON, as a sign-in page or a proxy does', '<html>***'],
    ['not-json', ' a secret <', 'answered 200 with something that is not JSON', 'a *** <'],
  ])('is no %s', (code, data, summary, excerpt) => {
    expect(readFailure(data)).toEqual({ ...BLANK, kind: 'protocol', status: 200, code, summary, excerpt, ambiguous: true })
  })

  it('has its shape; at most three faults are told', () => {
    const issue = 'Invalid input: expected number, received undefined'
    expect(readFailure({ b: {} })).toEqual({
      ...BLANK,
      kind: 'protocol',
      status: 200,
      code: 'wrong-shape',
      summary: 'answered 200 with JSON of an unexpected shape',
      detail: `a: ${issue}; b.c: ${issue}; d: ${issue}`,
      ambiguous: true,
    })
    expect(readFailure([], z.number()).detail).toBe('body: Invalid input: expected number, received array')
  })
})

describe('the parts of a request', () => {
  it('has its values in the path', () => {
    const parameters = { owner: 'a', 'no-word': 'x', ref: 'tags/ü ?', number: 7, broken: '\ud800' }
    expect(pathOf('/r/{owner}/{ref}/{number}/{none}/{no-word}/{broken}', parameters)).toBe(
      '/r/a/tags%2F%C3%BC%20%3F/7//{no-word}/%EF%BF%BD',
    )
  })

  it('has headers as texts', () => {
    expect([textOf(undefined), textOf(0), textOf('x')]).toEqual([undefined, '0', 'x'])
  })

  it.each([[null], [{ response: { status: 1 } }], [new Error('x')]])('has no response in %s', (error) => {
    expect(responseOf(error)).toEqual({ status: null, headers: {}, data: undefined })
  })

  it('has the response of an error', () => {
    expect(responseOf(answer(422, 'x', { a: '1' }))).toEqual({ status: 422, headers: { a: '1' }, data: 'x' })
  })
})
