import type { z } from 'zod'
import { deadlineOf, startDeadline } from '../../client/deadline.ts'
import type { Effects } from '../../client/effects.ts'
import { RequestFailure } from '../../client/failure.ts'
import { createRedactor, type Redact } from '../../client/redaction.ts'
import { withRetries, type OnRetry, type RetryPolicy } from '../../client/retry.ts'
import { beforeAbort } from './before-abort.ts'
import { GithubFailure, missingPermission, type Permission } from './failure.ts'
import { BLOCKED, type Facts, failureOf, type Headers, pathOf, read, responseOf, textOf } from './response.ts'

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export type GithubRequest<T> = {
  /** In the -ing form: "creating a comment". */
  operation: string
  /** What a token needs for it. */
  permission: Permission
  /** As GitHub's own description writes it: `GET /repos/{owner}/{repo}/pulls/{pull_number}`. */
  route: `${Method} /${string}`
  /** Of the path, the query and the body, by name. */
  parameters: Readonly<Record<string, unknown>>
  schema: z.ZodType<T>
  /** To send it again can do no harm. By default only for GET. */
  idempotent?: boolean
  signal: AbortSignal
}

export type GithubAnswer<T> = { body: T; link: string | undefined }

/** Sends one request, and throws a `GithubFailure`. */
export type Send = <T>(request: GithubRequest<T>) => Promise<GithubAnswer<T>>

export type SendOptions = {
  token: string
  /** `https://api.github.com`, or that of a GitHub Enterprise Server with its path. */
  apiUrl: string
  redact: Redact
  effects: Effects
  onRetry: OnRetry
  policy?: Partial<RetryPolicy>
  /** Of one attempt, to the end of the body. */
  timeoutMs?: number
}

type Octokit = { request: (options: Record<string, unknown>) => Promise<{ status: number; headers: Headers; data: unknown }> }

const POLICY: RetryPolicy = { attempts: 5, protocolAttempts: 2, baseMs: 500, capMs: 8000, maxRetryAfterMs: 300_000 }
/** Of an operation with its repetitions and waits, where the caller's signal has no deadline. */
const OPERATION_MS = 300_000
const ATTEMPT_MS = 15_000
const API_VERSION = '2022-11-28'

const noop = (): void => undefined
const silent = { debug: noop, info: noop, warn: noop, error: noop }

export function createSend({ token, apiUrl, redact, effects, onRetry, policy, timeoutMs = ATTEMPT_MS }: SendOptions): Send {
  const hide = createRedactor({ redact, values: [token] })
  const fullPolicy = { ...POLICY, ...policy }
  const baseUrl = apiUrl.replace(/\/+$/, '')
  let octokit: Promise<Octokit> | undefined

  const attempt = async <T>(
    request: GithubRequest<T>,
    signal: AbortSignal,
    seen: { accepted?: string },
  ): Promise<GithubAnswer<T>> => {
    const [method = 'GET', path = '/'] = request.route.split(' ')
    const facts: Facts = { method, path: pathOf(path, request.parameters), hide, timeoutMs, signal, now: effects.now() }
    const limit = AbortSignal.timeout(timeoutMs)
    const both = AbortSignal.any([signal, limit])
    try {
      octokit ??= createOctokit(token, baseUrl)
      const asked = (await octokit).request({
        method,
        url: path,
        ...(path === '/graphql' ? { baseUrl: baseUrl.replace(/\/api\/v3$/, '/api') } : {}),
        ...request.parameters,
        headers: { 'x-github-api-version': API_VERSION },
        request: { signal: both, log: silent },
      })
      const answer = await beforeAbort(asked, both)
      // A body that breaks off is an empty text to octokit, whatever broke it off.
      both.throwIfAborted()
      return { body: read({ answer, schema: request.schema, facts }), link: textOf(answer.headers['link']) }
    } catch (error) {
      const { headers } = responseOf(error)
      const accepted = textOf(headers['x-accepted-github-permissions'])
      if (accepted !== undefined) seen.accepted = accepted
      throw failureOf({ error, facts, timedOut: limit.aborted })
    }
  }
  return async (request) => {
    const { signal, operation, permission, route } = request
    const own = deadlineOf(signal) === null ? startDeadline({ timeoutMs: OPERATION_MS, parent: signal, effects }) : undefined
    const seen: { accepted?: string } = {}
    try {
      return await withRetries({
        send: () => attempt(request, own?.signal ?? signal, seen),
        hopeless: ({ code }) => code === BLOCKED,
        idempotent: request.idempotent ?? route.startsWith('GET '),
        signal: own?.signal ?? signal,
        policy: fullPolicy,
        effects,
        onRetry,
        onWaited: noop,
      })
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      const missing = missingPermission({ request: error, needed: permission, accepted: seen.accepted })
      throw new GithubFailure({ operation, request: error, permission: missing })
    } finally {
      own?.stop()
    }
  }
}

/**
 * Octokit as @actions/github makes it, with its proxy rules. Loaded at the first use: it reads the environment while it loads, and
 * a proxy variable that is no address must not stop a step that needs nothing of GitHub.
 */
async function createOctokit(token: string, baseUrl: string): Promise<Octokit> {
  const { GitHub, getOctokitOptions } = await import(/* webpackMode: "eager" */ '@actions/github/lib/utils')
  const options = getOctokitOptions(token, { baseUrl, userAgent: 'deploy-agent-server', log: silent })
  return new GitHub(options) as unknown as Octokit
}
