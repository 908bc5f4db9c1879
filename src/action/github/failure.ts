import type { RequestFailure } from '../../client/failure.ts'
import { RATE_LIMITED } from '../../client/retry.ts'

/** A permission of a token as a workflow's `permissions:` writes it: `deployments: write`. */
export type Permission = `${string}: ${'read' | 'write'}`

/** What GitHub says of a token that may not, in all the ways that have been seen. */
const NOT_ALLOWED = /resource not accessible|must have .*(rights|access)|permission|insufficient scope|missing scope/i

/**
 * An operation on GitHub that failed. `status` is that of the last answer, null when there was none. `permission` is what the token
 * lacks; after a 404 it is only what it may lack, since GitHub hides what a token may not see. Every text is redacted.
 */
export class GithubFailure extends Error {
  override readonly name = 'GithubFailure'
  /** In the -ing form, with a small letter: "creating a deployment record". */
  readonly operation: string
  readonly status: number | null
  readonly permission: Permission | null
  /** The request that failed: its kind, attempts, whether it may have been carried out. */
  readonly request: RequestFailure

  constructor({ operation, request, permission }: { operation: string; request: RequestFailure; permission: Permission | null }) {
    const certain = request.status === 403
    const lacks =
      permission === null
        ? ''
        : `. The token ${certain ? 'lacks' : 'may lack'} the permission ${permission}: ${remedyOf(permission)}`
    super(`${operation} failed: ${request.message.replace(/\.$/, '')}${lacks}`, { cause: request })
    this.operation = operation
    this.status = request.status
    this.permission = permission
    this.request = request
  }

  /** True when the token may not: to ask again is useless, and so is to ask for anything else that needs the same permission. */
  get isRefused(): boolean {
    return this.status === 401 || (this.status === 403 && this.request.code !== RATE_LIMITED)
  }
}

/** What to write into the workflow. */
export function remedyOf(permission: Permission): string {
  return `add "${permission}" to the permissions of the job, or give github-token a token that has it`
}

/**
 * The permission that an answer says is missing; `needed` is the one that the operation is known to need, and `accepted` is GitHub's
 * own header: alternatives separated by semicolons, each a list of `name=level`.
 */
export function missingPermission({
  request,
  needed,
  accepted,
}: {
  request: RequestFailure
  needed: Permission
  accepted: string | undefined
}): Permission | null {
  if (request.kind !== 'http' || request.code === RATE_LIMITED) return null
  if (request.status === 404) return needed
  if (request.status !== 403 || !NOT_ALLOWED.test(request.detail ?? '')) return null
  const alternatives = (accepted ?? '').split(';').flatMap((list) => permissionsIn(list)[0] ?? [])
  const named = alternatives.find((alternative) => nameOf(alternative) === nameOf(needed))
  // What this operation lacks may be less than what the step needs of the same name.
  if (named !== undefined) return named.endsWith('write') ? named : needed
  return alternatives[0] ?? needed
}

function nameOf(permission: Permission): string {
  return permission.replace(/:.*/, '')
}

function permissionsIn(list: string): Permission[] {
  return list.split(',').flatMap((entry): Permission[] => {
    const [, name, level] = /^\s*([a-z_]{1,64})\s*=\s*(read|write)\s*$/.exec(entry) ?? []
    if (name === undefined) return []
    return [`${name.replaceAll('_', '-')}: ${level === 'write' ? 'write' : 'read'}`]
  })
}
