import { randomUUID } from 'node:crypto'
import { RUN_PART_FIELDS, type RunPartField } from '../../../contract/ingest.ts'
import { toInstant } from '../../../contract/instant.ts'
import { RUN_TYPES } from '../../../contract/run.ts'
import { PROJECT_NAME_LENGTH_MAX } from '../../../contract/tracing-project.ts'
import { readDottedOrder } from './dotted-order.ts'
import { cleanText, type JsonText, toJsonText } from './json-text.ts'
import { IngestRefusal } from './refusal.ts'
import { readUsage, type Usage } from './usage.ts'

/** What one `post` or `patch` says of a run, checked and in the form of the store. Null: it says nothing of that. */
export interface RunWrite extends Usage {
  readonly kind: 'post' | 'patch'
  readonly id: string
  readonly trace_id: string | null
  readonly parent_run_id: string | null
  readonly dotted_order: string | null
  readonly session_id: string | null
  readonly session_name: string | null
  readonly name: string | null
  readonly run_type: string | null
  readonly start_time: string | null
  readonly end_time: string | null
  readonly first_token_time: string | null
  readonly error: string | null
  readonly inputs: string | null
  readonly outputs: string | null
  readonly extra: string | null
  readonly events: string | null
  readonly serialized: string | null
  readonly tags: readonly string[] | null
  readonly reference_example_id: string | null
}

export interface RawRun {
  readonly kind: 'post' | 'patch'
  /** The run as it was sent, in one piece or without the fields of `parts`. */
  readonly fields: Record<string, unknown>
  /** Big fields that came apart from it. */
  readonly parts?: ReadonlyMap<RunPartField, JsonText>
  /** The id in the address or in the name of the part. */
  readonly id?: string
  /** Multipart bodies must say where in its trace each run stands (hosted service). */
  readonly placed?: boolean
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const NAME_LENGTH_MAX = 10_000
const TAGS_MAX = 1000

export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value)
}

/**
 * Checks one run as it was sent. Unknown fields are left out; times, ids and texts get one form.
 * @throws {IngestRefusal} 422 that names the run, the field and the fault.
 */
export function readRun(raw: RawRun): RunWrite {
  const { kind, fields, parts } = raw
  const id = readId(raw)
  const refuse = (field: string, fault: string): never => {
    throw new IngestRefusal(422, `run ${id}: ${field} ${fault}`)
  }
  const given = createReader(fields, refuse)
  const place = readPlace(raw, { id, given, refuse })
  const json = readBigFields(fields, parts, refuse)

  const start = given.time('start_time') ?? place.start
  const name = given.text('name', NAME_LENGTH_MAX)
  const runType = given.text('run_type', 100)
  if (runType !== null && !RUN_TYPES.some((type) => type === runType)) refuse('run_type', `is not one of ${RUN_TYPES.join(', ')}`)
  if (kind === 'post') {
    if (name === null) refuse('name', 'is missing')
    if (runType === null) refuse('run_type', 'is missing')
    if (start === null) refuse('start_time', 'is missing')
  }
  return {
    kind,
    id,
    trace_id: place.traceId,
    parent_run_id: place.parentId,
    dotted_order: place.dottedOrder,
    session_id: given.uuid('session_id'),
    session_name: given.text('session_name', PROJECT_NAME_LENGTH_MAX) || null,
    name,
    run_type: runType,
    start_time: start,
    end_time: given.time('end_time'),
    first_token_time: given.time('first_token_time') ?? firstTokenTime(json.events?.value),
    error: readError(json.error?.value),
    inputs: json.inputs?.text ?? null,
    outputs: json.outputs?.text ?? null,
    extra: json.extra?.text ?? null,
    events: json.events?.text ?? null,
    serialized: json.serialized?.text ?? null,
    tags: readTags(fields['tags'], refuse),
    reference_example_id: given.uuid('reference_example_id'),
    ...readUsage({ run: fields, outputs: json.outputs?.value, extra: json.extra?.value }),
  }
}

type Refuse = (field: string, fault: string) => never

function readId({ id, fields, kind }: RawRun): string {
  const own = fields['id'] ?? undefined
  if (own !== undefined && !isUuid(own)) throw new IngestRefusal(422, `run ${shown(own)}: id is not a UUID`)
  if (id !== undefined && !isUuid(id)) throw new IngestRefusal(422, `run ${shown(id)}: the id is not a UUID`)
  if (id !== undefined && own !== undefined && id.toLowerCase() !== own.toLowerCase()) {
    throw new IngestRefusal(422, `run ${id}: its body names another id, ${own}`)
  }
  const found = id ?? own
  if (found === undefined && kind === 'patch') throw new IngestRefusal(422, 'a patch of a run has no id')
  return found?.toLowerCase() ?? randomUUID()
}

