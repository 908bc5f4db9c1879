import { DuckDBInstance } from '@duckdb/node-api'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

export type Row = Record<string, unknown>

/** A question to DuckDB; `FILES` in it stands for the Parquet files. Values come as JSON has them. */
export async function askDuckDb(files: readonly string[], question: string): Promise<Row[]> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  try {
    await connection.run("set TimeZone = 'UTC'")
    const list = `[${files.map((file) => `'${file.replaceAll("'", "''")}'`).join(', ')}]`
    const result = await connection.runAndReadAll(question.replaceAll('FILES', list))
    return result.getRowObjectsJson() as Row[]
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** The rows of a file as the other reader sees them; `utf8: false` leaves bytes that nothing declares to be text. */
export async function readWithHyparquet(file: string): Promise<Row[]> {
  const buffer = await asyncBufferFromFile(file)
  return (await parquetReadObjects({ file: buffer, compressors, utf8: false })) as Row[]
}

/** Columns with their types as the file declares them, and the number of rows of each row group. */
export async function describeFile(
  file: string,
): Promise<{ columns: Record<string, string>; groups: number[]; codecs: string[] }> {
  const metadata = await parquetMetadataAsync(await asyncBufferFromFile(file))
  const columns: Record<string, string> = {}
  for (const { name, type, converted_type, logical_type, num_children } of metadata.schema.slice(1)) {
    const logical = logical_type === undefined ? (converted_type ?? '') : JSON.stringify(logical_type)
    if (name !== 'list' && name !== 'element')
      columns[name] = num_children ? `group ${converted_type ?? ''}` : `${type} ${logical}`.trim()
  }
  return {
    columns,
    groups: metadata.row_groups.map((group) => Number(group.num_rows)),
    codecs: [...new Set(metadata.row_groups.flatMap((group) => group.columns.map((column) => column.meta_data?.codec ?? '')))],
  }
}
