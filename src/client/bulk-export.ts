import { z } from 'zod'
import type { DestinationCreate, DestinationCredentials } from '../contract/destination.ts'
import { toInstant } from '../contract/instant.ts'
import {
  type DestinationAnswer,
  destinationAnswerSchema,
  type ExportAnswer,
  exportAnswerSchema,
  type ExportRunAnswer,
  exportRunAnswerSchema,
} from './bulk-export-answers.ts'
import { capOf } from './bulk-export-caps.ts'
import type { Effects } from './effects.ts'
import { endlessList } from './failure.ts'
import { onOptionalRoute } from './optional-route.ts'
import { pathOf } from './path.ts'
import { withRecovery } from './recovery.ts'
import type { OnRetry } from './retry.ts'
import type { Transport } from './transport.ts'

/** The body of `POST /api/v1/bulk-exports` as it is sent (specification 2.7). Times are UTC. */
export type ExportBody = {
  bulk_export_destination_id: string
  session_id: string
  start_time: string
  end_time?: string
  interval_hours?: number
  filter?: string
  export_fields?: readonly string[]
  format_version?: string
}

/** The operations of bulk export (specification 4.3). Each may throw a `RequestFailure`. */
export type BulkExports = {
  /** All of the workspace. */
  listDestinations(signal: AbortSignal): Promise<DestinationAnswer[]>
  getDestination(id: string, signal: AbortSignal): Promise<DestinationAnswer>
  /** When the answer is lost, one of this name that is not among `known` (ids) is taken to be the one that was made. */
  createDestination(options: { body: DestinationCreate; known: readonly string[]; signal: AbortSignal }): Promise<DestinationAnswer>
  /** Gives a destination new credentials; `unsupported` where the service cannot. */
  updateCredentials(options: { id: string; credentials: DestinationCredentials; signal: AbortSignal }): Promise<void>
  /** All of the workspace. */
  listExports(signal: AbortSignal): Promise<ExportAnswer[]>
  getExport(id: string, signal: AbortSignal): Promise<ExportAnswer>
  listRuns(id: string, signal: AbortSignal): Promise<ExportRunAnswer[]>
  /** A 429 that is a cap and not a rate limit (`capOf`) is thrown at once. A lost answer is recovered as for destinations. */
  createExport(options: { body: ExportBody; known: readonly string[]; signal: AbortSignal }): Promise<ExportAnswer>
  cancelExport(options: { id: string; timeoutMs?: number; signal: AbortSignal }): Promise<ExportAnswer>
}

const COLLECTION = ['api', 'v1', 'bulk-exports'] as const
const PAGE = 1000
const PAGES_MAX = 50
/** Every run lists its files: ten years of large days do not fit into an answer of the usual size. */
const RUNS_MAX_BYTES = 64 * 1024 * 1024

export function createBulkExports({
  transport,
  effects,
  onRetry,
}: {
  transport: Transport
  effects: Effects
  /** Called before a write is repeated after an ambiguous failure. */
  onRetry?: OnRetry
}): BulkExports {
  const context = { effects, ...(onRetry === undefined ? {} : { onRetry }) }

  /** These lists have no documented paging: a page that brings nothing new ends them as well. */
  const readAll = async <T extends { id: string }>(path: string, schema: z.ZodType<T[]>, signal: AbortSignal): Promise<T[]> => {
    const byId = new Map<string, T>()
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const query = { limit: PAGE, offset: page * PAGE }
      const { body } = await transport.request({ method: 'GET', path, query, schema, signal })
      const before = byId.size
      for (const item of body) byId.set(item.id, item)
      if (body.length < PAGE || byId.size === before) return [...byId.values()]
    }
    throw endlessList(path)
  }

  const listDestinations: BulkExports['listDestinations'] = (signal) =>
    readAll(pathOf(...COLLECTION, 'destinations'), z.array(destinationAnswerSchema), signal)
  const listExports: BulkExports['listExports'] = (signal) => readAll(pathOf(...COLLECTION), z.array(exportAnswerSchema), signal)

  return {
    listDestinations,
    listExports,
    getDestination: async (id, signal) => {
      const path = pathOf(...COLLECTION, 'destinations', id)
      return (await transport.request({ method: 'GET', path, schema: destinationAnswerSchema, signal })).body
    },
    getExport: async (id, signal) =>
      (await transport.request({ method: 'GET', path: pathOf(...COLLECTION, id), schema: exportAnswerSchema, signal })).body,
    listRuns: async (id, signal) => {
      const path = pathOf(...COLLECTION, id, 'runs')
      const request = { method: 'GET', path, schema: z.array(exportRunAnswerSchema), maxBytes: RUNS_MAX_BYTES } as const
      return (await transport.request({ ...request, signal })).body
    },

    createDestination: async ({ body, known, signal }) =>
      await withRecovery({
        context,
        signal,
        send: async () => {
          const path = pathOf(...COLLECTION, 'destinations')
          return (await transport.request({ method: 'POST', path, body, schema: destinationAnswerSchema, signal })).body
        },
        recover: async () => {
          const made = (await listDestinations(signal)).find(
            ({ id, display_name: name }) => name === body.display_name && !known.includes(id),
          )
          return made === undefined ? { outcome: 'absent' } : { outcome: 'found', value: made }
        },
      }),

    updateCredentials: async ({ id, credentials, signal }) => {
      const path = pathOf(...COLLECTION, 'destinations', id)
      await onOptionalRoute({
        ids: [id],
        what: 'way to change the credentials of a destination',
        run: () => transport.request({ method: 'PATCH', path, body: { credentials }, idempotent: true, emptyAllowed: true, signal }),
      })
    },

    createExport: async ({ body, known, signal }) =>
      await withRecovery({
        context,
        signal,
        send: async () => {
          const request = { method: 'POST', path: pathOf(...COLLECTION), body, schema: exportAnswerSchema, signal } as const
          return (await transport.request({ ...request, hopeless: (failure) => capOf(failure) !== undefined })).body
        },
        recover: async () => {
          const made = (await listExports(signal)).filter((one) => !known.includes(one.id) && isOf(one, body))
          const [first] = made
          if (first === undefined) return { outcome: 'absent' }
          if (made.length === 1) return { outcome: 'found', value: first }
          return { outcome: 'unclear', because: `${made.length} exports with these settings were made meanwhile` }
        },
      }),

    cancelExport: async ({ id, timeoutMs, signal }) => {
      const limit = timeoutMs === undefined ? {} : { timeoutMs }
      const request = { method: 'PATCH', path: pathOf(...COLLECTION, id), body: { status: 'Cancelled' } } as const
      return (await transport.request({ ...request, idempotent: true, schema: exportAnswerSchema, ...limit, signal })).body
    },
  }
}

/** True for an export that nobody but a request with this body, or with one that means the same, has made. */
function isOf(answer: ExportAnswer, body: ExportBody): boolean {
  return (
    answer.source_bulk_export_id === null &&
    answer.bulk_export_destination_id?.toLowerCase() === body.bulk_export_destination_id &&
    answer.session_id?.toLowerCase() === body.session_id &&
    toInstant(answer.start_time) === toInstant(body.start_time) &&
    toInstant(answer.end_time) === toInstant(body.end_time) &&
    answer.interval_hours === (body.interval_hours ?? null) &&
    (answer.filter ?? '') === (body.filter ?? '') &&
    String(answer.export_fields ?? []) === String(body.export_fields ?? [])
  )
}
