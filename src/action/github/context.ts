/** What the runner says about the workflow: the part of its environment that the action uses. */
export type GithubContext = {
  eventName: string
  /** `GITHUB_REF`: `refs/heads/…`, `refs/tags/…`, `refs/pull/…`. */
  ref: string
  sha: string
  /** `owner/name`. */
  repository: string
  serverUrl: string
  /** `https://api.github.com`, or that of a GitHub Enterprise Server, whose path is `/api/v3`. */
  apiUrl: string
  runId: string
  runAttempt: string
  /** `owner/name` of this action, when it runs from a repository. */
  actionRepository: string
  payload: Record<string, unknown>
}

/** Reads the context. A payload that is missing or not JSON is an empty one: whoever needs a field of it says so. */
export function readGithubContext(env: NodeJS.ProcessEnv, readFile: (path: string) => string): GithubContext {
  const text = (name: string): string => env[name]?.trim() ?? ''
  return {
    eventName: text('GITHUB_EVENT_NAME'),
    ref: text('GITHUB_REF'),
    sha: text('GITHUB_SHA'),
    repository: text('GITHUB_REPOSITORY'),
    serverUrl: text('GITHUB_SERVER_URL').replace(/\/+$/, '') || 'https://github.com',
    apiUrl: text('GITHUB_API_URL').replace(/\/+$/, '') || 'https://api.github.com',
    runId: text('GITHUB_RUN_ID'),
    runAttempt: text('GITHUB_RUN_ATTEMPT'),
    actionRepository: text('GITHUB_ACTION_REPOSITORY'),
    payload: readPayload(text('GITHUB_EVENT_PATH'), readFile),
  }
}

function readPayload(path: string, readFile: (path: string) => string): Record<string, unknown> {
  if (path === '') return {}
  try {
    const payload: unknown = JSON.parse(readFile(path))
    return typeof payload === 'object' && payload !== null && !Array.isArray(payload) ? { ...payload } : {}
  } catch {
    return {}
  }
}
