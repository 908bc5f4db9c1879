import { feedbackCreateSchema } from '../../../contract/feedback.ts'
import { BATCH_RUNS_MAX, RUN_PART_FIELDS, type RunPartField } from '../../../contract/ingest.ts'
import { isRecord } from '../../../contract/record.ts'
import { type FeedbackWrite, readFeedback } from '../feedback.ts'
import { type JsonText, readJsonText } from './json-text.ts'
import type { Part } from './multipart.ts'
import { IngestRefusal } from './refusal.ts'
import { isUuid, type RunWrite, readRun } from './run-write.ts'
import type { AttachmentWrite, IngestedBatch } from './store.ts'

/** Most runs of one multipart body: clients stay near the batch's limit, and send a post and a patch of one run as one. */
const RUNS_MAX = BATCH_RUNS_MAX * 10

interface Gathered {
  readonly kind: 'post' | 'patch'
  readonly id: string
  fields: Record<string, unknown> | null
  readonly parts: Map<RunPartField, JsonText>
}

/**
 * Puts the parts of a multipart ingest together, in whatever order they come (hosted service): `post.<id>` and `patch.<id>`
 * are runs, `post.<id>.inputs` one big field of one, `feedback.<id>` is feedback, `attachment.<run id>.<name>` is counted.
 * @throws {IngestRefusal} 400 for parts that make no sense together, 422 for runs and feedback that are not valid.
 */
export function readMultipartBatch(parts: readonly Part[]): Required<IngestedBatch> {
  const runs = new Map<string, Gathered>()
  const feedback: FeedbackWrite[] = []
  const attachments: AttachmentWrite[] = []
  for (const part of parts) {
    const [kind = '', id = '', field, ...rest] = part.name.split('.')
    if (!isUuid(id)) throw bad(part.name, 'its name has no UUID after the first dot')
    if (kind === 'post' || kind === 'patch') {
      if (rest.length > 0) throw bad(part.name, 'its name has too many dots')
      gather(runs, { part, kind, id: id.toLowerCase(), field })
    } else if (kind === 'feedback') {
      feedback.push(toFeedback(part, id))
    } else if (kind === 'attachment') {
      attachments.push(toAttachment(part, { runId: id.toLowerCase(), name: field, rest }))
    } else {
      throw bad(part.name, 'its name begins with none of post, patch, feedback, attachment')
    }
  }
  if (runs.size > RUNS_MAX)
    throw new IngestRefusal(422, `the request has ${runs.size} runs: at most ${RUNS_MAX} can come at once`)
  return { runs: [...runs.values()].map(toRun), feedback, attachments }
}

function gather(
  runs: Map<string, Gathered>,
  { part, kind, id, field }: { part: Part; kind: 'post' | 'patch'; id: string; field?: string | undefined },
): void {
  const key = `${kind}.${id}`
  const run: Gathered = runs.get(key) ?? { kind, id, fields: null, parts: new Map() }
  runs.set(key, run)
  const json = readJson(part)
  if (field === undefined) {
    if (run.fields !== null) throw bad(part.name, 'it is there twice')
    if (!isRecord(json.value)) throw bad(part.name, 'it is not a JSON object')
    run.fields = json.value
    return
  }
  const known = RUN_PART_FIELDS.find((name) => name === field)
  if (known === undefined) throw bad(part.name, `${field} is no part of a run: ${RUN_PART_FIELDS.join(', ')} are`)
  if (run.parts.has(known)) throw bad(part.name, 'it is there twice')
  run.parts.set(known, json)
}

function toRun({ kind, id, fields, parts }: Gathered): RunWrite {
  if (fields === null)
    throw bad(`${kind}.${id}.${[...parts.keys()].join(',')}`, `the part ${kind}.${id} that it belongs to is missing`)
  return readRun({ kind, id, fields, parts, placed: true })
}

function toFeedback(part: Part, id: string): FeedbackWrite {
  const { value } = readJson(part)
  const result = feedbackCreateSchema.safeParse(isRecord(value) ? { ...value, id } : value)
  if (result.success) return readFeedback(result.data)
  const [issue] = result.error.issues
  throw new IngestRefusal(422, `feedback ${id}: ${issue?.path.join('.') || 'it'}: ${issue?.message}`)
}

function toAttachment(
  part: Part,
  { runId, name, rest }: { runId: string; name: string | undefined; rest: readonly string[] },
): AttachmentWrite {
  if (name === undefined || name === '' || rest.length > 0) throw bad(part.name, 'an attachment has a name without dots')
  if (name.includes('\0')) throw bad(part.name, 'its name has a NUL character')
  return { runId, name, contentType: part.contentType, bytes: part.body.length }
}

function readJson(part: Part): JsonText {
  if (part.contentType !== 'application/json')
    throw bad(part.name, `its Content-Type is ${part.contentType}, not application/json`)
  try {
    return readJsonText(decodeUtf8(part.body))
  } catch (error) {
    throw bad(part.name, `it is no JSON: ${(error as Error).message}`)
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** @throws {TypeError} for bytes that are no UTF-8. */
function decodeUtf8(body: Buffer): string {
  return decoder.decode(body)
}

function bad(name: string, fault: string): IngestRefusal {
  return new IngestRefusal(400, `part ${JSON.stringify(name.slice(0, 200))}: ${fault}`)
}
