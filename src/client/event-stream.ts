import { createParser, type EventSourceParser } from 'eventsource-parser'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { checkResult, type Broken, type RequestFacts } from './answer.ts'
import { open, REFUSAL_MAX_BYTES, type ExchangeResult, type Fault, type OpenOptions } from './exchange.ts'
import { RequestFailure } from './failure.ts'
import { happenedBeforeSending, problemOf } from './network-problem.ts'
import type { Redact } from './redaction.ts'

/** One Server-Sent Event, as its stream says it: `event` is `message` where it names none. */
export type ServerSentEvent = { event: string; data: string }

export type EventStreamOptions = Omit<OpenOptions, 'timeoutMs'> & {
  /** As the failures show it. */
  path: string
  address: string
  /** Cancellation and the deadline of the whole stream. */
  signal: AbortSignal
  /** All of the stream, in bytes. */
  maxBytes: number
  /** One event, in UTF-16 units. */
  maxEventLength: number
  redact: Redact
  now: () => number
}

/** How long the body of an answer that is no stream is read for its words. */
const WORDS_MS = 10_000

/**
 * Sends one request and yields the events of its answer as they come (hosted service). Ends when the server has closed the
 * stream in an orderly way, after a whole event; everything else is a `RequestFailure`: a refusal before the stream (`http`), no
 * connection (`network`), an answer that is no stream, one that breaks off or is too large (`protocol`), or the signal's end.
 * Who stops reading closes the connection, and so tells the server that nobody listens any more.
 */
export async function* streamEvents(options: EventStreamOptions): AsyncGenerator<ServerSentEvent, void, undefined> {
  const { url, path, address, method, signal, maxBytes, maxEventLength, redact, now } = options
  const request: RequestFacts = { method, path, address, host: url.host, timeoutMs: 0, maxBytes, signal }
  const controller = new AbortController()
  const abort = () => controller.abort()
  let message: IncomingMessage | null = null
  let bytes = 0
  /** Throws what is wrong with the exchange so far; gives the maker of failures when nothing is. */
  const check = (fault: Fault | null, rest: Partial<ExchangeResult> = {}): Broken => {
    const { statusCode: status = null, headers = {} } = message ?? {}
    const result: ExchangeResult = { fault, status, headers, text: '', bytes, sent: true, code: null, reason: null, ...rest }
    return checkResult({ result, request, redact, now: now() }).broken
  }
  if (signal.aborted) check('aborted', { sent: false })
  signal.addEventListener('abort', abort, { once: true })
  try {
    message = await open({ ...options, timeoutMs: null }, controller.signal)
    const stream = message
    const destroy = () => stream.destroy(new Error('aborted'))
    controller.signal.addEventListener('abort', destroy, { once: true })
    if (controller.signal.aborted) destroy()
    if (!isEventStream(message)) {
      const refusal = await wordsOf(message, check)
      if (signal.aborted) check('aborted')
      throw refusal
    }
    const reader = createReader(maxEventLength)
    for await (const chunk of message as AsyncIterable<Buffer>) {
      bytes += chunk.length
      yield* reader.read(chunk)
      if (reader.overflowed()) {
        throw check(null)('oversized', `with an event of more than ${maxEventLength} characters`)
      }
      if (bytes > maxBytes) check('oversized')
    }
    if (reader.unfinished()) throw check(null)('truncated', 'and the stream ended in the middle of an event')
  } catch (error) {
    if (error instanceof RequestFailure) throw error
    if (signal.aborted) check('aborted')
    const { code, reason } = problemOf(error)
    if (code?.startsWith('HPE_')) check('malformed', { code, reason })
    if (message !== null) check('truncated', { code, reason })
    check('network', { code, reason, sent: !happenedBeforeSending(error) })
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
    message?.socket?.destroy()
  }
}

