import type { DestinationError } from '../../../contract/destination.ts'
import { ForbiddenEndpoint } from './endpoint.ts'

/** What a failed request to a bucket means. `passing`: it may well work in a moment; then there is no word of specification 7.2. */
export interface BucketVerdict {
  readonly kind: 'refused' | 'passing'
  readonly word: DestinationError | null
  /** The store's code, or what the network said. Never a text of the store: it may hold anything. */
  readonly code: string
}

/** Codes of S3, by what they mean for a destination. Texts are not looked at: stores write them as they like, or not at all. */
const WORDS: Readonly<Record<string, DestinationError>> = {
  AccessDenied: 'Access denied',
  AllAccessDisabled: 'Access denied',
  AccountProblem: 'Access denied',
  SignatureDoesNotMatch: 'Access denied',
  ExpiredToken: 'Access denied',
  InvalidToken: 'Access denied',
  TokenRefreshRequired: 'Access denied',
  InvalidSecurity: 'Access denied',
  NotSignedUp: 'Access denied',
  InvalidPayer: 'Access denied',
  RequestTimeTooSkewed: 'Access denied',
  KMSAccessDeniedException: 'Access denied',
  'KMS.DisabledException': 'Access denied',
  'KMS.NotFoundException': 'Access denied',
  CredentialsProviderError: 'Access denied',
  NoSuchBucket: 'Bucket is not valid',
  InvalidBucketName: 'Bucket is not valid',
  InvalidBucketState: 'Bucket is not valid',
  PermanentRedirect: 'Bucket is not valid',
  TemporaryRedirect: 'Bucket is not valid',
  AuthorizationHeaderMalformed: 'Bucket is not valid',
  IllegalLocationConstraintException: 'Bucket is not valid',
  InvalidRegionName: 'Bucket is not valid',
  QuotaExceeded: 'Bucket is not valid',
  InvalidAccessKeyId: 'Key ID you provided does not exist',
  UnrecognizedClientException: 'Key ID you provided does not exist',
  ForbiddenEndpoint: 'Invalid endpoint',
  NotAnS3Endpoint: 'Invalid endpoint',
}

/** The service asks for patience, or the network broke: worth another try. */
const PASSING = new Set([
  'SlowDown',
  'ServiceUnavailable',
  'InternalError',
  'OperationAborted',
  'RequestTimeout',
  'RequestTimeTooSkewed',
  'Throttling',
  'ThrottlingException',
  'TooManyRequests',
  'ConditionalRequestConflict',
  'NoSuchUpload',
  'TimeoutError',
  'AbortError',
])

/** Names and sockets that lead nowhere. While a destination is made they mean a wrong address; while an export runs, a moment to wait. */
const UNREACHABLE =
  /^(?:ENOTFOUND|EAI_AGAIN|ECONN|EPIPE|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EPROTO|ERR_TLS|CERT_|ERR_SSL|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|HPE_)/

/** The answer of a server that is no S3 store. */
export class NotAnS3Endpoint extends Error {
  override readonly name = 'NotAnS3Endpoint'
}

interface ServiceError {
  readonly name?: string
  readonly Code?: string
  readonly code?: string
  readonly cause?: unknown
  readonly $metadata?: { readonly httpStatusCode?: number }
}

/** What the error of a request to a bucket means. */
export function judgeBucketError(error: unknown): BucketVerdict {
  const { name = 'Error', Code, code, $metadata, cause } = error as ServiceError
  if (error instanceof ForbiddenEndpoint || cause instanceof ForbiddenEndpoint) return refused('Invalid endpoint', 'ForbiddenEndpoint')
  const status = $metadata?.httpStatusCode
  const said = Code ?? (name === 'Error' || name === 'UnknownError' ? (code ?? name) : name)
  if (PASSING.has(said) && said !== 'RequestTimeTooSkewed') return { kind: 'passing', word: null, code: said }
  const word = WORDS[said]
  if (word !== undefined) return refused(word, said)
  if (code !== undefined && UNREACHABLE.test(code)) return { kind: 'passing', word: 'Invalid endpoint', code }
  if (status === undefined) return { kind: 'passing', word: 'Invalid endpoint', code: said }
  if (status >= 500 || status === 429 || status === 408) return { kind: 'passing', word: null, code: `${said}, status ${status}` }
  // No code that we know: the status is all there is.
  if (status === 401 || status === 403) return refused('Access denied', `${said}, status ${status}`)
  if (status === 301 || status === 307) return refused('Bucket is not valid', `${said}, status ${status}`)
  return refused('Invalid endpoint', `${said}, status ${status}`)
}

function refused(word: DestinationError, code: string): BucketVerdict {
  return { kind: 'refused', word, code }
}
