import type { Compression, FormatVersion } from '../../../contract/bulk-export.ts'
import type { ExportableField } from '../../../contract/exportable-fields.ts'
import { KINDS } from './kinds.ts'

/**
 * A column of the spool file in its type in Parquet, as an expression of the engine. `v1` is what the hosted service writes: JSON and lists
 * as text, times in nanoseconds without a zone, costs as doubles. `v2_beta`: times in UTC microseconds, lists,
 * JSON said to be JSON, costs as decimals. What no such type can hold (a year 9999 in nanoseconds, a cost of 10^21) becomes null.
 */
export function targetColumn(field: ExportableField, format: FormatVersion): string {
  const rich = format === 'v2_beta'
  switch (KINDS[field]) {
    case 'flag':
      return `${field}::BOOLEAN`
    case 'count':
      return `${field}::BIGINT`
    case 'cost':
      return rich ? `try_cast(${field} AS DECIMAL(38, 18))` : `${field}::DOUBLE`
    case 'time':
      return rich ? `${field}::TIMESTAMPTZ` : `try_cast(${field} AS TIMESTAMP_NS)`
    case 'json':
      return rich ? `${field}::JSON` : field
    case 'list':
      return rich ? `from_json(${field}, '["VARCHAR"]')` : field
    default:
      return field
  }
}

/** The codecs by the engine's names. */
export const CODECS: Readonly<Record<Compression, string>> = {
  none: 'uncompressed',
  gzip: 'gzip',
  snappy: 'snappy',
  zstandard: 'zstd',
}