function isEventStream({ statusCode, headers }: IncomingMessage): boolean {
  const ok = statusCode !== undefined && statusCode >= 200 && statusCode < 300
  return ok && mediaType(headers) === 'text/event-stream' && /^(identity)?$/i.test(headers['content-encoding'] ?? '')
}

function mediaType(headers: IncomingHttpHeaders): string {
  return headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? ''
}

/** What is wrong with an answer that is no stream, with the beginning of its body. */
async function wordsOf(
  message: IncomingMessage,
  check: (fault: Fault | null, rest: Partial<ExchangeResult>) => Broken,
): Promise<RequestFailure> {
  const text = await startOf(message)
  let broken: Broken
  try {
    broken = check(null, { text })
  } catch (error) {
    return error instanceof RequestFailure ? withPlainWords(error, message.headers) : Promise.reject(error)
  }
  if (text.trimStart().startsWith('<')) {
    return broken('html', 'with HTML instead of a stream, as a sign-in page or a proxy does')
  }
  const encoding = message.headers['content-encoding']
  const type = mediaType(message.headers) || 'no content type'
  return broken(
    'not-a-stream',
    `with ${encoding === undefined ? type : `the encoding ${encoding}`} instead of a stream of events`,
  )
}

/** Agent servers refuse in JSON or in plain words. */
function withPlainWords(failure: RequestFailure, headers: IncomingHttpHeaders): RequestFailure {
  if (failure.kind !== 'http' || failure.detail !== null || mediaType(headers) !== 'text/plain') return failure
  return failure.with({ detail: failure.excerpt })
}

/** The beginning of a body. However it ends, and whether it ends: there is a status, and these are only its words. */
async function startOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(() => message.destroy(), WORDS_MS)
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= REFUSAL_MAX_BYTES) break
    }
  } catch {
    // What came is enough.
  } finally {
    clearTimeout(timer)
  }
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, REFUSAL_MAX_BYTES))
}

type Reader = {
  /** The events that this chunk completes. */
  read(chunk: Buffer): ServerSentEvent[]
  overflowed(): boolean
  /** True when what was read ends inside a line or an event. Asked once, at the end. */
  unfinished(): boolean
}

function createReader(maxEventLength: number): Reader {
  // One decoder for the whole stream: a character may lie across two chunks. Invalid bytes become U+FFFD.
  const decoder = new TextDecoder()
  let events: ServerSentEvent[] = []
  let overflowed = false
  const place = createPlace()
  const parser: EventSourceParser = createParser({
    maxBufferSize: maxEventLength,
    onEvent: ({ event = 'message', data }) => void events.push({ event, data }),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') overflowed = true
    },
  })
  const feed = (text: string): ServerSentEvent[] => {
    events = []
    if (text !== '' && !overflowed) parser.feed(text)
    place.read(text)
    return events
  }
  return {
    read: (chunk) => feed(decoder.decode(chunk, { stream: true })),
    overflowed: () => overflowed,
    // A name without data counts as well: it may have been the beginning of an error.
    unfinished: () => feed(decoder.decode()).length > 0 || place.isInside() || feed('\n\n').length > 0,
  }
}

/** Where in the stream we are: inside a line or an event, or between two. Comments stand between. */
function createPlace(): { read: (text: string) => void; isInside: () => boolean } {
  // Of the line under way only how it begins, and a CR at its end that may be the first half of a line break.
  let line = ''
  let inEvent = false
  const read = (text: string): void => {
    const lines = (line + text).split(/\r\n|\n|\r(?!$)/)
    const rest = lines.pop() ?? ''
    line = rest.slice(0, 1) + (rest.length > 1 && rest.endsWith('\r') ? '\r' : '')
    for (const whole of lines) inEvent = whole !== '' && (inEvent || !whole.startsWith(':'))
  }
  return {
    read,
    isInside: () => {
      if (line.endsWith('\r')) read('\n')
      return inEvent || line !== ''
    },
  }
}
