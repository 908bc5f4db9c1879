import { describe, expect, it } from 'vitest'
import { RequestFailure } from '../../src/client/failure.ts'
import { httpFailure } from '../support/request-failure.ts'

describe('a failure', () => {
  it('keeps its class and its fields when some of them change', () => {
    const failure = httpFailure(500, { detail: 'd', excerpt: 'e', requestId: 'r', retryAfterMs: 1, ambiguous: true })
    const changed = failure.with({ attempts: 3 })
    expect(changed).toBeInstanceOf(RequestFailure)
    expect(changed).toMatchObject({ kind: 'http', excerpt: 'e', requestId: 'r', retryAfterMs: 1, ambiguous: true, attempts: 3 })
    expect(changed.message).toBe('GET /v2/deployments answered 500 (tried 3 times): d')
  })
})
