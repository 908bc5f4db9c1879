import type { GithubContext } from '../../../src/action/github/context.ts'

/** A push to `main` of `acme/agents`. */
export function githubContext(changes: Partial<GithubContext> = {}): GithubContext {
  return {
    eventName: 'push',
    ref: 'refs/heads/main',
    sha: 'a'.repeat(40),
    repository: 'acme/agents',
    serverUrl: 'https://github.com',
    apiUrl: 'https://api.github.com',
    runId: '1',
    runAttempt: '1',
    actionRepository: 'acme/deploy-agent-server',
    payload: {},
    ...changes,
  }
}
