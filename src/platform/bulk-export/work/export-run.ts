import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { type RawBuilder, sql } from 'kysely'
import type { DestinationConfig } from '../../../contract/destination.ts'
import { parseFilter } from '../../../contract/filter/parse.ts'
import type { Database, ExportedFile, PendingPart } from '../../database/schema.ts'
import type { Log } from '../../log.ts'
import type { SecretBox } from '../../secrets.ts'
import { fixIngestedSequence } from '../../traces/ingested-sequence.ts'
import { compileFilter } from '../../traces/query/compile-filter.ts'
import { type Bucket, openBucket } from '../bucket/bucket.ts'
import type { EndpointRules } from '../bucket/endpoint.ts'
import { openCredentials } from '../destinations.ts'
import { fileName, folderOf } from '../layout.ts'
import type { ExportMetrics } from '../metrics.ts'
import { fieldsInOrder, LONG_FIELDS, sourceColumn, weightOf } from '../parquet/source-columns.ts'
import { inlineParameters } from '../parquet/inline.ts'
import type { Place, WriterSetup, WrittenPart } from '../parquet/messages.ts'
import { type ParquetWriter, startParquetWriter } from '../parquet/writer.ts'
import { cursorText } from '../rows.ts'
import type { ExportSettings } from '../settings.ts'
import { checkpoint, confirmHeld } from './checkpoint.ts'
import { bucketFailure, ExportFailure } from './failure.ts'
import type { Claim } from './lease.ts'

export interface RunWork {
  readonly db: Database
  readonly databaseUrl: string
  readonly secretBox: SecretBox
  readonly rules: EndpointRules
  readonly settings: ExportSettings
  /** Where the files lie until they are in the bucket; this run's own. */
  readonly directory: string
  readonly metrics: ExportMetrics
  readonly log: Log
}

/**
 * Writes everything of an export run that is not in the bucket yet: part after part, each behind the cursor of the one before. A part is
 * made known before the bucket hears of it, and counts once the bucket has it: the checkpoint. Whoever takes the run up again writes the
 * part that was under way over itself, under the same name and with the same last row. @returns how many rows came too late.
 * @throws {LeaseLost | ExportFailure}
 */
export async function writeRun(work: RunWork, claim: Claim, signal: AbortSignal): Promise<{ lateRows: number }> {
  const { db } = work
  const { bucket, config } = await openDestination(work, claim)
  let writer: ParquetWriter | undefined
  const endWriter = () => void writer?.close()
  try {
    const upperSeq = claim.run.upper_seq ?? String(await fixIngestedSequence(db))
    if (claim.run.upper_seq === null) await checkpoint(db, claim, { upper_seq: upperSeq })
    await abortDangling(bucket, claim)
    await mkdir(work.directory, { recursive: true, mode: 0o700 })
    signal.throwIfAborted()
    writer = startParquetWriter(writerSetup(work, claim, upperSeq))
    signal.addEventListener('abort', endWriter)
    const written = await writeParts({ work, claim, bucket, config, writer, signal })
    const { present, late } = await writer.countRows()
    // Deleted ones may be fewer by now, and a filter may find others; but none may be missing that has been there all the time.
    if (claim.export.filter === null && present > written) {
      throw new ExportFailure('processing', `the store has ${present} rows, and only ${written} were written`)
    }
    return { lateRows: late }
  } finally {
    signal.removeEventListener('abort', endWriter)
    await writer?.close()
    bucket.close()
    await rm(work.directory, { recursive: true, force: true }).catch(() => undefined)
  }
}

async function openDestination({ db, secretBox, rules, settings }: RunWork, claim: Claim): Promise<{ bucket: Bucket; config: DestinationConfig }> {
  const row = await db.selectFrom('export_destinations').selectAll().where('id', '=', claim.export.destination_id).executeTakeFirst()
  if (row === undefined) throw new ExportFailure('destination_deleted', `the destination ${claim.export.destination_id} is gone`)
  try {
    const credentials = openCredentials(secretBox, row)
    const limits = { requestLimitMs: settings.requestLimitMs, connectLimitMs: settings.connectLimitMs }
    return { bucket: openBucket({ config: row.config, credentials, rules, ...limits }), config: row.config }
  } catch (error) {
    throw bucketFailure(error, 'opening the bucket')
  }
}

/** A multipart upload that an earlier attempt began is ended, where that is allowed: its part is uploaded anew. */
async function abortDangling(bucket: Bucket, { run }: Claim): Promise<void> {
  if (run.pending !== null) await bucket.abortUploads(run.pending.key, run.pending.uploadId)
}

function writerSetup(work: RunWork, claim: Claim, upperSeq: string): WriterSetup {
  const { db, settings } = work
  const { export: row, run } = claim
  const fields = fieldsInOrder(row.export_fields)
  const among: RawBuilder<unknown>[] = [
    sql`r.workspace_id = ${row.workspace_id}::uuid`,
    sql`r.session_id = ${row.session_id}::uuid`,
    sql`r.complete`,
    sql`r.start_time >= ${run.window_start_text}::timestamptz`,
    sql`r.start_time < ${run.window_end_text}::timestamptz`,
    ...(row.filter === null ? [] : [compileFilter(parseFilter(row.filter))]),
  ]
  const inline = (parts: readonly RawBuilder<unknown>[], glue: RawBuilder<unknown>) => inlineParameters(db, sql.join([...parts], glue))
  return {
    databaseUrl: work.databaseUrl,
    statementLimitMs: Math.min(settings.runLimitMs, 2 ** 31 - 1),
    directory: work.directory,
    fields,
    columns: fields.map((field) => inlineParameters(db, sourceColumn(field))),
    textFields: LONG_FIELDS.filter((field) => fields.includes(field)),
    weight: inlineParameters(db, weightOf(fields)),
    among: inline([...among, sql`r.ingested_seq <= ${upperSeq}::bigint`], sql` and `),
    late: inline([...among, sql`r.ingested_seq > ${upperSeq}::bigint`], sql` and `),
    formatVersion: row.format_version,
    compression: row.compression,
    fileTextBytes: settings.fileTextBytes,
    fileRows: settings.fileRows,
    groupTextBytes: settings.groupTextBytes,
    groupRows: settings.groupRows,
    memoryBytes: settings.memoryBytes,
  }
}

