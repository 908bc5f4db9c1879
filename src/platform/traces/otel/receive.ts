import type { Database } from '../../database/schema.ts'
import { IngestRefusal } from '../ingest/refusal.ts'
import { type RunWrite, readRun } from '../ingest/run-write.ts'
import { storeBatch } from '../ingest/store.ts'
import { readAttributes } from './attributes.ts'
import { decodeTraceRequest, encodeStatus, encodeTraceResponse, type PartialSuccess, type TraceRequest } from './messages.ts'
import { SpanFault, toRunFields } from './span-run.ts'

const PROTOBUF = 'application/x-protobuf'
const JSON_TYPE = 'application/json'
const PROJECT_HEADER = 'Langsmith-Project'
const SPANS_MAX = 10_000

/**
 * Takes an OTLP export (`POST /otel/v1/traces`) in either encoding and answers in the same. Spans that cannot become runs are
 * counted in `partialSuccess`, as OTLP has it, and do not keep the others out.
 */
export async function receiveSpans({
  db,
  workspaceId,
  request,
  body,
}: {
  db: Database
  workspaceId: string
  request: Request
  body: Buffer
}): Promise<Response> {
  const type = (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== PROTOBUF && type !== JSON_TYPE) {
    throw new IngestRefusal(415, `the Content-Type is ${JSON.stringify(type)}: send ${PROTOBUF} or ${JSON_TYPE}`)
  }
  try {
    const message = readRequest(body, type)
    const { runs, partialSuccess } = readRuns(message, request.headers.get(PROJECT_HEADER))
    if (runs.length > 0) await storeBatch(db, workspaceId, { runs })
    if (type === JSON_TYPE) return Response.json(partialSuccess === null ? {} : { partialSuccess })
    return new Response(encodeTraceResponse(partialSuccess), { headers: { 'Content-Type': PROTOBUF } })
  } catch (error) {
    if (!(error instanceof IngestRefusal) || type === JSON_TYPE) throw error
    return new Response(encodeStatus(error.message), { status: error.status, headers: { 'Content-Type': PROTOBUF } })
  }
}

function readRequest(body: Buffer, type: string): TraceRequest {
  try {
    if (type === PROTOBUF) return decodeTraceRequest(body)
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
    throw new Error('it is not an object')
  } catch (error) {
    throw new IngestRefusal(400, `the OTLP request cannot be read: ${(error as Error).message}`)
  }
}

function readRuns(request: TraceRequest, project: string | null): { runs: RunWrite[]; partialSuccess: PartialSuccess | null } {
  const runs: RunWrite[] = []
  const faults: string[] = []
  let count = 0
  try {
    for (const { resource, scopeSpans } of request.resourceSpans ?? []) {
      const resourceAttributes = readAttributes(resource?.attributes)
      for (const { scope, spans } of scopeSpans ?? []) {
        for (const span of spans ?? []) {
          count += 1
          if (count > SPANS_MAX) throw new IngestRefusal(422, `the request has more than ${SPANS_MAX} spans`)
          try {
            runs.push(readRun({ kind: 'post', fields: toRunFields(span, { resource: resourceAttributes, scope, project }) }))
          } catch (error) {
            if (!(error instanceof SpanFault) && !(error instanceof IngestRefusal)) throw error
            faults.push(`span ${JSON.stringify(span.spanId ?? '')}: ${error.message}`)
          }
        }
      }
    }
  } catch (error) {
    // The JSON encoding is not checked beforehand: a list that is none shows when it is gone through.
    if (error instanceof TypeError)
      throw new IngestRefusal(400, `the OTLP request does not have the form of an export: ${error.message}`)
    throw error
  }
  if (faults.length === 0) return { runs, partialSuccess: null }
  return { runs, partialSuccess: { rejectedSpans: faults.length, errorMessage: faults.slice(0, 5).join('; ') } }
}
