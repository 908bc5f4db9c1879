import { type AgentServer, createAgentServer } from '../client/agent-server.ts'
import { type ControlPlane, createControlPlane } from '../client/control-plane.ts'
import type { Effects } from '../client/effects.ts'
import type { OnRetry, RetryPolicy } from '../client/retry.ts'
import { createTransport } from '../client/transport.ts'
import { API_KEY_HEADER, TENANT_ID_HEADER } from '../contract/headers.ts'
import type { Inputs } from './inputs.ts'
import { formatDuration } from './parse/duration.ts'
import type { Log } from './report/log.ts'

const ONCE: Partial<RetryPolicy> = { attempts: 1, protocolAttempts: 1 }

/** The clients of one step. */
export function connect({
  inputs,
  effects,
  log,
  redact,
}: {
  inputs: Pick<Inputs, 'apiKey' | 'workspaceId' | 'controlPlaneUrl' | 'dialect'>
  effects: Effects
  log: Pick<Log, 'info'>
  redact: (text: string) => string
}): {
  controlPlane: ControlPlane
  once: ControlPlane
  agentServer: (url: string) => AgentServer
  waitedForRateLimitMs: () => number
} {
  const onRetry: OnRetry = ({ method, path, reason, waitMs }) =>
    log.info(`${method} ${path} ${reason}: trying again in ${formatDuration(waitMs)}.`)
  const options = {
    baseUrl: inputs.controlPlaneUrl,
    headers: {
      [API_KEY_HEADER]: inputs.apiKey,
      ...(inputs.workspaceId === undefined ? {} : { [TENANT_ID_HEADER]: inputs.workspaceId }),
    },
    redact,
    userAgent: 'deploy-agent-server',
    effects,
  }
  const transport = createTransport({ ...options, onRetry })
  const context = { dialect: inputs.dialect, effects, onRetry }
  return {
    controlPlane: createControlPlane({ ...context, transport }),
    once: createControlPlane({ ...context, transport: createTransport({ ...options, policy: ONCE }) }),
    agentServer: (baseUrl) => {
      const headers = { [API_KEY_HEADER]: inputs.apiKey }
      return createAgentServer(createTransport({ ...options, baseUrl, headers, policy: ONCE }))
    },
    waitedForRateLimitMs: () => transport.waitedForRateLimitMs(),
  }
}