interface PartsOptions {
  readonly work: RunWork
  readonly claim: Claim
  readonly bucket: Bucket
  readonly config: DestinationConfig
  readonly writer: ParquetWriter
  readonly signal: AbortSignal
}

/** What the checkpoints of a run add up to. */
interface Sums {
  parts: number
  rows: number
  bytes: number
  files: readonly ExportedFile[]
}

/** @returns how many rows are in the bucket. */
async function writeParts({ work, claim, bucket, config, writer, signal }: PartsOptions): Promise<number> {
  const { db, metrics, log } = work
  const { run, export: row } = claim
  const folder = folderOf({
    config,
    exportId: row.id,
    workspaceId: row.workspace_id,
    sessionId: row.session_id,
    formatVersion: row.format_version,
    windowStart: run.window_start,
  })
  const spool = (part: number) => path.join(work.directory, `${part}.parquet`)
  let after: Place | null = run.cursor_text === null ? null : { time: run.cursor_text, id: run.cursor_id as string }
  const sums: Sums = { parts: run.parts, rows: Number(run.rows_written), bytes: Number(run.bytes_written), files: run.files }
  let turn = 0
  let writing = writer.writePart({ after, upTo: run.pending?.cursor ?? null, file: spool(turn) })
  for (;;) {
    const written = await writing
    signal.throwIfAborted()
    if (written === null) return sums.rows
    for (const [on, seconds] of Object.entries(written.seconds)) metrics.add('export_seconds_total', { on }, seconds)
    const file = spool(turn)
    turn += 1
    // The next part is written while this one is uploaded.
    writing = writer.writePart({ after: written.last, upTo: null, file: spool(turn) })
    writing.catch(() => undefined)
    const set = { cursor_time: written.last.time, cursor_id: written.last.id, pending: null, losses: 0 }
    if (written.rows > 0) {
      const name = fileName({ runId: run.id, part: sums.parts, after: after === null ? run.window_start_text : cursorText(after.time, after.id) })
      await uploadPart({ work, claim, bucket, signal }, { written, file, key: `${folder}/${name}` })
      sums.parts += 1
      sums.rows += written.rows
      sums.bytes += written.bytes
      sums.files = [...sums.files, { key: `${folder}/${name}`, rows: written.rows, bytes: written.bytes }]
    }
    const files = JSON.stringify(sums.files)
    await checkpoint(db, claim, { ...set, parts: sums.parts, rows_written: sums.rows, bytes_written: sums.bytes, files })
    after = written.last
    if (written.rows === 0) continue
    metrics.add('export_rows_total', {}, written.rows)
    metrics.add('export_bytes_total', {}, written.bytes)
    metrics.add('export_text_bytes_total', {}, written.textBytes)
    metrics.add('export_files_total')
    log.debug({ part: sums.parts, rows: sums.rows, bytes: sums.bytes, cursor: after }, 'checkpoint')
  }
}

async function uploadPart(
  { work, claim, bucket, signal }: Pick<PartsOptions, 'work' | 'claim' | 'bucket' | 'signal'>,
  { written, file, key }: { written: WrittenPart; file: string; key: string },
): Promise<void> {
  const { db, settings, metrics } = work
  const pending: PendingPart = { cursor: written.last, key, rows: written.rows, uploadId: null }
  await checkpoint(db, claim, { pending: JSON.stringify(pending) })
  const began = performance.now()
  // What our own store says in between is not the bucket's failure.
  let ours: Error | null = null
  const own = async (step: Promise<void>) => {
    await step.catch((error: Error) => {
      ours = error
      throw error
    })
  }
  try {
    await bucket.upload({
      file,
      bytes: written.bytes,
      key,
      multipartAboveBytes: settings.multipartAboveBytes,
      uploadPartBytes: settings.uploadPartBytes,
      begun: (uploadId) => own(checkpoint(db, claim, { pending: JSON.stringify({ ...pending, uploadId }) })),
      completing: () => own(confirmHeld(db, claim)),
      signal,
    })
    await verifySize({ bucket, key, bytes: written.bytes, signal })
  } catch (error) {
    throw ours ?? bucketFailure(error, 'writing a file')
  }
  metrics.add('export_seconds_total', { on: 'uploading' }, (performance.now() - began) / 1000)
  await rm(file, { force: true })
}

/** Compares what the bucket has with what was sent, where reading is allowed (specification 4.3). */
async function verifySize({ bucket, key, bytes, signal }: { bucket: Bucket; key: string; bytes: number; signal: AbortSignal }): Promise<void> {
  let size: number | null
  try {
    size = await bucket.sizeOf(key, signal)
  } catch (error) {
    if ((error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode !== 404) throw error
    throw new ExportFailure('bucket_unavailable', 'the bucket does not have the file that it took')
  }
  if (size === null || size === bytes) return
  throw new ExportFailure('bucket_unavailable', `the bucket has ${size} bytes of a file of ${bytes}`)
}
