import { parseStepInputs, type RawInputs } from '../../../../src/action/inputs.ts'
import { run } from '../../../../src/action/main.ts'
import type { GithubContext } from '../../../../src/action/github/context.ts'
import type { Github, PullRequest } from '../../../../src/action/github/github.ts'
import type { ActionFailure } from '../../../../src/action/report/error-codes.ts'
import type { ControlPlane } from '../../../../src/client/control-plane.ts'
import { fakeDeps, type TestDeps } from '../../support/deps.ts'
import { githubContext } from '../../support/github.ts'
import { DEFAULT_INPUTS } from '../../support/inputs.ts'

export type Ended = TestDeps & { status: string | undefined; code: string | undefined; failure: ActionFailure | undefined }

/** The event of a pull request, as it was when it happened. */
export function pullRequestEvent(
  { number, state, headRef, headSha, headRepository }: PullRequest,
  action: string,
): GithubContext {
  const repo = headRepository === null ? null : { full_name: headRepository }
  return githubContext({
    eventName: 'pull_request',
    ref: `refs/pull/${number}/merge`,
    payload: { action, number, pull_request: { number, state, head: { ref: headRef, sha: headSha, repo } } },
  })
}

/** Runs one step of these modes in this process. */
export async function runStep({
  raw = {},
  context,
  controlPlane,
  github,
  deps = fakeDeps(),
}: {
  raw?: Partial<RawInputs>
  context: GithubContext
  controlPlane: ControlPlane
  github: Github | undefined
  deps?: TestDeps
}): Promise<Ended> {
  const given = { ...DEFAULT_INPUTS, 'deployment-name': 'agent', mode: 'preview', ...raw }
  const all = { ...deps, controlPlane, once: controlPlane, github, context }
  const outcome = await run(parseStepInputs(given, context, deps.effects.now()), all)
  const failure = 'failure' in outcome ? outcome.failure : undefined
  return { ...all, status: 'status' in outcome ? outcome.status : undefined, code: failure?.code, failure }
}
