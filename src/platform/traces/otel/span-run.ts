import { RUN_TYPES } from '../../../contract/run.ts'
import { type Attributes, indexedOf, jsonOf, readAttributes, textOf } from './attributes.ts'
import type { Span } from './messages.ts'

/** What a span tells besides its own fields. */
export interface SpanContext {
  readonly resource: Attributes
  readonly scope: { readonly name?: string; readonly version?: string } | null | undefined
  /** The `Langsmith-Project` header: the tracing project of spans that name none. */
  readonly project: string | null
}

/** What other conventions call the types of runs. */
const RUN_TYPE_OF: Readonly<Record<string, string>> = {
  chat: 'llm',
  completion: 'llm',
  text_completion: 'llm',
  generate_content: 'llm',
  execute_tool: 'tool',
  task: 'chain',
  workflow: 'chain',
  agent: 'chain',
  embeddings: 'embedding',
  rerank: 'retriever',
  reranker: 'retriever',
  retrieval: 'retriever',
}

/** Attributes that become fields of the run; the rest is kept as its metadata. */
const TAKEN =
  /^(langsmith\.(?!metadata\.)|gen_ai\.(prompt|completion|input|output)\b|(in|out)put\.value|traceloop\.entity\.(in|out)put)/

/** A fault that keeps one span from becoming a run. */
export class SpanFault extends Error {}

/**
 * A span as a run in the form that clients send (hosted service): `langsmith.*` attributes first, then the conventions
 * `gen_ai.*`, OpenInference and Traceloop. Ids follow from the span's own, as the SDKs make them, so that a span sent again is
 * the same run.
 * @throws {SpanFault}
 */
export function toRunFields(span: Span, { resource, scope, project }: SpanContext): Record<string, unknown> {
  const attributes = readAttributes(span.attributes)
  const traceId = uuidOfTrace(span.traceId)
  const id = textOf(attributes, 'langsmith.span.id') ?? uuidOfSpan(span.spanId, 'spanId')
  const root = attributes.get('langsmith.is_root') === true
  const parent =
    textOf(attributes, 'langsmith.span.parent_id') ?? (span.parentSpanId ? uuidOfSpan(span.parentSpanId, 'parentSpanId') : null)
  const dottedOrder = textOf(attributes, 'langsmith.span.dotted_order')
  const usage = jsonOf(attributes, 'langsmith.usage_metadata')
  const start = toMicroseconds(span.startTimeUnixNano)
  if (start === null) throw new SpanFault('startTimeUnixNano is missing')
  return {
    id,
    // A dotted order says more than the ids of OpenTelemetry, and must not be contradicted by them.
    ...(dottedOrder === null
      ? { trace_id: textOf(attributes, 'langsmith.trace.id') ?? traceId, parent_run_id: root ? null : parent }
      : { dotted_order: dottedOrder }),
    session_id: textOf(attributes, 'langsmith.trace.session_id'),
    session_name: textOf(attributes, 'langsmith.trace.session_name') ?? project,
    name: textOf(attributes, 'langsmith.trace.name') ?? (span.name || 'span'),
    run_type: runTypeOf(attributes),
    start_time: start,
    end_time: toMicroseconds(span.endTimeUnixNano),
    inputs: asObject(inputsOf(attributes), 'input'),
    outputs: asObject(outputsOf(attributes), 'output'),
    error: errorOf(span),
    events: eventsOf(span),
    tags: tagsOf(attributes),
    reference_example_id: textOf(attributes, 'langsmith.reference_example_id'),
    extra: {
      metadata: { ...metadataOf(attributes), ...(usage === undefined ? {} : { usage_metadata: usage }) },
      ...(resource.size === 0 && !scope?.name ? {} : { otel: { resource: Object.fromEntries(resource), scope: scope ?? null } }),
    },
    first_token_time: firstTokenTime(span),
    prompt_tokens: attributes.get('gen_ai.usage.input_tokens') ?? attributes.get('gen_ai.usage.prompt_tokens'),
    completion_tokens: attributes.get('gen_ai.usage.output_tokens') ?? attributes.get('gen_ai.usage.completion_tokens'),
    total_tokens: attributes.get('gen_ai.usage.total_tokens') ?? attributes.get('llm.usage.total_tokens'),
  }
}

function uuidOfTrace(id: string | undefined): string {
  if (id === undefined || !/^[0-9a-f]{32}$/i.test(id) || /^0+$/.test(id))
    throw new SpanFault('traceId is not sixteen bytes, or is all zero')
  return `${id.slice(0, 8)}-${id.slice(8, 12)}-${id.slice(12, 16)}-${id.slice(16, 20)}-${id.slice(20)}`
}

