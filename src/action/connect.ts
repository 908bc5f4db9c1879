import { type AgentServer, createAgentServer } from '../client/agent-server.ts'
import { type BulkExports, createBulkExports } from '../client/bulk-export.ts'
import { type ControlPlane, createControlPlane } from '../client/control-plane.ts'
import type { Effects } from '../client/effects.ts'
import { createPacer, type OnPace } from '../client/pacing.ts'
import type { OnRetry, RetryPolicy } from '../client/retry.ts'
import { createTransport, type Transport } from '../client/transport.ts'
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
  bulkExports: (apiUrl: string) => { api: BulkExports; once: BulkExports }
  waitedForRateLimitMs: () => number
  /** Names of the limits that were waited for. */
  rateLimitsWaitedFor: () => readonly string[]
} {
  const onRetry: OnRetry = ({ method, path, reason, waitMs }) =>
    log.info(`${method} ${path} ${reason}: trying again in ${formatDuration(waitMs)}.`)
  const onPace: OnPace = ({ method, path, waitMs, limit }) => {
    if (waitMs >= 1000) log.info(`${method} ${path} waits ${formatDuration(waitMs)} for the rate limit of ${limit}.`)
  }
  // One budget for all requests of the step: they have one key.
  const pacer = createPacer({ effects, onPace })
  const options = {
    baseUrl: inputs.controlPlaneUrl,
    headers: {
      [API_KEY_HEADER]: inputs.apiKey,
      ...(inputs.workspaceId === undefined ? {} : { [TENANT_ID_HEADER]: inputs.workspaceId }),
    },
    redact,
    userAgent: 'deploy-agent-server',
    effects,
    pacer,
  }
  const transport = createTransport({ ...options, onRetry })
  const once = createTransport({ ...options, policy: ONCE })
  const waiting: Transport[] = [transport, once]
  const context = { dialect: inputs.dialect, effects, onRetry }
  return {
    controlPlane: createControlPlane({ ...context, transport }),
    once: createControlPlane({ ...context, transport: once }),
    agentServer: (baseUrl) => {
      const { pacer: _, ...unpaced } = options
      const headers = { [API_KEY_HEADER]: inputs.apiKey }
      return createAgentServer(createTransport({ ...unpaced, baseUrl, headers, policy: ONCE }))
    },
    bulkExports: (baseUrl) => {
      const patient = createTransport({ ...options, baseUrl, onRetry })
      const impatient = createTransport({ ...options, baseUrl, policy: ONCE })
      waiting.push(patient, impatient)
      return {
        api: createBulkExports({ transport: patient, effects, onRetry }),
        once: createBulkExports({ transport: impatient, effects }),
      }
    },
    waitedForRateLimitMs: () => waiting.reduce((sum, one) => sum + one.waitedForRateLimitMs(), 0),
    rateLimitsWaitedFor: pacer.waitedFor,
  }
}
