import { BATCH_RUNS_MAX } from '../../../contract/ingest.ts'
import { isRecord } from '../../../contract/record.ts'
import { IngestRefusal } from './refusal.ts'
import { type RunWrite, readRun } from './run-write.ts'

/** @throws {IngestRefusal} 400 when the body is not a JSON object. */
export function readJsonObject(body: Buffer): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (error) {
    throw new IngestRefusal(400, `the body is no JSON: ${(error as Error).message}`)
  }
  if (!isRecord(value)) throw new IngestRefusal(400, 'the body is not a JSON object')
  return value
}

/**
 * The runs of `POST /runs/batch`: `{"post": […], "patch": […]}`.
 * @throws {IngestRefusal} 400, 422.
 */
export function readJsonBatch(body: Buffer): RunWrite[] {
  const batch = readJsonObject(body)
  const post = readList(batch, 'post')
  const patch = readList(batch, 'patch')
  const count = post.length + patch.length
  if (count > BATCH_RUNS_MAX)
    throw new IngestRefusal(422, `the batch has ${count} runs: at most ${BATCH_RUNS_MAX} can come at once`)
  return [
    ...post.map((fields) => readRun({ kind: 'post', fields })),
    ...patch.map((fields) => readRun({ kind: 'patch', fields })),
  ]
}

function readList(batch: Record<string, unknown>, name: string): Record<string, unknown>[] {
  const list = batch[name] ?? []
  if (!Array.isArray(list) || !list.every(isRecord)) throw new IngestRefusal(400, `${name} is not a list of runs`)
  return list
}
