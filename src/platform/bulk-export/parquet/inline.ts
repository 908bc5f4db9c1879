import type { RawBuilder } from 'kysely'
import pg from 'pg'
import type { Database } from '../../database/schema.ts'

/**
 * A piece of SQL with its parameters written into it as literals: `COPY` takes no parameters. The driver escapes them; the placeholders
 * are replaced in one pass, so that nothing in a value is taken for one.
 */
export function inlineParameters(db: Database, fragment: RawBuilder<unknown>): string {
  const { sql, parameters } = fragment.compile(db)
  return sql.replace(/\$(\d+)/g, (_, index: string) => literal(parameters[Number(index) - 1]))
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'string') return pg.escapeLiteral(value)
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return pg.escapeLiteral(String(value))
  throw new Error(`a parameter of a filter is neither text, number nor boolean: ${typeof value}`)
}
