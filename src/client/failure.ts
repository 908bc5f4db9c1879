/**
 * - `cancelled`, `deadline`: the signal said so; nothing is wrong with the service.
 * - `network`: no answer, or none in time. `code` is the system's (`ECONNREFUSED`, …) or `timeout`.
 * - `protocol`: an answer that cannot be the service's. `code` is one of `ProtocolFault`.
 * - `http`: a complete answer with a status that is not 2xx.
 * - `unsupported`: this control plane does not have the operation.
 */
export type FailureKind = 'cancelled' | 'deadline' | 'network' | 'protocol' | 'http' | 'unsupported'

export type ProtocolFault =
  | 'truncated'
  | 'malformed'
  | 'oversized'
  | 'html'
  | 'not-json'
  | 'not-a-stream'
  | 'empty'
  | 'wrong-shape'
  | 'endless-list'

/** What is known about a failed request. Every text is already redacted. */
export type FailureFields = {
  kind: FailureKind
  method: string
  /** As given to the transport: without the address's own prefix and without the query. */
  path: string
  /** What the path was joined to: the service's origin and prefix, without credentials and query. */
  address?: string | null
  /** What happened, as a clause that reads on after "GET /path". */
  summary: string
  status: number | null
  code: string | null
  /** The service's own words, or the system's. Several lines for a 422. */
  detail: string | null
  /** The beginning of the body, without control characters, 2 KB at most. */
  excerpt: string | null
  /** `X-Request-Id` of the answer. */
  requestId: string | null
  retryAfterMs: number | null
  /** How often the request was sent. */
  attempts: number
  /** The request may have been carried out: it was sent, and no complete and definite answer came back. */
  ambiguous: boolean
}

/** A request that did not give what it was made for. */
export class RequestFailure extends Error {
  override readonly name = 'RequestFailure'
  readonly kind: FailureKind
  readonly method: string
  readonly path: string
  readonly address: string | null
  readonly summary: string
  readonly status: number | null
  readonly code: string | null
  readonly detail: string | null
  readonly excerpt: string | null
  readonly requestId: string | null
  readonly retryAfterMs: number | null
  readonly attempts: number
  readonly ambiguous: boolean

  constructor(fields: FailureFields) {
    super(describe(fields))
    this.kind = fields.kind
    this.method = fields.method
    this.path = fields.path
    this.address = fields.address ?? null
    this.summary = fields.summary
    this.status = fields.status
    this.code = fields.code
    this.detail = fields.detail
    this.excerpt = fields.excerpt
    this.requestId = fields.requestId
    this.retryAfterMs = fields.retryAfterMs
    this.attempts = fields.attempts
    this.ambiguous = fields.ambiguous
  }

  /** The same failure with some fields changed; the message follows. */
  with(changes: Partial<FailureFields>): RequestFailure {
    return new RequestFailure({ ...this, ...changes })
  }
}

/** Two or more deployments have the name that was looked up: whichever is taken may be the wrong one. */
export class DuplicateNameError extends Error {
  override readonly name = 'DuplicateNameError'
  readonly deploymentName: string
  readonly ids: readonly string[]

  constructor(deploymentName: string, ids: readonly string[]) {
    super(`${ids.length} deployments are named '${deploymentName}': ${ids.join(', ')}; name the one that is meant by its id`)
    this.deploymentName = deploymentName
    this.ids = ids
  }
}

/** A list that goes on for ever. */
export function endlessList(path: string): RequestFailure {
  return new RequestFailure({
    kind: 'protocol',
    method: 'GET',
    path,
    summary: 'gave page after page without an end',
    status: 200,
    code: 'endless-list',
    detail: null,
    excerpt: null,
    requestId: null,
    retryAfterMs: null,
    attempts: 1,
    ambiguous: false,
  })
}

function describe({ method, path, summary, detail, attempts }: FailureFields): string {
  const words = detail === null ? '' : detail.includes('\n') ? `:\n${detail}` : `: ${detail}`
  const tried = attempts > 1 ? ` (tried ${attempts} times)` : ''
  return `${method} ${path} ${summary}${tried}${words}`
}