function uuidOfSpan(id: string | undefined, field: string): string {
  if (id === undefined || !/^[0-9a-f]{16}$/i.test(id) || /^0+$/.test(id))
    throw new SpanFault(`${field} is not eight bytes, or is all zero`)
  return `00000000-0000-0000-${id.slice(0, 4)}-${id.slice(4)}`
}

/** Nanoseconds since 1970 as an ISO time in microseconds; null when there are none. */
function toMicroseconds(nanoseconds: string | number | undefined): string | null {
  if (nanoseconds === undefined || nanoseconds === '' || Number(nanoseconds) === 0) return null
  if (!/^\d{1,20}$/.test(String(nanoseconds))) throw new SpanFault(`${JSON.stringify(nanoseconds)} is no time in nanoseconds`)
  const microseconds = BigInt(nanoseconds) / 1000n
  // Twenty digits of nanoseconds reach the year 5138.
  return `${new Date(Number(microseconds / 1000n)).toISOString().slice(0, 23)}${String(microseconds % 1000n).padStart(3, '0')}Z`
}

function runTypeOf(attributes: Attributes): string {
  const said =
    textOf(
      attributes,
      'langsmith.span.kind',
      'openinference.span.kind',
      'traceloop.span.kind',
      'gen_ai.operation.name',
    )?.toLowerCase() ?? ''
  if (RUN_TYPES.some((type) => type === said)) return said
  const known = Object.hasOwn(RUN_TYPE_OF, said) ? RUN_TYPE_OF[said] : undefined
  return known ?? (attributes.has('gen_ai.request.model') && said === '' ? 'llm' : 'chain')
}

function inputsOf(attributes: Attributes): unknown {
  const whole = jsonOf(attributes, 'gen_ai.prompt', 'gen_ai.input.messages', 'input.value', 'traceloop.entity.input')
  if (Array.isArray(whole)) return { messages: whole }
  const messages = indexedOf(attributes, 'gen_ai.prompt')
  return whole ?? (messages && { messages })
}

function outputsOf(attributes: Attributes): unknown {
  const whole = jsonOf(attributes, 'gen_ai.completion', 'gen_ai.output.messages', 'output.value', 'traceloop.entity.output')
  if (Array.isArray(whole)) return { messages: whole }
  const messages = indexedOf(attributes, 'gen_ai.completion')
  return whole ?? (messages && { messages })
}

function asObject(value: unknown, name: string): unknown {
  if (value === undefined || value === null) return null
  return typeof value === 'object' && !Array.isArray(value) ? value : { [name]: value }
}

/** The status `2` of a span is an error; its exception event says most about it. */
function errorOf(span: Span): string | null {
  const code = span.status?.code
  if (code !== 2 && code !== 'STATUS_CODE_ERROR') return null
  const exception = (span.events ?? []).find((event) => event.name === 'exception')
  const attributes = readAttributes(exception?.attributes)
  const parts = [textOf(attributes, 'exception.message'), textOf(attributes, 'exception.stacktrace')].filter(
    (part) => part !== null,
  )
  return span.status?.message || parts.join('\n\n') || 'Error'
}

function eventsOf(span: Span): unknown {
  if (!span.events?.length) return null
  return span.events.map((event) => ({
    name: event.name ?? '',
    time: toMicroseconds(event.timeUnixNano),
    ...(event.attributes?.length ? { kwargs: Object.fromEntries(readAttributes(event.attributes)) } : {}),
  }))
}

function firstTokenTime(span: Span): string | null {
  const event = (span.events ?? []).find(
    ({ name }) => name === 'gen_ai.content.completion.chunk' || name === 'First Token Stream Event',
  )
  return event === undefined ? null : toMicroseconds(event.timeUnixNano)
}

function tagsOf(attributes: Attributes): string[] | null {
  const tags = attributes.get('langsmith.span.tags') ?? attributes.get('tag.tags')
  if (Array.isArray(tags)) return tags.map(String)
  if (typeof tags !== 'string') return null
  return tags
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
}

function metadataOf(attributes: Attributes): Record<string, unknown> {
  const metadata: Record<string, unknown> = {}
  for (const [name, value] of attributes) {
    if (name.startsWith('langsmith.metadata.')) metadata[name.slice('langsmith.metadata.'.length)] = value
    else if (!TAKEN.test(name)) metadata[name] = value
  }
  const model = textOf(attributes, 'gen_ai.response.model', 'gen_ai.request.model')
  if (model !== null) metadata['ls_model_name'] ??= model
  const provider = textOf(attributes, 'gen_ai.provider.name', 'gen_ai.system')
  if (provider !== null) metadata['ls_provider'] ??= provider
  return metadata
}
