import { MULTIPART_PARTS_MAX } from '../../../contract/ingest.ts'
import { IngestRefusal } from './refusal.ts'

/** One part of a multipart body. */
export interface Part {
  readonly name: string
  /** The media type without its parameters. */
  readonly contentType: string
  readonly body: Buffer
}

const DASHES = Buffer.from('--')
const LINE_END = Buffer.from('\r\n')
const HEADERS_END = Buffer.from('\r\n\r\n')
const HEADERS_BYTES_MAX = 8192

/**
 * Takes a `multipart/form-data` body apart. Each part must say its media type and its length, by a `Content-Length` header or by
 * the parameter `length` of its `Content-Type` (hosted service); the length is checked.
 * @throws {IngestRefusal} 400 that says which part is wrong and how.
 */
export function readMultipart(body: Buffer, contentType: string | null): Part[] {
  const boundary = readBoundary(contentType)
  const delimiter = Buffer.concat([DASHES, boundary])
  const separator = Buffer.concat([LINE_END, delimiter])
  if (body.indexOf(delimiter) !== 0) throw malformed('the body does not begin with its boundary')
  const parts: Part[] = []
  let position = delimiter.length
  for (;;) {
    if (startsAt(body, DASHES, position)) return parts
    const lineEnd = skipPadding(body, position)
    if (!startsAt(body, LINE_END, lineEnd))
      throw malformed(`the boundary before part ${parts.length + 1} is not followed by a line end`)
    if (parts.length === MULTIPART_PARTS_MAX) throw malformed(`the body has more than ${MULTIPART_PARTS_MAX} parts`)
    const { part, end } = readPart(body, { start: lineEnd + LINE_END.length, separator, number: parts.length + 1 })
    parts.push(part)
    position = end + separator.length
  }
}

/** RFC 2046 allows blanks after a boundary. */
function skipPadding(body: Buffer, position: number): number {
  let index = position
  while (body[index] === 0x20 || body[index] === 0x09) index += 1
  return index
}

function readBoundary(contentType: string | null): Buffer {
  const { value, parameters } = readHeaderValue(contentType ?? '')
  if (value !== 'multipart/form-data')
    throw new IngestRefusal(415, `the Content-Type is ${JSON.stringify(contentType)}, not multipart/form-data`)
  const boundary = parameters.get('boundary') ?? ''
  if (!/^[\x21-\x7e]([\x20-\x7e]{0,198}[\x21-\x7e])?$/.test(boundary)) throw malformed('the Content-Type has no usable boundary')
  return Buffer.from(boundary, 'latin1')
}

function readPart(
  body: Buffer,
  { start, separator, number }: { start: number; separator: Buffer; number: number },
): { part: Part; end: number } {
  // Without any header the blank line follows the boundary at once.
  const headersEnd = startsAt(body, LINE_END, start) ? start : body.indexOf(HEADERS_END, start)
  if (headersEnd === -1 || headersEnd - start > HEADERS_BYTES_MAX) throw malformed(`the headers of part ${number} do not end`)
  const headers = readHeaders(body.toString('utf8', start, headersEnd))
  const disposition = readHeaderValue(headers.get('content-disposition') ?? '')
  const name = disposition.parameters.get('name')
  if (disposition.value !== 'form-data' || name === undefined || name === '') {
    throw malformed(`part ${number} has no Content-Disposition: form-data with a name`)
  }
  const type = readHeaderValue(headers.get('content-type') ?? '')
  if (type.value === '') throw malformed(`part ${JSON.stringify(name)} has no Content-Type`)
  if (headers.has('content-encoding'))
    throw malformed(`part ${JSON.stringify(name)} has an encoding of its own: compress the whole body instead`)
  const length = readLength(name, headers.get('content-length') ?? type.parameters.get('length'))
  const bodyStart = headersEnd === start ? start + LINE_END.length : headersEnd + HEADERS_END.length
  const end = body.indexOf(separator, bodyStart)
  if (end === -1) throw malformed(`part ${JSON.stringify(name)} does not end with the boundary`)
  // The length knows better than the first boundary: binary content may hold anything.
  if (startsAt(body, separator, bodyStart + length)) {
    return {
      part: { name, contentType: type.value, body: body.subarray(bodyStart, bodyStart + length) },
      end: bodyStart + length,
    }
  }
  throw malformed(`part ${JSON.stringify(name)} says that it has ${length} bytes, and has ${end - bodyStart}`)
}

function readLength(name: string, text: string | undefined): number {
  if (text === undefined)
    throw malformed(`part ${JSON.stringify(name)} has neither a Content-Length nor a length parameter in its Content-Type`)
  if (!/^\d{1,12}$/.test(text))
    throw malformed(`part ${JSON.stringify(name)} has the length ${JSON.stringify(text)}, which is no number`)
  return Number(text)
}

function readHeaders(text: string): Map<string, string> {
  const headers = new Map<string, string>()
  for (const line of text.split('\r\n')) {
    if (line === '') continue
    const colon = line.indexOf(':')
    if (colon < 1) throw malformed(`${JSON.stringify(line.slice(0, 80))} is no header of a part`)
    headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim())
  }
  return headers
}

const PARAMETER = /;\s*([!#$%&'*+.^_`|~\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))\s*/y

/** `form-data; name="a"`: the value in lower case, and the parameters. */
function readHeaderValue(text: string): { value: string; parameters: Map<string, string> } {
  const semicolon = text.indexOf(';')
  const parameters = new Map<string, string>()
  if (semicolon === -1) return { value: text.trim().toLowerCase(), parameters }
  PARAMETER.lastIndex = semicolon
  for (let found = PARAMETER.exec(text); found !== null; found = PARAMETER.exec(text)) {
    const [, name, quoted, plain] = found
    parameters.set((name as string).toLowerCase(), quoted === undefined ? (plain as string) : quoted.replace(/\\(.)/g, '$1'))
  }
  return { value: text.slice(0, semicolon).trim().toLowerCase(), parameters }
}

function startsAt(body: Buffer, piece: Buffer, position: number): boolean {
  return position + piece.length <= body.length && body.compare(piece, 0, piece.length, position, position + piece.length) === 0
}

function malformed(fault: string): IngestRefusal {
  return new IngestRefusal(400, `the multipart body cannot be read: ${fault}`)
}
