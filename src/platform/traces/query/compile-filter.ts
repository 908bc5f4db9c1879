import { type RawBuilder, sql } from 'kysely'
import {
  type Collection,
  type JsonField,
  type Part,
  type ScalarField,
  SCALAR_FIELDS,
  type ScalarType,
} from '../../../contract/filter/fields.ts'
import type { Condition, Filter, PartCondition } from '../../../contract/filter/filter.ts'

type Sql = RawBuilder<boolean>

/**
 * A filter as a condition on the row `alias` of `runs`. Every value is a parameter. The condition is true or false, never null,
 * so that `not` means what it says.
 */
export function compileFilter(filter: Filter, alias = 'r'): Sql {
  switch (filter.kind) {
    case 'and':
    case 'or': {
      const operands = filter.operands.map((operand) => compileFilter(operand, alias))
      return sql`(${sql.join(operands, filter.kind === 'and' ? sql` and ` : sql` or `)})`
    }
    case 'not':
      return sql`not (${compileFilter(filter.operand, alias)})`
    case 'scalar':
      return compileScalar(filter, alias)
    case 'tag':
      return sql`coalesce(${column(alias, 'tags')} @> array[${filter.tag}::text], false)`
    case 'members':
      return compileMembers(filter, alias)
    case 'search':
      return compileSearch(filter, alias)
    case 'element':
      return compileElement(filter, alias)
  }
}

function compileScalar({ field, condition }: { field: ScalarField; condition: Condition }, alias: string): Sql {
  return compileCondition(scalarColumn(alias, field), condition, SCALAR_FIELDS[field].type)
}

function scalarColumn(alias: string, field: ScalarField): RawBuilder<unknown> {
  switch (field) {
    case 'latency':
      return sql`extract(epoch from (${column(alias, 'end_time')} - ${column(alias, 'start_time')}))`
    case 'is_root':
      return sql`(${column(alias, 'parent_run_id')} is null)`
    case 'execution_order':
      return sql`1`
    case 'name':
      return sql`coalesce(${column(alias, 'name')}, '')`
    case 'run_type':
      return sql`coalesce(${column(alias, 'run_type')}, 'chain')`
    case 'trace_tier':
      return sql`run_trace_tier(${column(alias, 'workspace_id')}, ${column(alias, 'id')}, ${column(alias, 'trace_id')})`
    case 'total_tokens':
    case 'prompt_tokens':
    case 'completion_tokens':
      return sql`coalesce(${column(alias, field)}, 0)`
    default:
      return column(alias, field)
  }
}

const COMPARATORS = { gt: sql`>`, gte: sql`>=`, lt: sql`<`, lte: sql`<=` } as const

function compileCondition(subject: RawBuilder<unknown>, condition: Condition, type: ScalarType): Sql {
  switch (condition.operator) {
    case 'eq':
      if (condition.value === null) return sql`${subject} is null`
      return known(subject, sql`${subject} = ${parameter(condition.value, type)}`)
    case 'neq':
      return sql`${subject} is distinct from ${parameter(condition.value, type)}`
    case 'in':
      return known(subject, sql`${subject} in (${sql.join(condition.values.map((value) => parameter(value, type)))})`)
    case 'like':
      return known(subject, sql`${subject} like ${condition.pattern}::text`)
    case 'search':
      return contains(subject, condition.text)
    default:
      return known(subject, sql`${subject} ${COMPARATORS[condition.operator]} ${parameter(condition.value, type)}`)
  }
}

/** False instead of null for a subject that is null, in a form that leaves the planner its indexes. */
function known(subject: RawBuilder<unknown>, comparison: RawBuilder<unknown>): Sql {
  return sql`(${comparison} and ${subject} is not null)`
}

/** The types of parameters are said aloud: PostgreSQL would else guess them from the operator, and refuse some. */
function parameter(value: unknown, type: ScalarType): RawBuilder<unknown> {
  switch (type) {
    case 'uuid':
      return sql`${value}::uuid`
    case 'time':
      return sql`${value}::timestamptz`
    case 'number':
    case 'duration':
      return sql`${value === null ? null : String(value)}::numeric`
    case 'boolean':
      return sql`${value}::boolean`
    case 'text':
      return sql`${value}::text`
  }
}

/** Letters A to Z count in either case, in every locale of a server. */
function contains(subject: RawBuilder<unknown>, text: string): Sql {
  return sql`coalesce(position(${asciiLower(text)}::text in lower(${subject} collate "C")) > 0, false)`
}

function asciiLower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

function compileMembers(
  { field, members }: { field: JsonField; members: readonly (readonly [string, unknown])[] },
  alias: string,
): Sql {
  if (members.length === 0) return sql`coalesce(jsonb_typeof(${json(alias, field)}) = 'object', false)`
  const conditions = members.map(
    ([key, value]) => sql`coalesce(${json(alias, field)} -> ${key}::text = ${JSON.stringify(value)}::jsonb, false)`,
  )
  return sql`(${sql.join(conditions, sql` and `)})`
}

function compileSearch({ field, text }: { field: JsonField | null; text: string }, alias: string): Sql {
  // Inside JSON a quotation mark or a line break stands escaped.
  const written = JSON.stringify(text).slice(1, -1)
  if (field === 'metadata') {
    const found = sql`${contains(sql.ref('e.key'), text)} or ${contains(sql.ref('e.value'), text)}`
    return sql`exists (select 1 from run_json_pairs(${json(alias, 'metadata')}) e where ${found})`
  }
  if (field !== null) return contains(column(alias, field), written)
  const places = [
    contains(column(alias, 'name'), text),
    contains(column(alias, 'error'), text),
    contains(column(alias, 'inputs'), written),
    contains(column(alias, 'outputs'), written),
  ]
  return sql`(${sql.join(places, sql` or `)})`
}

function compileElement(
  { collection, conditions, absent }: { collection: Collection; conditions: readonly PartCondition[]; absent: boolean },
  alias: string,
): Sql {
  const met = conditions.map(({ part, condition }) => compileCondition(partColumn(collection, part), condition, partType(part)))
  const among =
    collection === 'feedback'
      ? sql`feedback e where e.run_id = ${column(alias, 'id')} and e.workspace_id = ${column(alias, 'workspace_id')} and`
      : sql`run_json_pairs(${json(alias, collection)}) e where`
  return sql`${absent ? sql`not ` : sql``}exists (select 1 from ${among} ${sql.join(met, sql` and `)})`
}

function partColumn(collection: Collection, part: Part): RawBuilder<unknown> {
  if (collection !== 'feedback') return sql.ref(`e.${part}`)
  if (part === 'value') return sql`(e.value #>> '{}')`
  if (part === 'source') return sql`(e.source ->> 'type')`
  return part === 'score' ? sql`e.score::numeric` : sql.ref(`e.${part}`)
}

function partType(part: Part): ScalarType {
  return part === 'score' ? 'number' : 'text'
}

function json(alias: string, field: JsonField): RawBuilder<unknown> {
  return field === 'metadata' ? sql`(run_json(${column(alias, 'extra')}) -> 'metadata')` : sql`run_json(${column(alias, field)})`
}

function column(alias: string, name: string): RawBuilder<unknown> {
  return sql.ref(`${alias}.${name}`)
}
