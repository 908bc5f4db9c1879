import path from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { WriterSetup } from './messages.ts'
import { CODECS, targetColumn } from './target-columns.ts'

/** Bytes that do not occur in JSON text: almost no field has to be quoted, or searched for quotes. */
const DELIMITER = '\u0002'
const QUOTE = '\u0001'
const NULL = '\\N'

const MIB = 1024 * 1024
/** The engine's own smallest line bound and read buffer. */
const LINE_MIN = 2 * MIB
const BUFFER_MIN = 32 * MIB

class LineTooLong extends Error {}

/** How PostgreSQL has to write what {@link convert} reads. */
export const SPOOL_FORMAT = `(format csv, delimiter ${quoted(DELIMITER)}, quote ${quoted(QUOTE)}, escape ${quoted(QUOTE)}, null ${quoted(NULL)})`

interface Conversion {
  readonly from: string
  readonly to: string
  readonly rows: number
  /** Bytes of text of all rows, and of the longest. */
  readonly text: number
  readonly longest: number
}

/** Turns a spool file into Parquet. Its columns are a number that is ignored, and the fields of the export. */
export async function convert(setup: WriterSetup, conversion: Conversion): Promise<void> {
  for (let line = Math.max(LINE_MIN, Math.ceil(conversion.longest * 1.2) + 65_536); ; line *= 4) {
    try {
      return await convertOnce(setup, { ...conversion, line })
    } catch (error) {
      // A line can be longer than its weight: what is derived has not been weighed, and a field full of quotes is twice as long.
      if (!(error instanceof LineTooLong) || line > 512 * MIB) throw error
    }
  }
}

async function convertOnce(setup: WriterSetup, { from, to, rows, text, line }: Conversion & { line: number }): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:', {
    memory_limit: `${Math.ceil(Math.max(setup.memoryBytes, line * 9) / MIB)}MiB`,
    threads: '1',
    preserve_insertion_order: 'true',
    temp_directory: path.join(setup.directory, 'engine'),
    autoinstall_known_extensions: 'false',
  })
  const connection = await instance.connect()
  try {
    await connection.run("set TimeZone = 'UTC'")
    const names = ['line', ...setup.fields]
    const group = Math.max(1, Math.min(setup.groupRows, Math.floor(setup.groupTextBytes / Math.max(1, text / rows))))
    const result = await connection.run(`copy (
        select ${setup.fields.map((field) => `${targetColumn(field, setup.formatVersion)} as ${field}`).join(', ')}
        from read_csv(${quoted(from)}, auto_detect = false, header = false, columns = {${names.map((name) => `'${name}': 'VARCHAR'`).join(', ')}},
          delim = ${quoted(DELIMITER)}, quote = ${quoted(QUOTE)}, escape = ${quoted(QUOTE)}, nullstr = ${quoted(NULL)}, allow_quoted_nulls = false,
          new_line = '\\n', parallel = false, max_line_size = ${line}, buffer_size = ${Math.max(BUFFER_MIN, line * 2)})
      ) to ${quoted(to)} (format parquet, compression ${CODECS[setup.compression]}, row_group_size ${group})`)
    const written = Number((await result.getRows())[0]?.[0])
    if (written !== rows) throw new Error(`PostgreSQL copied ${rows} rows out, and ${written} arrived in the file`)
  } catch (error) {
    if (/maximum line size/i.test((error as Error).message)) throw new LineTooLong((error as Error).message)
    throw error
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** A text of ours as a literal of either engine: it has neither quotation marks nor backslashes that mean anything. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
