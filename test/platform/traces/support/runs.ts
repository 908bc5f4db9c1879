import { randomUUID } from 'node:crypto'

/** `20240919T171648521691Z`, the start of a run as its dotted order has it. */
export function orderTime(iso: string): string {
  return `${iso.slice(0, 19).replace(/[-:]/g, '')}${(iso.slice(20).replace(/Z$/, '') || '0').padEnd(6, '0')}Z`
}

export interface RunInput extends Record<string, unknown> {
  readonly id: string
  readonly trace_id: string
  readonly dotted_order: string
}

/** A run as a client posts it: a root, or a child of `parent`. */
export function makeRun(given: Record<string, unknown> = {}, parent?: RunInput): RunInput {
  const id = (given['id'] as string | undefined) ?? randomUUID()
  const start = (given['start_time'] as string | undefined) ?? '2026-11-20T08:00:00.123456Z'
  const segment = `${orderTime(start)}${id}`
  return {
    name: 'run',
    run_type: 'chain',
    start_time: start,
    inputs: { question: 'why' },
    session_name: 'project',
    ...(parent === undefined ? {} : { parent_run_id: parent.id }),
    trace_id: parent?.trace_id ?? id,
    dotted_order: parent === undefined ? segment : `${parent.dotted_order}.${segment}`,
    ...given,
    id,
  }
}

export interface TestPart {
  readonly name: string
  readonly body: string | Buffer
  readonly type?: string
  /** Replaces the right headers. */
  readonly headers?: string
}

export const BOUNDARY = '----TestBoundary7'

/** A multipart body like that of the SDK. */
export function makeMultipart(parts: readonly TestPart[]): Buffer {
  const chunks: Buffer[] = []
  for (const { name, body, type = 'application/json', headers } of parts) {
    const bytes = Buffer.from(body)
    const lines = headers ?? `Content-Disposition: form-data; name="${name}"\r\nContent-Type: ${type}; length=${bytes.length}`
    chunks.push(Buffer.from(`--${BOUNDARY}\r\n${lines}\r\n\r\n`), bytes, Buffer.from('\r\n'))
  }
  return Buffer.concat([...chunks, Buffer.from(`--${BOUNDARY}--\r\n`)])
}

/** The parts of a run as the SDK cuts it. */
export function runParts(kind: 'post' | 'patch', run: RunInput): TestPart[] {
  const { inputs, outputs, events, error, extra, serialized, ...rest } = run
  const big = Object.entries({ inputs, outputs, events, error, extra, serialized }).filter(([, value]) => value !== undefined)
  return [
    { name: `${kind}.${run.id}`, body: JSON.stringify(rest) },
    ...big.map(([field, value]) => ({ name: `${kind}.${run.id}.${field}`, body: JSON.stringify(value) })),
  ]
}

export const MULTIPART_HEADERS = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` }
