import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { startDeadline } from '../../src/client/deadline.ts'
import type { FailureFields, RequestFailure } from '../../src/client/failure.ts'
import {
  backoffMs,
  DEFAULT_RETRY_POLICY,
  mayRepeat,
  parseRetryAfter,
  withRetries,
  type RetryEvent,
} from '../../src/client/retry.ts'
import { httpFailure } from '../support/request-failure.ts'
import { failureOf, unaborted } from './support/fixtures.ts'
import { virtualEffects } from './support/virtual-effects.ts'

const NOW = Date.UTC(2026, 0, 1, 12)

const failure = (changes: Partial<FailureFields> = {}): RequestFailure => httpFailure(503, { path: '/x', ...changes })

/** Fails with each of the failures in turn, then gives 'done'. */
function run(failures: RequestFailure[], changes: Partial<Parameters<typeof withRetries<string>>[0]> = {}) {
  const effects = virtualEffects({ start: NOW })
  const events: RetryEvent[] = []
  const waited: number[] = []
  let sends = 0
  const pending = withRetries<string>({
    send: async () => {
      const next = failures[sends++]
      if (next !== undefined) throw next
      return 'done'
    },
    idempotent: true,
    signal: unaborted(),
    policy: DEFAULT_RETRY_POLICY,
    effects,
    onRetry: (event) => events.push(event),
    onWaited: (_failure, ms) => waited.push(ms),
    ...changes,
  })
  return { pending, effects, events, waited, sends: () => sends }
}

describe('parseRetryAfter', () => {
  it.each([
    ['0', 0],
    ['7', 7000],
    [' 120 ', 120_000],
    ['1.5', 1500],
    ['1.25', 1250],
    ['1 Jan 2030 (Tue)', null],
    ['Thu, 01 Jan 2026 12:00:30 GMT', 30_000],
    ['Thu, 01 Jan 2026 11:00:00 GMT', 0],
    ['Thursday, 01-Jan-26 12:00:05 GMT', 5000],
    ['', null],
    [undefined, null],
    ['-1', null],
    ['soon', null],
    ['7 s', null],
    ['2030', 2_030_000],
    ['9999999999999999999999', null],
    ['Thursday next week', null],
    ['2026-01-01T12:00:30Z', null],
  ])('reads %j as %j', (value, expected) => {
    expect(parseRetryAfter(value, NOW)).toBe(expected)
  })

  it('gives null or a whole, not negative number for any text', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.nat().map(String),
          fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
        ),
        (value) => {
          const ms = parseRetryAfter(value, NOW)
          expect(ms === null || (Number.isSafeInteger(ms) && ms >= 0)).toBe(true)
        },
      ),
    )
  })

  it('reads every future HTTP date to the second', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000_000 }), (seconds) => {
        expect(parseRetryAfter(new Date(NOW + seconds * 1000).toUTCString(), NOW)).toBe(seconds * 1000)
      }),
    )
  })
})

describe('backoffMs', () => {
  it('doubles its bound from the base to the cap', () => {
    const bounds = [1, 2, 3, 4, 5, 6, 7].map((attempt) => backoffMs({ attempt, policy: DEFAULT_RETRY_POLICY, random: () => 1 }))
    expect(bounds).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000])
  })

  it('draws from nothing up to the bound', () => {
    expect(backoffMs({ attempt: 3, policy: DEFAULT_RETRY_POLICY, random: () => 0 })).toBe(0)
    expect(backoffMs({ attempt: 3, policy: DEFAULT_RETRY_POLICY, random: () => 0.25 })).toBe(500)
  })
})

