import { pageAnswerSchema, revisionAnswerSchema, type RevisionAnswer } from '../contract/answers.ts'
import type { ControlPlaneContext } from './context.ts'
import { endlessList } from './failure.ts'
import { onOptionalRoute } from './optional-route.ts'
import { readPages } from './pages.ts'
import { pathOf } from './path.ts'

export type RevisionOperations = {
  /** Newest first. `status`: only these; `max`: not more than so many (all, when absent). */
  listRevisions(options: {
    deploymentId: string
    status?: readonly string[]
    max?: number
    signal: AbortSignal
  }): Promise<RevisionAnswer[]>
  getRevision(options: { deploymentId: string; revisionId: string; signal: AbortSignal }): Promise<RevisionAnswer>
  /** Asks the service to stop a revision; `unsupported` where it cannot. The revision's status tells when it has. */
  interruptRevision(options: { deploymentId: string; revisionId: string; timeoutMs?: number; signal: AbortSignal }): Promise<void>
}

const revisionsPageSchema = pageAnswerSchema(revisionAnswerSchema)

export function revisionOperations({ transport }: ControlPlaneContext): RevisionOperations {
  return {
    listRevisions: async ({ deploymentId, status, max, signal }) => {
      const path = pathOf('v2', 'deployments', deploymentId, 'revisions')
      return await readPages({
        ...(max === undefined ? {} : { max }),
        endless: () => endlessList(path),
        readPage: async ({ limit, offset }) => {
          const query = { limit, offset, status: status?.join(',') }
          return (await transport.request({ method: 'GET', path, query, schema: revisionsPageSchema, signal })).body
        },
      })
    },

    getRevision: async ({ deploymentId, revisionId, signal }) => {
      const path = pathOf('v2', 'deployments', deploymentId, 'revisions', revisionId)
      return (await transport.request({ method: 'GET', path, schema: revisionAnswerSchema, signal })).body
    },

    interruptRevision: async ({ deploymentId, revisionId, timeoutMs, signal }) => {
      const path = pathOf('v2', 'deployments', deploymentId, 'revisions', revisionId, 'interruption')
      await onOptionalRoute({
        ids: [deploymentId, revisionId],
        what: 'way to interrupt a revision',
        run: () =>
          transport.request({
            method: 'POST',
            path,
            emptyAllowed: true,
            ...(timeoutMs === undefined ? {} : { timeoutMs }),
            signal,
          }),
      })
    },
  }
}
