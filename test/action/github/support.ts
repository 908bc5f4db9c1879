import { createGithub } from '../../../src/action/github/client.ts'
import { GithubFailure } from '../../../src/action/github/failure.ts'
import type { Github } from '../../../src/action/github/github.ts'
import type { RequestFailure } from '../../../src/client/failure.ts'
import type { RetryPolicy } from '../../../src/client/retry.ts'
import { type GithubDouble, type GithubDoubleOptions, startGithubDouble } from '../../support/github-double.ts'
import { GITHUB_TOKEN } from '../../support/runner/job-environment.ts'

/** A client of the double whose waits are recorded and take no time. */
export type Connected = { double: GithubDouble; github: Github; slept: number[]; retries: string[]; signal: AbortSignal }

export async function withGithub(
  options: GithubDoubleOptions & { policy?: Partial<RetryPolicy>; timeoutMs?: number },
  body: (connected: Connected) => Promise<void>,
): Promise<void> {
  const { policy, timeoutMs, ...rest } = options
  const double = await startGithubDouble(rest)
  const slept: number[] = []
  const retries: string[] = []
  const github = createGithub({
    token: GITHUB_TOKEN,
    repository: double.state.repository,
    apiUrl: double.url,
    redact: (text) => text,
    effects: {
      now: () => Date.now(),
      random: () => 0,
      sleep: async (ms, signal) => (signal.throwIfAborted(), void slept.push(ms)),
    },
    onRetry: ({ reason }) => retries.push(reason),
    ...(policy === undefined ? {} : { policy }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })
  try {
    await body({ double, github, slept, retries, signal: new AbortController().signal })
  } finally {
    await double.stop()
  }
}

/** The `GithubFailure` that a promise rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<GithubFailure> {
  const error = await promise.then(
    () => new Error('it did not fail'),
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof GithubFailure)) throw error
  return error
}

/** What a request to GitHub ends with when it fails in this way. */
export const githubFailure = (request: RequestFailure): GithubFailure =>
  new GithubFailure({ operation: 'x', request, permission: null })