describe('mayRepeat', () => {
  const reads: [string, Partial<FailureFields>, boolean, boolean][] = [
    ['429', { status: 429 }, true, true],
    ['408', { status: 408 }, true, false],
    ['500', { status: 500 }, true, false],
    ['503', { status: 503 }, true, false],
    ['501', { status: 501 }, false, false],
    ['505', { status: 505 }, false, false],
    ['404', { status: 404 }, false, false],
    ['422', { status: 422 }, false, false],
    ['302', { status: 302 }, false, false],
    ['a refused connection', { kind: 'network', status: null, code: 'ECONNREFUSED', ambiguous: false }, true, true],
    ['a reset connection', { kind: 'network', status: null, code: 'ECONNRESET', ambiguous: true }, true, false],
    ['an untrusted certificate', { kind: 'network', status: null, code: 'SELF_SIGNED_CERT_IN_CHAIN' }, false, false],
    ['a certificate of another host', { kind: 'network', status: null, code: 'ERR_TLS_CERT_ALTNAME_INVALID' }, false, false],
    ['an unverifiable certificate', { kind: 'network', status: null, code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' }, false, false],
    [
      'TLS to a port of plain http',
      { kind: 'network', status: null, code: 'EPROTO', detail: 'ssl3_get_record:wrong version number:' },
      false,
      false,
    ],
    ['another fault of TLS', { kind: 'network', status: null, code: 'EPROTO', detail: 'alert handshake failure' }, true, true],
    ['a truncated answer', { kind: 'protocol', code: 'truncated', ambiguous: true }, true, false],
    ['an oversized answer', { kind: 'protocol', code: 'oversized', ambiguous: true }, false, false],
    ['an endless list', { kind: 'protocol', code: 'endless-list' }, false, false],
    ['cancellation', { kind: 'cancelled' }, false, false],
    ['the deadline', { kind: 'deadline' }, false, false],
    ['a missing operation', { kind: 'unsupported', status: 404 }, false, false],
  ]
  it.each(reads)('after %s', (_what, fields, idempotent, write) => {
    expect(mayRepeat(failure(fields), true)).toBe(idempotent)
    expect(mayRepeat(failure(fields), false)).toBe(write)
  })
})

describe('a refusal that is a rate limit', () => {
  it('is one by its code, whatever its status', () => {
    expect(mayRepeat(failure({ status: 403, code: 'rate-limited' }), false)).toBe(true)
    expect(mayRepeat(failure({ status: 403 }), true)).toBe(false)
  })
})

describe('withRetries', () => {
  it('goes on until the request succeeds, and says each wait before it', async () => {
    const { pending, effects, events, waited } = run([failure(), failure({ summary: 'answered 500', status: 500 })])
    await expect(pending).resolves.toBe('done')
    expect(effects.sleeps).toEqual([500, 1000])
    expect(waited).toEqual([500, 1000])
    expect(events).toEqual([
      { attempt: 1, waitMs: 500, reason: 'answered 503', method: 'GET', path: '/x', status: 503 },
      { attempt: 2, waitMs: 1000, reason: 'answered 500', method: 'GET', path: '/x', status: 500 },
    ])
  })

  it('gives up after five attempts, and says so', async () => {
    const { pending, sends } = run(Array.from({ length: 9 }, () => failure()))
    const error = await failureOf(pending)
    expect(error).toMatchObject({ attempts: 5, status: 503, message: 'GET /x answered 503 (tried 5 times)' })
    expect(sends()).toBe(5)
  })

  it('gives up sooner on answers that cannot be the service', async () => {
    const { pending, sends } = run(Array.from({ length: 9 }, () => failure({ kind: 'protocol', code: 'html', status: 200 })))
    expect((await failureOf(pending)).attempts).toBe(3)
    expect(sends()).toBe(3)
  })

  it('does not repeat what cannot help', async () => {
    const { pending, effects } = run([failure({ status: 404 })])
    expect((await failureOf(pending)).attempts).toBe(1)
    expect(effects.sleeps).toEqual([])
  })

  it('passes on errors that are no failures of a request', async () => {
    const mistake = new TypeError('a mistake')
    const { pending } = run([], { send: () => Promise.reject(mistake) })
    await expect(pending).rejects.toBe(mistake)
  })

  it('waits as long as Retry-After asks, and never shorter than its own backoff', async () => {
    const { pending, effects } = run([failure({ retryAfterMs: 45_000 }), failure({ retryAfterMs: 0 })])
    await pending
    expect(effects.sleeps).toEqual([45_000, 1000])
  })

  it('refuses a Retry-After beyond the deadline at once', async () => {
    const effects = virtualEffects({ start: NOW })
    const deadline = startDeadline({ timeoutMs: 30_000, parent: unaborted(), effects })
    const { pending } = run([failure({ status: 429, summary: 'answered 429', retryAfterMs: 120_000 })], {
      effects,
      signal: deadline.signal,
    })
    const error = await failureOf(pending)
    deadline.stop()
    expect(error.message).toBe('GET /x answered 429 and asked to wait 120 s, but what is left of the time is 30 s')
    expect(error.kind).toBe('http')
    expect(effects.sleeps).toEqual([])
  })

  it('does not speak of a wait that nobody asked for, when the time is over already', async () => {
    const effects = virtualEffects({ start: NOW })
    const deadline = startDeadline({ timeoutMs: 1000, parent: unaborted(), effects })
    effects.advance(1500)
    const { pending } = run([failure()], { signal: deadline.signal, effects })
    expect((await failureOf(pending)).message).toBe('GET /x answered 503')
    expect(effects.sleeps).toEqual([])
    deadline.stop()
  })

  it('refuses an absurd Retry-After where there is no deadline', async () => {
    const { pending, effects } = run([failure({ retryAfterMs: 86_400_000 })])
    expect((await failureOf(pending)).message).toContain('asked to wait 86400 s, but the longest wait is 3600 s')
    expect(effects.sleeps).toEqual([])
  })

  it('begins no backoff that would end after the deadline', async () => {
    const effects = virtualEffects({ start: NOW })
    const deadline = startDeadline({ timeoutMs: 700, parent: unaborted(), effects })
    const { pending, sends } = run([failure(), failure()], { effects, signal: deadline.signal })
    expect(await failureOf(pending)).toMatchObject({ kind: 'http', status: 503, attempts: 2 })
    deadline.stop()
    expect(effects.sleeps).toEqual([500])
    expect(sends()).toBe(2)
  })

  it.each([
    ['its own backoff would end at the deadline', { timeoutMs: 500, retryAfterMs: null }, 'GET /x answered 503'],
    ['its own backoff is longer than what it was asked to wait', { timeoutMs: 400, retryAfterMs: 100 }, 'GET /x answered 503'],
    [
      'it was asked to wait until the deadline',
      { timeoutMs: 2000, retryAfterMs: 2000 },
      'GET /x answered 503 and asked to wait 2 s, but what is left of the time is 2 s',
    ],
  ])('says why it does not wait: %s', async (_why, { timeoutMs, retryAfterMs }, says) => {
    const effects = virtualEffects({ start: NOW })
    const deadline = startDeadline({ timeoutMs, parent: unaborted(), effects })
    const { pending } = run([failure({ retryAfterMs })], { effects, signal: deadline.signal })
    expect((await failureOf(pending)).message).toBe(says)
    deadline.stop()
    expect(effects.sleeps).toEqual([])
  })

  it.each([
    [new Error('stop'), 'cancelled', 'was cancelled'],
    [new DOMException('over', 'TimeoutError'), 'deadline', 'ran out of time'],
  ])('ends a wait when the signal aborts with %s', async (reason, kind, words) => {
    const controller = new AbortController()
    const { pending, waited } = run([failure()], { signal: controller.signal, onRetry: () => controller.abort(reason) })
    const error = await failureOf(pending)
    expect(error).toMatchObject({ kind, attempts: 1, status: 503 })
    expect(error.message).toBe(`GET /x ${words} while waiting to repeat it, after it answered 503`)
    expect(waited).toEqual([0])
  })
})
