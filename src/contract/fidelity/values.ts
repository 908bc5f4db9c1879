import { chosen, documented, inferred, type Named, specification } from './evidence.ts'

const described = documented('main API description')

/** Every value of the contract's enumerations: statuses first. The keys are the names of lists of words in `src/contract`. */
export const VALUES: Readonly<Record<string, { readonly title: string; readonly values: Named }>> = {
  REVISION_STATUSES: {
    title: 'Status of a revision',
    values: [
      [
        specification('3.1', 'their order was seen in real answers'),
        ['CREATING', 'QUEUED', 'AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED'],
      ],
      [specification('3.1'), ['CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED']],
      [specification('3.1', 'a newer revision took its place, as the guides say'), ['SKIPPED']],
      [specification('3.1', 'final here; clients of the hosted service disagree'), ['INTERRUPTED']],
      [specification('3.1', 'never answered by the platform; not final for the action'), ['UNKNOWN']],
    ],
  },
  DEPLOYMENT_STATUSES: {
    title: 'Status of a deployment',
    values: [[documented('control plane description'), ['AWAITING_DATABASE', 'READY', 'UNUSED', 'AWAITING_DELETE', 'UNKNOWN']]],
  },
  EXPORT_STATUSES: {
    title: 'Status of an export',
    values: [
      [
        specification('3.2', 'in Title Case on the wire of the hosted service'),
        ['CREATED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMEDOUT'],
      ],
      [documented('main API description', 'of a schedule'), ['INTERVAL_SCHEDULED']],
    ],
  },
  EXPORT_RUN_STATUSES: {
    title: 'Status of an export run',
    values: [[specification('3.2'), ['CREATED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMEDOUT']]],
  },
  RUN_STATUSES: { title: 'Status of a run (trace)', values: [[documented('guides'), ['pending', 'success', 'error']]] },
  SOURCES: { title: 'Source', values: [[specification('2.1'), ['git_host', 'external_docker']]] },
  FORMAT_VERSIONS: {
    title: 'Format version of an export',
    values: [
      [documented('main API description', 'the default'), ['v1']],
      [specification('2.7', 'its column types are chosen'), ['v2_beta']],
    ],
  },
  COMPRESSIONS: { title: 'Compression of an export', values: [[described, ['none', 'gzip', 'snappy', 'zstandard']]] },
  RUN_TYPES: {
    title: 'Type of a run (trace)',
    values: [[described, ['tool', 'chain', 'llm', 'retriever', 'embedding', 'prompt', 'parser']]],
  },
  TRACE_TIERS: { title: 'Trace tier', values: [[described, ['shortlived', 'longlived']]] },
  STREAM_MODES: {
    title: 'Stream mode',
    values: [
      [specification('4.2'), ['updates', 'messages']],
      [documented('agent server description'), ['values', 'messages-tuple', 'custom', 'tasks', 'checkpoints', 'events', 'debug']],
    ],
  },
  LOG_TYPES: { title: 'Type of a log', values: [[documented('control plane reference'), ['build', 'deploy']]] },
  LOG_LEVELS: {
    title: 'Level of a log line',
    values: [[documented('control plane reference'), ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL']]],
  },
  LOG_ORDERS: { title: 'Order of a log', values: [[documented('control plane reference'), ['asc', 'desc']]] },
  REGION_NAMES: {
    title: 'Region',
    values: [
      [specification('1.6'), ['us', 'eu']],
      [inferred('sample pipeline'), ['apac', 'aws']],
    ],
  },
  DIALECTS: {
    title: 'Dialect',
    values: [[chosen('the names of the specification, and those of the hosted service'), ['spec', 'vendor']]],
  },
}