interface Place {
  readonly traceId: string | null
  readonly parentId: string | null
  readonly dottedOrder: string | null
  readonly start: string | null
}

/** The dotted order says everything; what is sent beside it must agree. */
function readPlace(raw: RawRun, { id, given, refuse }: { id: string; given: Reader; refuse: Refuse }): Place {
  const traceId = given.uuid('trace_id')
  const parentId = given.uuid('parent_run_id')
  const text = given.text('dotted_order', 100_000)
  if (raw.placed === true && (traceId === null || text === null))
    refuse(text === null ? 'dotted_order' : 'trace_id', 'is missing')
  if (parentId === id) refuse('parent_run_id', 'is the id of the run itself')
  if (text === null) {
    const root = raw.kind === 'post' && parentId === null
    return { traceId: traceId ?? (root ? id : null), parentId, dottedOrder: null, start: null }
  }
  const order = readDottedOrder(text)
  if ('fault' in order) return refuse('dotted_order', `cannot be read: ${order.fault}`)
  if (order.id !== id) refuse('dotted_order', `ends with ${order.id}, not with the id of the run`)
  if (traceId !== null && order.traceId !== traceId)
    refuse('dotted_order', `begins with ${order.traceId}, not with the trace_id ${traceId}`)
  if (parentId !== null && order.parentId !== parentId) {
    refuse('dotted_order', `has the parent ${order.parentId ?? 'none'}, not the parent_run_id ${parentId}`)
  }
  return { traceId: order.traceId, parentId: order.parentId, dottedOrder: order.text, start: order.start }
}

function readBigFields(
  fields: Record<string, unknown>,
  parts: RawRun['parts'],
  refuse: Refuse,
): Partial<Record<RunPartField, JsonText>> {
  const found: Partial<Record<RunPartField, JsonText>> = {}
  for (const field of RUN_PART_FIELDS) {
    const json = parts?.get(field) ?? inline(fields[field], field, refuse)
    if (json !== null && json.value !== null) found[field] = json
  }
  return found
}

function inline(value: unknown, field: string, refuse: Refuse): JsonText | null {
  if (value === undefined || value === null) return null
  try {
    return toJsonText(value)
  } catch (error) {
    return refuse(field, `cannot be kept: ${(error as Error).message}`)
  }
}

/** An empty text is no error. */
function readError(value: unknown): string | null {
  if (value === undefined || value === '') return null
  return cleanText(typeof value === 'string' ? value : JSON.stringify(value))
}

function readTags(value: unknown, refuse: Refuse): string[] | null {
  if (value === undefined || value === null) return null
  if (!Array.isArray(value)) return refuse('tags', 'is not a list')
  const tags = value.filter((tag) => tag !== null)
  if (tags.length > TAGS_MAX) refuse('tags', `has more than ${TAGS_MAX} items`)
  if (!tags.every((tag) => typeof tag === 'string')) refuse('tags', 'holds something else than texts')
  return (tags as string[]).map(cleanText)
}

/** The time of the first `new_token` event. */
function firstTokenTime(events: unknown): string | null {
  if (!Array.isArray(events)) return null
  const event = events.find((item: unknown) => (item as { name?: unknown } | null)?.name === 'new_token') as
    { time?: unknown } | undefined
  return toInstant(event?.time)
}

interface Reader {
  uuid(field: string): string | null
  text(field: string, lengthMax: number): string | null
  time(field: string): string | null
}

function createReader(fields: Record<string, unknown>, refuse: Refuse): Reader {
  const value = (field: string) => fields[field] ?? null
  return {
    uuid(field) {
      const given = value(field)
      if (given === null) return null
      return isUuid(given) ? given.toLowerCase() : refuse(field, `is not a UUID: ${shown(given)}`)
    },
    text(field, lengthMax) {
      const given = value(field)
      if (given === null) return null
      if (typeof given !== 'string') return refuse(field, `is not a text: ${shown(given)}`)
      if (given.length > lengthMax) return refuse(field, `is longer than ${lengthMax} characters`)
      return cleanText(given)
    },
    time(field) {
      const given = value(field)
      if (given === null) return null
      return toInstant(given) ?? refuse(field, `is not a time: ${shown(given)}`)
    },
  }
}

/** A value that was sent, short enough for a message. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
