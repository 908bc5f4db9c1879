import type { RawInputs } from '../../../../src/action/inputs.ts'
import type { PullRequest } from '../../../../src/action/github/github.ts'
import type { TestDeps } from '../../support/deps.ts'
import { createHub, type Hub } from './hub.ts'
import { createService, type Service } from './service.ts'
import { type Ended, pullRequestEvent, runStep } from './step.ts'

/** The preview of the pull request 7. */
export const NAME = 'agent-pr-7'
export const HEAD = 'b'.repeat(40)

export type Scene = {
  service: Service
  hub: Hub
  /** As GitHub has it now. */
  pullRequest: PullRequest
  /** Runs a step for this event of the pull request. */
  step: (action: string, raw?: Partial<RawInputs>, options?: { github?: undefined; deps?: TestDeps }) => Promise<Ended>
}

/** The open pull request 7, and a service without deployments. */
export function scene(service: Service = createService({ headOf: () => HEAD })): Scene {
  const hub = createHub()
  const pullRequest = hub.add(7)
  const step: Scene['step'] = async (action, raw = {}, options = {}) =>
    await runStep({
      raw,
      context: pullRequestEvent({ ...pullRequest }, action),
      controlPlane: service.controlPlane,
      github: 'github' in options ? undefined : hub,
      ...(options.deps === undefined ? {} : { deps: options.deps }),
    })
  return { service, hub, pullRequest, step }
}
