import type { Place, WriterSetup } from './messages.ts'

/** Where a part ends, and what it holds: rows, bytes of text, and those of its longest row. */
export interface Cut {
  readonly last: Place
  readonly rows: number
  readonly text: number
  readonly longest: number
}

/** A row with more text than this is a part of its own: it never is in memory as a whole. In bytes. */
export const LARGE_ROW = 4 * 1024 * 1024

type Ask = <Row>(query: string) => Promise<Row[]>

interface CutRow {
  readonly time: string
  readonly id: string
  readonly rows: string
  readonly text: string
  readonly longest: string
}

/**
 * Cuts the rows of `range` into parts of at most about `fileTextBytes` of text and `fileRows` rows; large rows stand alone. One look at
 * the store serves several parts: it covers `fileRows` rows.
 */
export async function planParts(ask: Ask, { setup, range }: { setup: WriterSetup; range: string }): Promise<Cut[]> {
  const found = await ask<CutRow>(`
    with page as (
      select r.start_time, r.id, (${setup.weight})::int as weight from runs r where ${range}
      order by r.start_time, r.id limit ${setup.fileRows}
    ), placed as materialized (
      select start_time, id, weight, row_number() over place as n, sum(weight) over place as total,
        count(*) filter (where weight > ${LARGE_ROW}) over place as larges
      from page window place as (order by start_time, id rows unbounded preceding)
    ), cut as (
      select max(n) as n, count(*) as rows, sum(weight) as text, max(weight) as longest
      from placed group by (total - 1) / ${setup.fileTextBytes}, 2 * larges - (weight > ${LARGE_ROW})::int
    )
    select ${placeOf('placed')}, rows, text, longest from cut join placed using (n) order by n`)
  // Where the page ends the rows do not: its last part would be too small, and is planned again with what follows.
  const full = found.reduce((sum, { rows }) => sum + Number(rows), 0) === setup.fileRows
  return (full && found.length > 1 ? found.slice(0, -1) : found).map(toCut)
}

/** All rows of `range` as one part; null when there are none. */
export async function planWhole(ask: Ask, { setup, range }: { setup: WriterSetup; range: string }): Promise<Cut | null> {
  const [found] = await ask<CutRow>(`
    with page as (select r.start_time, r.id, (${setup.weight})::int as weight from runs r where ${range})
    select ${placeOf('page')}, (select count(*) from page) as rows, (select sum(weight) from page) as text, (select max(weight) from page) as longest
    from page order by start_time desc, id desc limit 1`)
  return found === undefined ? null : toCut(found)
}

function placeOf(table: string): string {
  return `to_char(${table}.start_time at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as time, ${table}.id`
}

function toCut({ time, id, rows, text, longest }: CutRow): Cut {
  return { last: { time, id }, rows: Number(rows), text: Number(text), longest: Number(longest) }
}
