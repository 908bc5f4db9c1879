import { type Area, chosen, documented, inferred, type ObjectFidelity, type RouteFidelity, specification } from './evidence.ts'
import { EVERY_INGEST } from './every-route.ts'

const described = documented('main API description')
const agent = documented('agent server description')
/** Of OTLP, whose acceptance is a 200. */
const REFUSALS = Object.fromEntries(Object.entries(EVERY_INGEST).filter(([status]) => status !== '202'))
const ingest = (route: RouteFidelity['route']): RouteFidelity => ({ route, answers: EVERY_INGEST })
const limited = specification('8.3', 'as a row of the table of limits; its body is from the description')

const INGEST_ANSWER: ObjectFidelity = { title: 'Answer of ingest', fields: [[described, ['message']]] }

/** Routes that are not in `/openapi.json`: the ways in for runs, whose bodies are compressed or binary, and the service's own health. */
export const UNDESCRIBED: Area = {
  title: 'Ways in for runs, and health',
  routes: {
    'GET /info': { route: specification('8.3', 'the path; its answer is from the description'), answers: { 200: described } },
    'POST /runs': ingest(limited),
    'PATCH /runs/{run_id}': ingest(limited),
    'POST /runs/batch': ingest(limited),
    'POST /runs/multipart': ingest(limited),
    'POST /otel/v1/traces': {
      route: specification('8.3', 'the path; its body is OTLP, its attributes are those of the client library'),
      answers: { 200: inferred('client library', 'with what was not taken, as OTLP has it'), ...REFUSALS },
    },
    'GET /ok': { route: chosen('liveness; agent servers have the same'), answers: { 200: chosen('the process answers') } },
    'GET /ready': {
      route: chosen('readiness, for load balancers'),
      answers: { 200: chosen('the database answers'), 503: chosen('the database does not answer') },
    },
    'GET /openapi.json': {
      route: documented('control plane description', 'it is where that comes from'),
      answers: { 200: described },
    },
    'GET /metrics': { route: chosen('for Prometheus'), answers: { 200: chosen('the text format of Prometheus') } },
  },
  objects: {
    infoSchema: {
      title: 'Info',
      fields: [
        [described, ['version', 'batch_ingest_config', 'batch_ingest_config.use_multipart_endpoint']],
        [described, ['batch_ingest_config.size_limit', 'batch_ingest_config.size_limit_bytes', 'instance_flags']],
        [inferred('client library'), ['instance_flags.gzip_body_enabled', 'instance_flags.zstd_compression_enabled']],
      ],
    },
    ingestAnswerSchema: INGEST_ANSWER,
    ingestErrorSchema: { title: 'Refusal of ingest', fields: [[described, ['error', 'details']]] },
  },
}

/**
 * What agents answer at their own addresses, behind the platform's proxy. The platform answers in an agent's stead only with 401, 404,
 * 502 and 503; the rest is the agent server's, which is the ecosystem's own.
 */
export const AGENT_SERVER: Area = {
  title: 'Agent server',
  routes: {
    'POST /runs/stream': {
      route: specification('4.2'),
      answers: { 200: specification('4.2'), 404: agent, 409: agent, 422: agent },
    },
    'POST /assistants/search': { route: agent, answers: { 200: agent } },
    'GET /info': { route: agent, answers: { 200: agent } },
    'GET /ok': { route: agent, answers: { 200: agent } },
  },
  objects: {
    runStreamRequestSchema: {
      title: 'Body of a streamed run',
      fields: [
        [specification('4.2'), ['assistant_id', 'input', 'stream_mode']],
        [documented('agent server description', 'always sent: servers disagree on what it is by default'), ['on_disconnect']],
      ],
    },
    assistantAnswerSchema: { title: 'Assistant', fields: [[agent, ['assistant_id', 'graph_id', 'name']]] },
  },
}
