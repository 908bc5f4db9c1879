import { setTimeout as sleep } from 'node:timers/promises'
import type { BuildLog } from '../../build-log.ts'
import { StartFailure } from '../runtime.ts'

const PAUSE_MS = 1000
const PAUSE_MAX_MS = 10_000
const REASON_MAX = 600

/** An answer other than the one that was asked for, to a request of our own. */
export class ClusterRefusal extends Error {
  readonly code: number
  readonly body: string

  constructor(code: number, body: string) {
    super(`status ${code}`)
    this.code = code
    this.body = body
  }
}

/**
 * Whoever gives the credentials did not; the API was not asked. The message is a sentence of ours, and there is no cause: what was said
 * instead may hold a token.
 */
export class LoginFailure extends Error {}

interface ApiError extends Error {
  readonly code?: unknown
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** The status of the API's answer; undefined when there was none. */
export function statusOf(error: unknown): number | undefined {
  const { code } = error as ApiError
  return typeof code === 'number' ? code : undefined
}

/** Whether the API did not answer, or said that it cannot at present, or could not be asked for want of credentials. */
export function isAway(error: unknown): boolean {
  if (error instanceof LoginFailure) return true
  const status = statusOf(error)
  if (status !== undefined) return status === 429 || status >= 500
  const { name } = error as Error
  return name === 'TimeoutError' || name === 'AbortError' || name === 'SocketError' || isFailedFetch(error)
}

function isFailedFetch(error: unknown): boolean {
  return error instanceof TypeError && /fetch failed|terminated/.test(error.message)
}

/** What the API says, in one line without a full stop. */
export function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  const said = messageIn((error as ApiError).body)
  const status = statusOf(error)
  if (said !== null) return oneLine(said)
  if (status !== undefined) return status === 401 ? 'the credentials are not accepted (status 401)' : `status ${status}`
  return oneLine(cause instanceof Error && cause.message !== '' ? cause.message : message)
}

/** The message of a `Status` object, which arrives as text or parsed. */
function messageIn(body: unknown): string | null {
  if (typeof body === 'string') {
    try {
      return messageIn(JSON.parse(body))
    } catch {
      return null
    }
  }
  const message = (body as { message?: unknown } | null | undefined)?.message
  return typeof message === 'string' && message !== '' ? message : null
}

/** Text of the cluster as a part of a sentence. */
export function oneLine(text: string): string {
  const line = text
    .replace(/[\s\x00-\x1f\x7f]+/g, ' ')
    .trim()
    .replace(/\.$/, '')
  return line.length > REASON_MAX ? `${line.slice(0, REASON_MAX)}…` : line
}

/**
 * Asks the API until it answers: one that is away for a moment is nobody's failure. Waits as long as it asks for (`Retry-After`).
 * @throws {StartFailure} when the signal ends the wait; what the API answers, when that is an error.
 */
export async function askStubbornly<T>(
  ask: () => Promise<T>,
  { log, signal }: { log: BuildLog; signal: AbortSignal },
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    let failure: unknown
    try {
      return await ask()
    } catch (error) {
      if (!isAway(error)) throw error
      failure = error
    }
    if (attempt === 1) log.write('WARNING', `The cluster's API does not answer; trying again: ${reasonOf(failure)}`)
    await sleep(pauseAfter(failure), undefined, { signal }).catch(() => undefined)
    if (signal.aborted) throw new StartFailure(`The cluster's API did not answer: ${reasonOf(failure)}.`)
  }
}

export function pauseAfter(error: unknown): number {
  const asked = Number((error as ApiError).headers?.['retry-after'])
  return asked > 0 ? Math.min(asked * 1000, PAUSE_MAX_MS) : PAUSE_MS
}
