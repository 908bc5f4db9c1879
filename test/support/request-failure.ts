import { type FailureFields, RequestFailure } from '../../src/client/failure.ts'

/** A request that got no answer, unless a test says otherwise. */
export function requestFailure(changes: Partial<FailureFields> = {}): RequestFailure {
  return new RequestFailure({
    kind: 'network',
    method: 'GET',
    path: '/v2/deployments',
    summary: 'got no answer',
    status: null,
    code: null,
    detail: null,
    excerpt: null,
    requestId: null,
    retryAfterMs: null,
    attempts: 1,
    ambiguous: false,
    ...changes,
  })
}

/** A request that was answered with this status. */
export function httpFailure(status: number, changes: Partial<FailureFields> = {}): RequestFailure {
  return requestFailure({ kind: 'http', status, summary: `answered ${status}`, ...changes })
}
