import { randomBytes } from 'node:crypto'
import { context, SpanStatusCode } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTraceService, type TraceService } from './support/trace-service.ts'

let service: TraceService

beforeAll(async () => {
  service = await startTraceService()
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
})
afterAll(async () => {
  context.disable()
  await service.stop()
})

interface FoundRun extends Record<string, unknown> {
  readonly id: string
  readonly name: string
  readonly trace_id: string
  readonly dotted_order: string
}

const query = async (project: string) => {
  const [{ id }] = (await service.send('GET', `/sessions?name=${encodeURIComponent(project)}`)).body
  const { body } = await service.send('POST', '/runs/query', { session: [id], order: 'asc' })
  return body.runs as FoundRun[]
}

test.each([
  ['protobuf', ProtobufExporter],
  ['JSON', JsonExporter],
])('spans of an exporter (%s) become a tree, though children come first', async (encoding, Exporter) => {
  const project = `otel ${encoding}`
  const exporter = new Exporter({
    url: `${service.url}/otel/v1/traces`,
    headers: { 'x-api-key': service.ours.key, 'Langsmith-Project': project },
  })
  // One request a span, at its end: the root comes last.
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tracer = provider.getTracer('agent', '1.2.3')
  await tracer.startActiveSpan(
    'invoke',
    { attributes: { 'langsmith.span.kind': 'chain', 'gen_ai.prompt': '{"question":"ä"}', 'langsmith.span.tags': 'one, two' } },
    async (root) => {
      await tracer.startActiveSpan('chat gpt', async (model) => {
        model.setAttributes({
          'gen_ai.operation.name': 'chat',
          'gen_ai.request.model': 'gpt-x',
          'gen_ai.system': 'openai',
          'gen_ai.prompt.0.role': 'user',
          'gen_ai.prompt.0.content': 'hello',
          'gen_ai.completion.0.content': 'world',
          'gen_ai.usage.input_tokens': 11,
          'gen_ai.usage.output_tokens': 2,
          'langsmith.metadata.thread_id': 't-7',
          custom: [1, 2],
        })
        await tracer.startActiveSpan('lookup', async (tool) => {
          tool.setAttribute('gen_ai.operation.name', 'execute_tool')
          tool.recordException(new Error('no such thing'))
          tool.setStatus({ code: SpanStatusCode.ERROR })
          tool.end()
          await provider.forceFlush()
        })
        model.end()
        await provider.forceFlush()
      })
      root.setAttribute('gen_ai.completion', 'done')
      root.end()
    },
  )
  await provider.forceFlush()
  await provider.shutdown()

  const runs = await query(project)
  expect(runs).toHaveLength(3)
  const named = (name: string) => runs.find((run) => run.name === name)!
  const [root, model, tool] = [named('invoke'), named('chat gpt'), named('lookup')]
  expect(root).toMatchObject({
    run_type: 'chain',
    is_root: true,
    parent_run_ids: [],
    inputs: { question: 'ä' },
    outputs: { output: 'done' },
    tags: ['one', 'two'],
    status: 'success',
  })
  expect(model).toMatchObject({
    run_type: 'llm',
    parent_run_ids: [root.id],
    trace_id: root.trace_id,
    inputs: { messages: [{ role: 'user', content: 'hello' }] },
    outputs: { messages: [{ content: 'world' }] },
    prompt_tokens: 11,
    completion_tokens: 2,
    total_tokens: 13,
    thread_id: 't-7',
    extra: {
      metadata: { thread_id: 't-7', ls_model_name: 'gpt-x', ls_provider: 'openai', custom: [1, 2] },
      otel: { scope: { name: 'agent', version: '1.2.3' } },
    },
  })
  expect(tool).toMatchObject({
    run_type: 'tool',
    parent_run_ids: [root.id, model.id],
    status: 'error',
    error: expect.stringContaining('no such thing'),
  })
  expect(tool.dotted_order.startsWith(`${model.dotted_order}.`)).toBe(true)
})

const NANOSECONDS = '1763663752090123456'
const span = (more: Record<string, unknown> = {}) => ({
  traceId: randomBytes(16).toString('hex'),
  spanId: randomBytes(8).toString('hex'),
  name: 'span',
  startTimeUnixNano: NANOSECONDS,
  endTimeUnixNano: String(BigInt(NANOSECONDS) + 1_000_000n),
  ...more,
})
const text = (key: string, value: string) => ({ key, value: { stringValue: value } })
const exportOf = (spans: unknown[]) => ({
  resourceSpans: [{ resource: { attributes: [text('service.name', 's')] }, scopeSpans: [{ spans }] }],
})

test('attributes of LangSmith go before those of OpenTelemetry, and a span sent again is the same run', async () => {
  const id = '0196f0a0-0000-7000-8000-000000000001'
  const one = span({
    attributes: [
      text('langsmith.span.id', id),
      text('langsmith.trace.name', 'named'),
      text('langsmith.trace.session_name', 'otel attributes'),
      text('langsmith.span.dotted_order', `20251120T183552090123Z${id}`),
      text('langsmith.usage_metadata', '{"input_tokens":1,"output_tokens":2,"total_tokens":3}'),
    ],
  })
  for (let again = 0; again < 2; again += 1)
    expect(await service.send('POST', '/otel/v1/traces', exportOf([one]))).toMatchObject({ status: 200, body: {} })
  const runs = await query('otel attributes')
  expect(runs).toHaveLength(1)
  expect(runs[0]).toMatchObject({
    id,
    trace_id: id,
    name: 'named',
    start_time: '2025-11-20T18:35:52.090123',
    total_tokens: 3,
    is_root: true,
  })
})

test('spans that cannot be runs are told, and keep no others out', async () => {
  const good = span()
  const bad = [
    span({ traceId: 'xyz' }),
    span({ spanId: '' }),
    span({ startTimeUnixNano: undefined }),
    span({ startTimeUnixNano: 'soon' }),
  ]
  const answer = await service.send('POST', '/otel/v1/traces', exportOf([...bad, good]), {
    headers: { 'langsmith-project': 'otel partial' },
  })
  expect(answer).toMatchObject({
    status: 200,
    body: { partialSuccess: { rejectedSpans: 4, errorMessage: expect.stringContaining('traceId') } },
  })
  expect(await query('otel partial')).toHaveLength(1)
})

test.each<[string, string | Buffer, string, number]>([
  ['no JSON', '{', 'application/json', 400],
  ['no object', '7', 'application/json', 400],
  ['lists that are none', '{"resourceSpans":7}', 'application/json', 400],
  ['spans that are none', '{"resourceSpans":[{"scopeSpans":[{"spans":[null]}]}]}', 'application/json', 400],
  ['no protobuf', Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]), 'application/x-protobuf', 400],
  ['another type', '{}', 'text/plain', 415],
])('an export with %s is refused', async (_name, body, type, status) => {
  const answer = await service.send('POST', '/otel/v1/traces', body, { headers: { 'content-type': type } })
  expect(answer.status).toBe(status)
  // OTLP wants the answer in the encoding of the request.
  if (type === 'application/x-protobuf') expect(answer.headers.get('content-type')).toBe(type)
  else expect(answer.body).toMatchObject({ error: expect.any(String), details: expect.any(String) })
})

test('an empty export is taken', async () => {
  expect(await service.send('POST', '/api/v1/otel/v1/traces', {})).toMatchObject({ status: 200, body: {} })
  const answer = await service.send('POST', '/otel/v1/traces', Buffer.alloc(0), {
    headers: { 'content-type': 'application/x-protobuf' },
  })
  expect(answer.status).toBe(200)
})
