import { DuplicateNameError, RequestFailure } from '../../client/failure.ts'
import { RATE_LIMITED } from '../../client/retry.ts'
import { GithubFailure, remedyOf } from '../github/failure.ts'
import { isLoopback } from '../parse/address.ts'
import { ActionFailure, ERROR_CODES, type ErrorCode, toFailure } from './error-codes.ts'
import { inputsNamedIn } from './input-names.ts'

const BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'E_VALIDATION',
  401: 'E_AUTH',
  403: 'E_AUTH',
  404: 'E_NOT_FOUND',
  408: 'E_UNAVAILABLE',
  409: 'E_CONFLICT',
  422: 'E_VALIDATION',
  429: 'E_RATE_LIMITED',
}

/** The code of a failed request. */
function codeOf({ kind, status }: Pick<RequestFailure, 'kind' | 'status'>): ErrorCode {
  switch (kind) {
    case 'cancelled':
      return 'E_CANCELLED'
    case 'deadline':
      return 'E_TIMEOUT'
    case 'network':
      return 'E_UNAVAILABLE'
    case 'http':
      return BY_STATUS[status ?? 0] ?? ((status ?? 0) >= 500 ? 'E_UNAVAILABLE' : 'E_PROTOCOL')
    case 'protocol':
    case 'unsupported':
      return 'E_PROTOCOL'
  }
}

/** What is known to help, by the words of the answer. */
const HINTS: readonly { code: ErrorCode; words: RegExp; next: string | ((address: string) => string) }[] = [
  {
    code: 'E_AUTH',
    words: /requires workspace specification|org_scoped_key_requires_workspace/i,
    next: 'The key belongs to a whole organisation: set workspace-id to the workspace that holds the deployment.',
  },
  {
    code: 'E_AUTH',
    words: /not enabled for this organization/i,
    next: 'Enable deployments for the organisation, or use a key of one that has them.',
  },
  {
    code: 'E_CONFLICT',
    words: /tracing project|create a tracing project|exists a project/i,
    next: 'Each deployment has a tracing project of its name. Delete or rename the old one, or choose another deployment-name.',
  },
  {
    code: 'E_UNAVAILABLE',
    words: /tunneling socket/,
    next: 'The proxy did not lead there: check HTTPS_PROXY, with its port and its password, and name hosts that need no proxy in NO_PROXY.',
  },
  {
    code: 'E_UNAVAILABLE',
    words: /wrong version number/i,
    next: (address) =>
      URL.canParse(address) && isLoopback(new URL(address).hostname)
        ? `It speaks plain http there: write ${address.replace(/^https:/, 'http:')} in control-plane-url.`
        : 'It speaks plain http there: check the host and the port in control-plane-url. With http:// the key would travel unencrypted.',
  },
  {
    code: 'E_UNAVAILABLE',
    words: /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|certificate/,
    next: 'The certificate is not trusted: name its authority in NODE_EXTRA_CA_CERTS, or correct control-plane-url.',
  },
  {
    code: 'E_UNAVAILABLE',
    words: /ENOTFOUND|EAI_AGAIN/,
    next: 'The host name does not resolve: check control-plane-url, or region, and the proxy.',
  },
  {
    code: 'E_UNAVAILABLE',
    words: /ECONNREFUSED/,
    next: 'Nothing listens there: check control-plane-url, and that the control plane runs.',
  },
]

/**
 * Whatever a request threw, as the failure of the step. `doing` is a clause in the -ing form with a capital: "Finding the
 * deployment 'agent'".
 */
export function requestFailure(error: unknown, doing: string): ActionFailure {
  if (error instanceof DuplicateNameError) {
    return new ActionFailure({
      code: 'E_CONFLICT',
      happened: `${doing} failed: ${error.message}.`,
      next: 'Set deployment-id to the one that is meant, in place of deployment-name.',
      cause: error,
    })
  }
  if (error instanceof GithubFailure) return githubFailure(error, doing)
  if (!(error instanceof RequestFailure)) return toFailure(error)
  const code = codeOf(error)
  const words = [error.code, error.detail, error.excerpt].filter((part) => part !== null).join(' ')
  const { next } = HINTS.find((candidate) => candidate.code === code && candidate.words.test(words)) ?? {}
  const told = typeof next === 'function' ? next(error.address ?? '') : (next ?? remedyInInputs(code, words))
  return new ActionFailure({
    code,
    happened: [`${doing} failed: ${sentence(error.message)}`, ...asked(error, code), ...evidence(error)].join('\n'),
    tried: tried(error),
    ...(told === undefined ? {} : { next: forAddress(told, error.path) }),
    cause: error,
  })
}

/** A failure of GitHub, where the step cannot go on without it. */
function githubFailure(error: GithubFailure, doing: string): ActionFailure {
  const { request, permission } = error
  const code = request.code === RATE_LIMITED ? 'E_RATE_LIMITED' : codeOf(request)
  const next =
    permission === null
      ? 'Check github-token, and https://www.githubstatus.com; then run the step again.'
      : `${remedyOf(permission).replace(/^a/, 'A')}.`
  return new ActionFailure({
    code,
    happened: [`${doing} failed: GitHub: ${sentence(error.message)}`, ...evidence(request)].join('\n'),
    tried: tried(request),
    next,
    cause: error,
  })
}

/** Exports go through the main API, whose address is another input. */
function forAddress(next: string, path: string): string {
  return path.startsWith('/api/v1/') ? next.replaceAll('control-plane-url', 'api-url').replace('control plane', 'service') : next
}

/** The remedy of a refused value, with the inputs that its field is fed by. */
function remedyInInputs(code: ErrorCode, words: string): string | undefined {
  const names = code === 'E_VALIDATION' ? inputsNamedIn(words) : undefined
  return names === undefined ? undefined : `${ERROR_CODES[code].remedy} ${names}`
}

/** Where the request went, for the codes whose usual cause is an address that nobody meant. */
function asked({ address }: RequestFailure, code: ErrorCode): string[] {
  return address === null || (code !== 'E_AUTH' && code !== 'E_PROTOCOL') ? [] : [`The address that was asked: ${address}`]
}

function evidence({ kind, detail, excerpt, requestId }: RequestFailure): string[] {
  const answer =
    excerpt !== null && detail === null && (kind === 'protocol' || kind === 'http')
      ? [`The answer began with: ${excerpt.slice(0, 300)}`]
      : []
  return requestId === null ? answer : [...answer, `Request id: ${requestId}`]
}

function tried({ method, path, attempts, ambiguous }: RequestFailure): string {
  const times = attempts === 1 ? 'once' : `${attempts} times`
  const doubt = ambiguous && method !== 'GET' ? ' No complete answer came back: it may have been carried out.' : ''
  return `${method} ${path} was sent ${attempts === 0 ? 'not at all' : times}.${doubt}`
}

/** Words of somebody else, ended as a sentence. */
export function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}
