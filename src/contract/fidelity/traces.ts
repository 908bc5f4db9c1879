import { type Area, chosen, documented, inferred, specification } from './evidence.ts'

const described = documented('main API description')
const unknownId = chosen('an id that the workspace does not have is not found')
const unusable = chosen('a filter, a cursor or a time that cannot be read is refused with the reason')
const nameTaken = inferred('client library', 'it reads 409 as "is there already"')
const limited = specification('8.3', 'as a row of the table of limits')

/** Runs, ingest, tracing projects and feedback on the main API. The specification names few of their routes, in its table of limits. */
export const TRACES: Area = {
  title: 'Runs and tracing projects',
  routes: {
    'POST /runs/query': { route: limited, answers: { 200: described, 400: unusable } },
    'POST /runs/query/validate': { route: described, answers: { 200: described } },
    'POST /runs/stats': { route: limited, answers: { 200: described, 400: unusable } },
    'GET /runs/{run_id}': { route: limited, answers: { 200: described, 404: unknownId } },
    'GET /sessions': {
      route: described,
      answers: { 200: described },
      query: [[described, ['id', 'name', 'name_contains', 'limit', 'offset', 'include_stats']]],
    },
    'POST /sessions': { route: described, answers: { 200: described, 409: nameTaken }, query: [[described, ['upsert']]] },
    'GET /sessions/{session_id}': {
      route: described,
      answers: { 200: described, 404: unknownId },
      query: [[described, ['include_stats']]],
    },
    'PATCH /sessions/{session_id}': { route: described, answers: { 200: described, 404: unknownId, 409: nameTaken } },
    'DELETE /sessions/{session_id}': { route: limited, answers: { 200: described, 404: unknownId } },
    'GET /workspaces': {
      route: described,
      answers: { 200: described },
      answer: [[described, ['id', 'display_name', 'created_at']]],
    },
    'POST /feedback': {
      route: limited,
      answers: { 200: described, 404: unknownId, 409: chosen('the id is taken by feedback on something else') },
    },
    'GET /feedback': {
      route: described,
      answers: { 200: described },
      query: [[described, ['run', 'session', 'key', 'source', 'limit', 'offset']]],
    },
    'GET /feedback/{feedback_id}': { route: described, answers: { 200: described, 404: unknownId } },
    'PATCH /feedback/{feedback_id}': { route: described, answers: { 200: described, 404: unknownId } },
    'DELETE /feedback/{feedback_id}': { route: described, answers: { 200: described, 404: unknownId } },
  },
  objects: {
    runSchema: {
      title: 'Run',
      fields: [
        [
          specification('2.9'),
          ['id', 'tenant_id', 'session_id', 'trace_id', 'parent_run_id', 'parent_run_ids', 'reference_example_id'],
        ],
        [specification('2.9'), ['name', 'run_type', 'start_time', 'end_time', 'status', 'is_root', 'dotted_order', 'trace_tier']],
        [specification('2.9'), ['inputs', 'outputs', 'error', 'extra', 'events', 'tags', 'feedback_stats']],
        [specification('2.9'), ['total_tokens', 'prompt_tokens', 'completion_tokens', 'first_token_time']],
        [
          specification('2.9', 'strings with decimals, as the description has them'),
          ['total_cost', 'prompt_cost', 'completion_cost'],
        ],
        [described, ['child_run_ids', 'direct_child_run_ids', 'serialized', 'app_path']],
        [
          documented('guides', 'a free object in the description'),
          ['feedback_stats.n', 'feedback_stats.avg', 'feedback_stats.values'],
        ],
        [inferred('client library'), ['feedback_stats.stdev']],
      ],
    },
    runQuerySchema: {
      title: 'Query of runs',
      fields: [
        [
          described,
          ['id', 'trace', 'parent_run', 'run_type', 'session', 'reference_example', 'execution_order', 'start_time', 'end_time'],
        ],
        [described, ['error', 'is_root', 'query', 'filter', 'trace_filter', 'tree_filter', 'cursor', 'limit', 'select', 'order']],
      ],
    },
    runPageSchema: { title: 'Page of runs', fields: [[described, ['runs', 'cursors', 'cursors.next', 'parsed_query']]] },
    filterValidationRequestSchema: {
      title: 'Filters to be checked',
      fields: [[described, ['filter', 'trace_filter', 'tree_filter']]],
    },
    filterValidationSchema: {
      title: 'What is wrong with filters',
      fields: [[described, ['valid', 'errors', 'errors.field', 'errors.message']]],
    },
    projectSchema: {
      title: 'Tracing project',
      fields: [
        [described, ['id', 'tenant_id', 'name', 'description', 'extra', 'start_time', 'end_time', 'reference_dataset_id']],
        [described, ['run_count', 'last_run_start_time']],
      ],
    },
    projectCreateSchema: {
      title: 'Body of a new tracing project',
      fields: [[described, ['id', 'name', 'description', 'extra', 'reference_dataset_id', 'start_time']]],
    },
    projectPatchSchema: {
      title: 'Change of a tracing project',
      fields: [[described, ['name', 'description', 'extra', 'end_time']]],
    },
    feedbackSchema: {
      title: 'Feedback',
      fields: [
        [
          described,
          ['id', 'run_id', 'trace_id', 'session_id', 'key', 'score', 'value', 'comment', 'correction', 'feedback_source'],
        ],
        [described, ['created_at', 'modified_at']],
      ],
    },
    feedbackCreateSchema: {
      title: 'Body of new feedback',
      fields: [
        [described, ['id', 'run_id', 'trace_id', 'session_id', 'key', 'score', 'value', 'comment', 'correction']],
        [described, ['feedback_source', 'feedback_source.type']],
      ],
    },
    feedbackPatchSchema: { title: 'Change of feedback', fields: [[described, ['score', 'value', 'comment', 'correction']]] },
  },
}
