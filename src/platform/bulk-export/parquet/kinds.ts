import type { ExportableField } from '../../../contract/exportable-fields.ts'

type Kind = 'text' | 'flag' | 'count' | 'cost' | 'time' | 'json' | 'list'

/** What each field is; what is not named is text. */
export const KINDS: Readonly<Partial<Record<ExportableField, Kind>>> = {
  parent_run_ids: 'list',
  tags: 'list',
  start_time: 'time',
  end_time: 'time',
  first_token_time: 'time',
  is_root: 'flag',
  inputs: 'json',
  outputs: 'json',
  extra: 'json',
  events: 'json',
  feedback_stats: 'json',
  total_tokens: 'count',
  prompt_tokens: 'count',
  completion_tokens: 'count',
  total_cost: 'cost',
  prompt_cost: 'cost',
  completion_cost: 'cost',
}
