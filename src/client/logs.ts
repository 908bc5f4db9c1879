import { logsAnswerSchema, type LogEntryAnswer } from '../contract/answers.ts'
import { LOG_LIMIT_MAX, LOG_LIMIT_MIN, type LogType } from '../contract/log.ts'
import type { ControlPlaneContext } from './context.ts'
import { isMissingRoute, onOptionalRoute } from './optional-route.ts'
import { pathOf } from './path.ts'

export type LogOptions = {
  deploymentId: string
  revisionId: string
  type: LogType
  limit: number
  order: 'asc' | 'desc'
  offset?: string
  timeoutMs?: number
  signal: AbortSignal
}

export type LogOperations = {
  /** One page of a revision's log, in `order`; `limit` is brought into 1 to 1000. `unsupported` where the service has no logs. */
  revisionLogs(options: LogOptions): Promise<{ entries: LogEntryAnswer[]; nextOffset: string | null }>
}

/** Logs are read at the route of today, and where that is missing at the one before it (hosted service). */
export function logOperations({ transport }: ControlPlaneContext): LogOperations {
  let onlyLegacy = false

  const read = async ({ deploymentId, revisionId, type, limit, order, offset, timeoutMs, signal }: LogOptions) => {
    const lines = Math.min(LOG_LIMIT_MAX, Math.max(LOG_LIMIT_MIN, limit))
    const page = { order, limit: lines, ...(offset === undefined ? {} : { offset }) }
    const common = { schema: logsAnswerSchema, ...(timeoutMs === undefined ? {} : { timeoutMs }), signal }
    if (!onlyLegacy) {
      const path = pathOf('v2', 'deployments', deploymentId, 'revisions', revisionId, 'logs')
      try {
        return await transport.request({ ...common, method: 'GET', path, query: { type, ...page } })
      } catch (error) {
        if (!isMissingRoute(error, [deploymentId, revisionId])) throw error
      }
    }
    const path = pathOf('v1', 'projects', deploymentId, 'revisions', revisionId, `${type}_logs`)
    const answer = await transport.request({ ...common, method: 'POST', path, body: page, idempotent: true })
    onlyLegacy = true
    return answer
  }

  return {
    revisionLogs: async (options) => {
      const { body } = await onOptionalRoute({
        ids: [options.deploymentId, options.revisionId],
        what: 'logs of revisions',
        run: () => read(options),
      })
      return { entries: body.logs, nextOffset: body.next_offset }
    },
  }
}
