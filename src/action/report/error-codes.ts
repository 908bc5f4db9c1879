import type { Status } from '../registry.ts'

/** Every failure has one of these codes. The README's troubleshooting has a section for each, from this table. */
export const ERROR_CODES = {
  E_INPUT: {
    title: 'Bad input',
    meaning: 'An input, or the environment of the step, cannot be used. Inputs are checked before the first request.',
    remedy: 'Correct the inputs that the message names; it says for each what is accepted.',
  },
  E_AUTH: {
    title: 'Not allowed',
    meaning:
      'The control plane refused the API key, or the key may not do this; or GitHub refused `github-token`, where the step cannot go ' +
      'on without it: the message then names the permission that the job needs.',
    remedy:
      'Check that `api-key` is one of the region or control plane whose address the message names; a key of a whole organisation ' +
      'needs `workspace-id`.',
  },
  E_NOT_FOUND: {
    title: 'Not found',
    meaning: 'The deployment or revision does not exist in this workspace, or was deleted while the step waited for it.',
    remedy: 'Check `deployment-id` and `workspace-id`: another workspace\'s deployment is "not found" as well.',
  },
  E_CONFLICT: {
    title: 'Conflict with what exists',
    meaning:
      'What is wanted contradicts what is there: a field that is fixed at creation, or a name that is taken; or what is to be ' +
      'promoted is not what was proven.',
    remedy:
      'Take over the value that is live, or deploy under another name. Before a promotion: deploy the commit of the tag to the ' +
      'deployment that `promote-from` names, with `environment` and `smoke-test-input`.',
  },
  E_VALIDATION: {
    title: 'Refused by the control plane',
    meaning: 'The control plane understood the request and refused a value in it. The message names the place as a path.',
    remedy: 'Correct the input that feeds the named field.',
  },
  E_RATE_LIMITED: {
    title: 'Too many requests',
    meaning: 'The control plane, or GitHub, went on refusing for its rate limit until the retries or the time were used up.',
    remedy: 'Run fewer deployments at once, or later; another client may be using the same key or token.',
  },
  E_UNAVAILABLE: {
    title: 'Service unavailable',
    meaning:
      'No usable answer came from the control plane, or from GitHub where the step cannot go on without it: the network failed, or ' +
      'the answers were server errors.',
    remedy:
      'Check the address, proxy and certificates, and the state of the service that the message names; then run the step again.',
  },
  E_PROTOCOL: {
    title: 'Unexpected behaviour',
    meaning:
      'Something that the contract rules out: an answer of the wrong shape, HTML, a revision that is `DEPLOYED` and does not serve half a ' +
      'minute later; or an "internal error" of this action.',
    remedy: 'Check that the address is that of a control plane and not of a proxy or login page; report an internal error.',
  },
  E_CREATE_FAILED: {
    title: 'Creating the deployment failed',
    meaning: 'The revision ended in `CREATE_FAILED`: the service could not set up what the deployment runs on.',
    remedy: 'Read the end of the log in the job summary, where there is one; the quota of the plan is a usual cause.',
  },
  E_BUILD_FAILED: {
    title: 'Build failed',
    meaning: 'The revision ended in `BUILD_FAILED`. The revision that served before still serves.',
    remedy: 'Read the end of the build log in the job summary, correct the source, and deploy again.',
  },
  E_DEPLOY_FAILED: {
    title: 'Deploy failed',
    meaning: 'The revision was built, but its agent server did not come up. The revision that served before still serves.',
    remedy: 'Read the end of the deploy log in the job summary; a missing variable in `secrets` is a usual cause.',
  },
  E_INTERRUPTED: {
    title: 'Interrupted',
    meaning: 'Somebody interrupted the revision on the control plane.',
    remedy: 'Find out who did and why; run the step again if it was a mistake.',
  },
  E_SUPERSEDED: {
    title: 'Superseded',
    meaning: 'A newer revision took the place of the one that this step made, before it served or before it was proven.',
    remedy: 'Nothing, if the newer one is wanted. Otherwise use a concurrency group, and set `build-on-push` to `false`.',
  },
  E_SMOKE_TEST: {
    title: 'Smoke test failed',
    meaning: 'The revision serves, and the agent did not answer `smoke-test-input` as it should.',
    remedy: 'Read what the agent said in the job summary, and its log on the control plane; correct the agent and deploy again.',
  },
  E_TIMEOUT: {
    title: 'Timed out',
    meaning:
      'The revision had not ended within `timeout`, or a preview was not gone by then. A revision may still succeed, unless ' +
      '`on-timeout: interrupt` stopped it.',
    remedy:
      'Look at the status of the revision, and raise `timeout` if it was merely slow. On the hosted service a first deploy takes ' +
      'about 15 minutes.',
  },
  E_DESTINATION: {
    title: 'Export destination refused',
    meaning: 'The service could not write its test file into the bucket: one of four causes, which the message names.',
    remedy:
      '"Access denied": give the key pair write access to the bucket. "Bucket is not valid": check `export-bucket` and its region. ' +
      '"Key ID you provided does not exist": check `export-access-key-id`. "Invalid endpoint": check `export-endpoint-url`, and ' +
      'leave it out for the original provider.',
  },
  E_EXPORT_FAILED: {
    title: 'Export failed',
    meaning:
      'The export ended in `FAILED`: one of its runs failed after all retries. What was written before stays in the bucket.',
    remedy: 'Read the errors of the failing runs in the job summary, correct their cause, and create a new export.',
  },
  E_EXPORT_CANCELLED: {
    title: 'Export cancelled',
    meaning: 'Somebody cancelled the export on the service. It cannot be restarted.',
    remedy: 'Find out who did and why; run the step again to create a new export.',
  },
  E_EXPORT_TIMEOUT: {
    title: 'Export timed out',
    meaning: 'The export ended in `TIMEDOUT`, or had not ended within `export-timeout`.',
    remedy:
      'Reduce the scope of the export, or split it: a shorter range, a filter, fewer fields. Raise `export-timeout` if it was ' +
      'merely slow.',
  },
  E_CANCELLED: {
    title: 'Cancelled',
    meaning: 'The workflow was cancelled. The revision goes on by itself, unless `on-cancel: interrupt` stopped it.',
    remedy: 'Nothing, if that was intended.',
  },
} as const satisfies Record<string, { title: string; meaning: string; remedy: string }>

