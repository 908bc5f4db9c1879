import { type RawBuilder, sql } from 'kysely'
import { EXPORTABLE_FIELDS, type ExportableField } from '../../../contract/exportable-fields.ts'
import { RUN_COLUMNS } from '../../traces/query/columns.ts'
import { KINDS } from './kinds.ts'

/** Fields whose length makes a row long. */
export const LONG_FIELDS = [
  'inputs',
  'outputs',
  'error',
  'extra',
  'events',
  'name',
  'dotted_order',
] as const satisfies readonly ExportableField[]

/** The fields of an export in the order of specification 2.9, whatever order they were asked for in. */
export function fieldsInOrder(fields: readonly ExportableField[] | null): ExportableField[] {
  return fields === null ? [...EXPORTABLE_FIELDS] : EXPORTABLE_FIELDS.filter((field) => fields.includes(field))
}

/** A field of the row `r` of `runs` as PostgreSQL copies it out: lists as JSON, times with their zone, numbers exact. */
export function sourceColumn(field: ExportableField): RawBuilder<unknown> {
  // Two derived fields are asked for only where there is something to derive: the same values, several times as fast.
  if (field === 'parent_run_ids') {
    return sql`case when strpos(r.dotted_order, '.') > 0 then to_json(${RUN_COLUMNS[field]}) else '[]'::json end`
  }
  if (field === 'feedback_stats') {
    return sql`case when exists (select 1 from feedback f where f.run_id = r.id and f.workspace_id = r.workspace_id) then ${RUN_COLUMNS[field]} end`
  }
  switch (KINDS[field]) {
    case 'list':
      return sql`to_json(${RUN_COLUMNS[field]})`
    case 'time':
    case 'cost':
      return sql.ref(`r.${field}`)
    case 'count':
      return sql`coalesce(${sql.ref(`r.${field}`)}, 0)`
    default:
      return RUN_COLUMNS[field]
  }
}

/** Bytes of a row's text, without reading what is stored beside the row. */
export function weightOf(fields: readonly ExportableField[]): RawBuilder<unknown> {
  const long = LONG_FIELDS.filter((field) => fields.includes(field))
  return sql.join([sql`600`, ...long.map((field) => sql`coalesce(octet_length(${sql.ref(`r.${field}`)}), 0)`)], sql` + `)
}
