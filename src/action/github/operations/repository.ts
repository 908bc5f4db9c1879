import { GithubFailure } from '../failure.ts'
import type { Send } from '../request.ts'

/** What every operation works with. */
export type Repository = { owner: string; repo: string; send: Send }

/** True for GitHub's own 404; a page of HTML is some proxy's. */
export function isNotFound(error: unknown): boolean {
  return error instanceof GithubFailure && error.status === 404 && error.request.excerpt === null
}
