import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

/** How many rows a Parquet file has, by the kind of the run that each row is; read by another library than the one that wrote it. */
export async function countRows(files: readonly string[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (const file of files) {
    for (const { run_type: kind } of await parquetReadObjects({ file: await asyncBufferFromFile(file), compressors })) {
      counts.set(String(kind), (counts.get(String(kind)) ?? 0) + 1)
    }
  }
  return counts
}
