/**
 * The fields of a run that a filter can name (hosted service). `latency` is in seconds, and null until the run has ended.
 * Nullable fields may be compared with null.
 */
export const SCALAR_FIELDS = {
  id: { type: 'uuid', nullable: false },
  trace_id: { type: 'uuid', nullable: true },
  parent_run_id: { type: 'uuid', nullable: true },
  session_id: { type: 'uuid', nullable: false },
  reference_example_id: { type: 'uuid', nullable: true },
  name: { type: 'text', nullable: false },
  run_type: { type: 'text', nullable: false },
  status: { type: 'text', nullable: false },
  error: { type: 'text', nullable: true },
  trace_tier: { type: 'text', nullable: false },
  start_time: { type: 'time', nullable: false },
  end_time: { type: 'time', nullable: true },
  first_token_time: { type: 'time', nullable: true },
  latency: { type: 'duration', nullable: true },
  total_tokens: { type: 'number', nullable: false },
  prompt_tokens: { type: 'number', nullable: false },
  completion_tokens: { type: 'number', nullable: false },
  total_cost: { type: 'number', nullable: true },
  prompt_cost: { type: 'number', nullable: true },
  completion_cost: { type: 'number', nullable: true },
  execution_order: { type: 'number', nullable: false },
  is_root: { type: 'boolean', nullable: false },
} as const satisfies Record<string, { type: ScalarType; nullable: boolean }>

export type ScalarType = 'uuid' | 'text' | 'time' | 'duration' | 'number' | 'boolean'
export type ScalarField = keyof typeof SCALAR_FIELDS

/** Other names of the same fields. */
export const FIELD_ALIASES: Readonly<Record<string, ScalarField>> = {
  run_id: 'id',
  trace: 'trace_id',
  parent_run: 'parent_run_id',
  session: 'session_id',
  reference_example: 'reference_example_id',
}

/** JSON of a run, for `has` and `search`. `metadata` is that of `extra`. */
export const JSON_FIELDS = ['inputs', 'outputs', 'metadata'] as const
export type JsonField = (typeof JSON_FIELDS)[number]

/** Texts that `search` without a field looks through. */
export const SEARCHED_FIELDS = ['name', 'error', 'inputs', 'outputs'] as const

/** Things that a run has several of; the fields of one name its parts. Keys of JSON are paths: `documents.page_content`. */
export const COLLECTIONS = ['feedback', 'metadata', 'inputs', 'outputs'] as const
export type Collection = (typeof COLLECTIONS)[number]
export type Part = 'key' | 'value' | 'score' | 'comment' | 'source'

export const PART_FIELDS = {
  feedback_key: { collection: 'feedback', part: 'key', type: 'text' },
  feedback_score: { collection: 'feedback', part: 'score', type: 'number' },
  feedback_value: { collection: 'feedback', part: 'value', type: 'text' },
  feedback_comment: { collection: 'feedback', part: 'comment', type: 'text' },
  feedback_source: { collection: 'feedback', part: 'source', type: 'text' },
  metadata_key: { collection: 'metadata', part: 'key', type: 'text' },
  metadata_value: { collection: 'metadata', part: 'value', type: 'text' },
  input_key: { collection: 'inputs', part: 'key', type: 'text' },
  input_value: { collection: 'inputs', part: 'value', type: 'text' },
  output_key: { collection: 'outputs', part: 'key', type: 'text' },
  output_value: { collection: 'outputs', part: 'value', type: 'text' },
} as const satisfies Record<string, { collection: Collection; part: Part; type: 'text' | 'number' }>
export type PartField = keyof typeof PART_FIELDS

/** Deepest path of a JSON key, in steps; what lies deeper is not looked at. */
export const JSON_KEY_DEPTH_MAX = 16

export const FILTER_FIELDS: readonly string[] = [
  ...Object.keys(SCALAR_FIELDS),
  'tags',
  ...JSON_FIELDS,
  ...Object.keys(PART_FIELDS),
]