export type ErrorCode = keyof typeof ERROR_CODES

/** `#e_build_failed`, in the README. */
export function errorAnchor(code: ErrorCode): string {
  return code.toLowerCase()
}

const STATUS_OF: Partial<Record<ErrorCode, Status>> = {
  E_TIMEOUT: 'timed-out',
  E_EXPORT_TIMEOUT: 'timed-out',
  E_CANCELLED: 'cancelled',
  E_SUPERSEDED: 'superseded',
}

/** The status that a step ends with when it fails with this code. */
export function statusOf(code: ErrorCode): Status {
  return STATUS_OF[code] ?? 'failed'
}

type FailureParts = {
  code: ErrorCode
  /** What happened: one full sentence or more. */
  happened: string
  /** What was tried, and how often; a full sentence. */
  tried?: string
  /** What to do: a full sentence. The general remedy of the code stands in where nothing better is known. */
  next?: string
  /** What became of the deployment afterwards: the story of a rollback, in full sentences. */
  aftermath?: string
  /** The status of the step, where the code does not decide it. */
  status?: Status
  cause?: unknown
}

/** The one way in which a step fails. */
export class ActionFailure extends Error {
  readonly code: ErrorCode
  readonly tried: string | undefined
  readonly next: string
  readonly aftermath: string | undefined
  readonly status: Status

  constructor({ code, happened, tried, next, aftermath, status, cause }: FailureParts) {
    super(happened, { cause })
    this.name = 'ActionFailure'
    this.code = code
    this.tried = tried
    this.next = next ?? ERROR_CODES[code].remedy
    this.aftermath = aftermath
    this.status = status ?? statusOf(code)
  }

  /** The same failure, and what became of the deployment afterwards. */
  with({ code, aftermath, status }: Pick<FailureParts, 'aftermath' | 'status'> & { code?: ErrorCode }): ActionFailure {
    const { message: happened, tried, next, cause } = this
    return new ActionFailure({
      code: code ?? this.code,
      happened,
      next,
      ...(tried === undefined ? {} : { tried }),
      ...(aftermath === undefined ? {} : { aftermath }),
      ...(status === undefined ? {} : { status }),
      cause,
    })
  }
}

/** Whatever was thrown, as a failure: what is not one already is a fault of this action. */
export function toFailure(error: unknown): ActionFailure {
  if (error instanceof ActionFailure) return error
  return new ActionFailure({
    code: 'E_PROTOCOL',
    happened: `internal error: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`,
    next: 'This is a fault of the action itself: report it, with the log of this step.',
    cause: error,
  })
}
