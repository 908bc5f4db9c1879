import { createHash } from 'node:crypto'
import type { FormatVersion } from '../../contract/bulk-export.ts'
import type { DestinationConfig } from '../../contract/destination.ts'

/** The part of every key before the layout: the prefix, and the bucket's name before it where the destination asks for that. */
export function rootOf({ bucket_name, prefix, include_bucket_in_prefix }: DestinationConfig): string {
  const parts = [...(include_bucket_in_prefix ? [bucket_name] : []), ...prefix.split('/')].filter((part) => part !== '')
  return parts.length === 0 ? '' : `${parts.join('/')}/`
}

/** Key of the file that a destination is tried with (specification 4.3). */
export function testKey(config: DestinationConfig, id: string): string {
  return `${rootOf(config)}tmp/${id}.txt`
}

export interface RunPlace {
  readonly config: DestinationConfig
  readonly exportId: string
  readonly workspaceId: string
  readonly sessionId: string
  readonly formatVersion: FormatVersion
  readonly windowStart: Date
}

/**
 * The folder of an export run (specification 2.10), without a slash at its end. In `v2_beta` the resource is a true Hive key. Month and
 * day are not padded: as Hive keys they are numbers, and so the hosted service has them.
 */
export function folderOf({ config, exportId, workspaceId, sessionId, formatVersion, windowStart }: RunPlace): string {
  const resource = formatVersion === 'v1' ? 'runs' : 'resource=runs'
  const day = `year=${windowStart.getUTCFullYear()}/month=${windowStart.getUTCMonth() + 1}/day=${windowStart.getUTCDate()}`
  return `${rootOf(config)}export_id=${exportId}/tenant_id=${workspaceId}/session_id=${sessionId}/${resource}/${day}`
}

/** Name of a file: it follows from the run and the cursor that the file begins behind, so that whoever writes it again writes over it. */
export function fileName({ runId, part, after }: { runId: string; part: number; after: string }): string {
  const hash = createHash('sha256').update(`${runId} ${after}`).digest('hex').slice(0, 16)
  return `part-${String(part).padStart(5, '0')}-${hash}.parquet`
}
